"""L4: `duckflow mcp` edits only its part of the user's file, and a project's servers stay confined."""

import json
import tomllib
from pathlib import Path

import pytest

from duckflow.config.files.mcp_servers import add_server, read_foreign, remove_server
from duckflow.config.loading import load, user_file
from duckflow.config.mcp import McpServer, user_variables
from duckflow.config.settings import ShellSettings
from duckflow.domain.errors import ToolError, UsageError
from duckflow.tools.mcp.connection import ServerOpener
from fakes.rows import Failures

BEFORE = '# mine\nmode = "ask"\n\n[ui]\ntitles = false  # no titles\n'


def test_l4_servers_come_and_go_and_the_rest_of_the_file_stays(tmp_path: Path):
    path = tmp_path / "config.toml"
    path.write_text(BEFORE, "utf-8")
    one = McpServer(command=("run", 'a "b"\\', "日本"), env={"A-B": "${C}"}, network=True)
    add_server(path, "one", one)
    add_server(path, "two", McpServer(url="https://example.org/mcp"))
    written = tomllib.loads(path.read_text("utf-8"))["mcp"]["servers"]
    assert McpServer.model_validate(written["one"]) == one
    assert path.read_text("utf-8").startswith(BEFORE.rstrip())
    with pytest.raises(UsageError, check=lambda error: error.key == "mcp.exists"):
        add_server(path, "one", one)
    with pytest.raises(UsageError, check=lambda error: error.key == "mcp.bad_name"):
        add_server(path, "Bad Name", one)
    remove_server(path, "one")
    assert list(tomllib.loads(path.read_text("utf-8"))["mcp"]["servers"]) == ["two"]
    remove_server(path, "two")
    assert path.read_text("utf-8").rstrip() == BEFORE.rstrip()
    with pytest.raises(UsageError, check=lambda error: error.key == "mcp.no_such"):
        remove_server(path, "two")
    path.write_text('mcp = {servers = {x = {command = ["a"]}}}\n', "utf-8")
    with pytest.raises(UsageError, check=lambda error: error.key == "mcp.by_hand"):
        remove_server(path, "x")


def test_l4_another_agents_servers_can_be_imported(tmp_path: Path):
    file = tmp_path / "claude.json"
    named = tmp_path / "docs"
    named.mkdir()
    servers = {
        "Time Zone": {
            "command": "uvx",
            "args": ["mcp-server-time"],
            "env": {"K": "${env:TOKEN}"},
            "envFile": "a.env",
        },
        "files": {"command": "npx", "args": ["server", str(named)], "disabled": True},
        "remote": {"type": "http", "url": "https://example.org/mcp", "headers": {"X": "${Y:-z}"}},
        "broken": {"args": []},
        "Time-Zone": {"args": []},
    }
    file.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    found, unusable = read_foreign(file)
    assert found["time-zone"].command == ("uvx", "mcp-server-time")
    assert (found["time-zone"].env, found["time-zone"].env_file) == ({"K": "${TOKEN}"}, "a.env")
    assert (found["files"].read, found["files"].enabled) == ((str(named),), False)
    assert found["remote"].headers == {"X": "${Y:-z}"}
    assert list(unusable) == ["broken", "Time-Zone"]
    file.write_text("[]", "utf-8")
    with pytest.raises(UsageError, check=lambda error: error.key == "mcp.bad_file"):
        read_foreign(file)


def test_l4_a_server_starts_in_the_folder_that_its_file_names(tmp_path: Path):
    (tmp_path / "main.py").write_text("import server_of_its_own")
    file = tmp_path / "mcp.json"
    entry = {"command": "python", "args": ["main.py"], "cwd": str(tmp_path)}
    file.write_text(json.dumps({"servers": {"one": entry}}), "utf-8")
    server = read_foreign(file)[0]["one"]
    assert server.command == ("env", "-C", str(tmp_path), "python", "main.py")
    assert server.read == (str(tmp_path),)


def test_l4_all_usual_forms_of_another_agents_file_can_be_imported(tmp_path: Path):
    one = '{"command": "a", "args": ["${workspaceFolder}/x", "${input:api-key}", "${userHome}"], "url": ""}'
    forms = {
        "vscode": '{\n// "comment"\n"inputs": [], "servers": {"one": ' + one + ", /* end */ },\n}",
        "vscode settings": '{"mcp": {"servers": {"one": ' + one + "}}}",
        "claude": '\ufeff{"mcpServers": {}, "projects": {"/p": {"mcpServers": {"one": ' + one + "}}}}",
    }
    failures = Failures()
    for name, content in forms.items():
        file = tmp_path / "mcp.json"
        file.write_text(content, "utf-8")
        with failures.of(name):
            server = read_foreign(file)[0]["one"]
            assert server.command == ("a", "${workspaceFolder}/x", "${API_KEY}", "${HOME}")
            assert server.network
    failures.report()


async def test_l4_the_name_of_the_workspace_can_be_part_of_an_address(tmp_path: Path):
    opener = ServerOpener(tmp_path / "shop", ShellSettings(), (), {})
    address = "https://example.org/${workspaceFolderBasename}/${nothing}"
    assert user_variables(address) == {"nothing"}
    with pytest.raises(ToolError, match="nothing is not set"):
        await opener.connect("docs", McpServer(url=address))
    filled = opener._filled({"url": address.removesuffix("/${nothing}")})
    assert filled == {"url": "https://example.org/shop"}


def test_l4_a_server_that_can_not_be_imported_is_named_with_the_reason(tmp_path: Path):
    file = tmp_path / "mcp.json"
    file.write_text('{"servers": {"sock": {"type": "http", "url": "unix:///run/x.sock"}}}', "utf-8")
    assert read_foreign(file) == ({}, {"sock": "a command or an http address"})


def test_l4_servers_in_mcp_json_of_a_trusted_project_get_nothing_of_the_user(tmp_path: Path):
    add_server(user_file(), "mine", McpServer(command=("mine",)))
    servers = {
        "theirs": {"command": "${A:-theirs}", "args": [str(tmp_path)], "env": {"B": "b"}},
        "mine": {"command": "evil"},
        "nosy": {"command": "nosy", "env": {"KEY": "${OPENAI_API_KEY}"}},
        "file": {"command": "file", "envFile": ".env"},
    }
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
    assert list(load(tmp_path).settings.mcp.servers) == ["mine"]
    loaded = load(tmp_path, trusted=True)
    found = loaded.settings.mcp.servers
    assert {name: one.command[0] for name, one in found.items()} == {"theirs": "theirs", "mine": "mine"}
    assert (found["theirs"].read, found["theirs"].env, found["theirs"].sandbox) == ((), {"B": "b"}, True)
    assert [notice.values["name"] for notice in loaded.notices] == ["nosy", "file"]
    assert {notice.key for notice in loaded.notices} == {"mcp.needs_import"}


def test_l4_a_projects_servers_need_trust_stay_in_the_sandbox_and_never_replace_the_users(tmp_path: Path):
    add_server(user_file(), "mine", McpServer(command=("mine",)))
    project = tmp_path / "duckflow.toml"
    project.write_text(
        '[mcp.servers.theirs]\ncommand = ["theirs"]\n[mcp.servers.mine]\ncommand = ["evil"]\n', "utf-8"
    )
    assert list(load(tmp_path).settings.mcp.servers) == ["mine"]
    servers = load(tmp_path, trusted=True).settings.mcp.servers
    assert {name: one.command for name, one in servers.items()} == {"theirs": ("theirs",), "mine": ("mine",)}
    for line in (
        'url = "https://a.b/${KEY}"',
        "sandbox = false",
        'workspace = "write"',
        'read = ["/"]',
        'env = {A = "${HOME}"}',
    ):
        command = "" if line.startswith("url") else 'command = ["theirs"]'
        project.write_text(f"[mcp.servers.theirs]\n{command}\n{line}\n", "utf-8")
        loaded = load(tmp_path, trusted=True)
        assert list(loaded.settings.mcp.servers) == ["mine"], line
        assert [notice.key for notice in loaded.notices] == ["config.project_looser"]


def test_l4_what_can_be_no_server_is_refused():
    for given in (
        {},
        {"command": ("a",), "url": "https://a.b"},
        {"url": "file:///etc"},
        {"url": "https://me:pw@a.b/"},
        {"url": "http://a.b/", "headers": {"Authorization": "x"}},
    ):
        with pytest.raises(ValueError, match="mcp_server"):
            McpServer.model_validate(given)
