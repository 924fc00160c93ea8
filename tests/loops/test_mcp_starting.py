"""L4: MCP servers that start slowly or not at all, and what the user and the model learn about them."""

import sys
from contextlib import suppress
from pathlib import Path

import pytest

from duckflow.domain.errors import ToolError
from duckflow.tools.catalogue import Catalogue
from duckflow.ui.views.extensions import server_lines
from fakes.engine import decision, engine
from fakes.rows import Failures


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


async def test_l4_a_server_that_cannot_start_says_its_last_words_and_what_to_change(folder):
    script = (
        "import sys, time; print(sys.argv[1], file=sys.stderr); time.sleep(float(sys.argv[2])); sys.exit(1)"
    )
    rows = [
        ("getaddrinfo ENOTFOUND example.org", "0", "network = true"),
        ("Error: EROFS: read-only file system", "0", 'workspace = "write"'),
        ("ModuleNotFoundError: No module named 'x'", "0", "read ="),
        ("loading", "600", "start_timeout_s"),
        ("sqlite3.OperationalError: unable to open database file", "0", 'workspace = "write"'),
        ("FATAL: socket() failed: Operation not permitted (1)", "0", "sandbox = false"),
        ("Please set A_TOKEN and B_ID environment variables", "0", 'env = {A_TOKEN = "${A_TOKEN}"}'),
        ("Error [ERR_MODULE_NOT_FOUND]: Cannot find module 'x'", "0", "read ="),
        ("", "0", "run its command yourself"),
        ("Unable to create '/x/.git/index.lock': Read-only file system", "0", "sandbox = false"),
    ]
    servers = {
        f"s{n}": {
            "command": [sys.executable, "-c", script, said, seconds],
            "start_timeout_s": 20 if seconds == "0" else 0.5,
        }
        for n, (said, seconds, _) in enumerate(rows)
    }
    servers["s3"]["network"] = True
    async with engine(folder, decision("Hello."), mcp={"servers": servers}) as duck:
        if (await duck.app.shell.sandbox()).level == "none":
            pytest.skip("no sandbox here")
        for one in duck.app.mcp.connections.values():
            with suppress(ToolError):
                await one.connect()
        failures = Failures()
        for (said, _, setting), report in zip(rows, duck.app.mcp.reports(), strict=True):
            with failures.of(said):
                shown = "\n".join(server_lines([report]))
                assert said in shown
                assert setting in shown
        failures.report()


async def test_l4_of_a_stack_trace_only_the_error_remains(folder):
    script = "def inner():\n    raise KeyError('A_TOKEN')\n\n\ninner()\n"
    (folder / "main.py").write_text(script)
    broken = {"command": [sys.executable, "main.py"], "start_timeout_s": 20}
    async with engine(folder, decision("Hello."), mcp={"servers": {"broken": broken}}) as duck:
        if (await duck.app.shell.sandbox()).level == "none":
            pytest.skip("no sandbox here")
        with suppress(ToolError):
            await duck.app.mcp.connections["broken"].connect()
        [report] = duck.app.mcp.reports()
        assert report.problem == "ended with exit code 1; it said: KeyError: 'A_TOKEN'"


async def test_l4_a_program_has_more_time_until_it_has_answered_once(folder):
    # Its first start downloads something and fails; the second one, too, takes longer than later ones may.
    script = (
        "import pathlib, sys, time\n"
        "tries = pathlib.Path.home() / 'tries'\n"
        "first = not tries.exists()\n"
        "tries.touch()\n"
        "sys.exit('no connection') if first else time.sleep(600)\n"
    )
    command = [sys.executable, "-c", script]
    for seconds, said in ((60, "no connection"), (0.1, "did not start within 0.5 s")):
        slow = {"slow": {"command": command, "start_timeout_s": seconds}}
        async with engine(folder, decision("Hello."), mcp={"servers": slow}) as duck:
            if (await duck.app.shell.sandbox()).level == "none":
                pytest.skip("no sandbox here")
            with pytest.raises(ToolError, match=said):
                await duck.app.mcp.connections["slow"].connect()


async def test_l4_a_call_of_a_server_that_is_not_ready_says_how_to_wait_for_it(folder):
    never = {"command": [sys.executable, "-c", "raise SystemExit(1)"]}
    async with engine(folder, decision("Hello."), mcp={"servers": {"never": never}}) as duck:
        catalogue = Catalogue((), duck.app.mcp)
        with pytest.raises(ToolError, match=r'still starting: call mcp.describe with tool "never"'):
            catalogue.get("mcp.never.read_file")
