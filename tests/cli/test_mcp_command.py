"""L4: `duckflow mcp`: servers are added, listed, tried, imported and removed; a mistake is a sentence."""

import json
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duckflow.cli.main import app
from duckflow.config.loading import user_file
from duckflow.domain.errors import UsageError
from duckflow.i18n.catalogue import set_language
from fakes import mcp_stdio
from fakes.mcp_http import HttpServer
from fakes.rows import Failures


def mcp(line: str, code: int = 0) -> str:
    """Output of `duckflow mcp`; the words are split as a shell does."""
    result = CliRunner().invoke(app, ["mcp", *shlex.split(line)], catch_exceptions=True)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture(autouse=True)
def _in_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def test_l4_a_server_is_added_tried_listed_and_removed(folder: Path):
    offer = folder.parent / "offer.json"
    offer.write_text(json.dumps({"tools": {"echo": "Says it."}, "prompts": {"visit": ""}}), "utf-8")
    command = f"{sys.executable} -I -S {mcp_stdio.__file__} {offer}"
    assert "No MCP servers" in mcp("list")
    assert "Added the MCP server fake" in mcp(f"add fake --no-sandbox --env A=b -- {command}")
    with HttpServer(tools={"sum": ""}) as server:
        mcp(f"add web --url {server.url} --header 'X-Key: k'")
        tried = mcp("test web")
        assert "web answers (protocol 2025-06-18)." in tried
        assert "tools (1): sum" in tried
        assert server.headers[0]["x-key"] == "k"
    assert "/mcp.fake.visit" in mcp("test fake")
    assert json.loads(mcp("test fake --json"))["tools"] == ["echo"]
    assert "can't be reached" in mcp("test web", code=1)
    listed = [json.loads(line) for line in mcp("list --json").splitlines()]
    assert [(one["name"], one["status"]) for one in listed] == [("fake", "waiting"), ("web", "waiting")]
    assert "not started yet" in mcp("list")
    assert "allowed without asking: echo" in mcp("allow fake.echo")
    assert "all tools that only read" in mcp("allow fake --read-only")
    assert "echo" not in mcp("allow fake.echo --revoke")
    set_language("ja")
    try:
        assert "fake: 未起動" in mcp("list")
    finally:
        set_language("en")
    assert "Removed the MCP server fake" in mcp("remove fake")
    assert "[mcp.servers.web]" in user_file().read_text("utf-8")
    assert "fake" not in user_file().read_text("utf-8")


def test_l4_what_goes_wrong_is_a_sentence_and_writes_nothing(folder: Path):
    other = folder / "claude.json"
    other.write_text(json.dumps({"mcpServers": {"Time": {"command": "uvx"}, "none": {}}}), "utf-8")
    rows = [
        ("add x", "mcp.command_or_url"),
        ("add x --url https://a.b -- y", "mcp.command_or_url"),
        ("add X -- y", "mcp.bad_name"),
        ("add x --url ftp://a.b", "mcp.unusable"),
        ("add x --url http://a.b/ --header 'A: b'", "mcp.unusable"),
        ("add x --env A -- y", "mcp.bad_pair"),
        ("add x --header A --url https://a.b", "mcp.bad_pair"),
        ("remove x", "mcp.no_such"),
        ("test x", "mcp.no_such"),
        ("allow x.y", "mcp.no_such"),
        ("import nothing.json", "mcp.bad_file"),
    ]
    failures = Failures()
    for line, key in rows:
        with failures.of(line), pytest.raises(UsageError) as wrong:
            mcp(line)
        with failures.of((line, "key")):
            assert wrong.value.key == key
    failures.report()
    assert not user_file().exists()
    said = mcp("import claude.json")
    assert "Imported: time" in said
    assert "Left out none" in said
    assert "already" in mcp("import claude.json")
