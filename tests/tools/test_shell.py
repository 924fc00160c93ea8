"""shell.run: what the model is told of a command, and what the user is shown before it (G7, H4, N)."""

import pytest

from duckflow.config.settings import ShellSettings
from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.sandbox.command_result import CommandResult
from duckflow.safety.sandbox.shell import Shell
from duckflow.safety.sandbox.view.levels import Sandbox
from duckflow.tools.catalogue import Catalogue
from duckflow.tools.shell import shell_tools
from fakes.access import access_to
from fakes.rows import every_row


class FakeShell:
    """Answers with one result, and remembers what it was asked."""

    def __init__(self, workspace, result=None, level="bubblewrap", **settings):
        self.workspace = workspace
        self.settings = ShellSettings(**settings)
        self.result = result or CommandResult(exit_code=0, output="")
        self.level = level
        self.asked = []

    async def sandbox(self):
        return Sandbox(level=self.level, reason="sandbox.bubblewrap")

    async def run(self, command, *, timeout_s, network, hosts, secrets, emit):
        self.asked.append((command, timeout_s, network))
        return self.result


async def run(shell, **args):
    tool, valid = Catalogue(shell_tools(shell, print)).validate(Action(operation="shell.run", args=args))
    return await tool.run(valid, access_to(shell.workspace))


@every_row(
    ("result", "text"),
    [
        ({"exit_code": 0, "output": "fine\n"}, "exit code 0\nfine"),
        ({"exit_code": 0, "output": ""}, "exit code 0"),
        ({"exit_code": 1, "output": "a\n\nb\n\n"}, "exit code 1\na\n\nb"),
        ({"exit_code": 200, "output": ""}, "exit code 200"),
        ({"exit_code": 137, "output": ""}, "killed by signal 9 (perhaps out of memory)"),
        ({"exit_code": 139, "output": ""}, "killed by signal 11"),
        ({"exit_code": 153, "output": ""}, "killed by signal 25 (a file larger than 2048 MB)"),
        (
            {"exit_code": None, "output": "x", "stopped": "seconds"},
            "stopped after 120 s\nx",
        ),
        (
            {"exit_code": None, "output": "", "stopped": "processes"},
            "stopped: it had more than 512 processes",
        ),
        (
            {"exit_code": None, "output": "", "stopped": "memory_mb"},
            "stopped: it took more than 4096 MB of memory",
        ),
    ],
)
async def test_H4_how_a_command_ended_is_a_result_and_its_first_line(folder, result, text):
    result = await run(FakeShell(folder, CommandResult.model_validate(result)), command="x")
    assert result.text == text


async def test_what_a_command_changed_and_its_exit_code_are_told(folder):
    done = CommandResult(exit_code=2, output="", changed=("a", "b"))
    result = await run(FakeShell(folder, done), command="x")
    assert (result.changed, result.exit_code) == (("a", "b"), 2)


@every_row(
    ("output", "level", "hint"),
    [
        ("touch: x: Read-only file system", "bubblewrap", "only in the workspace, not in what else"),
        ("sed: Value too large for defined data type", "namespaces", "write a new file instead"),
        ("touch: x: Permission denied", "landlock", "nor at the workspace's top"),
        ("curl: (6) Could not resolve host: x", "bubblewrap", "name the hosts"),
        ("touch: x: Permission denied", "none", ""),
        ("SyntaxError", "bubblewrap", ""),
    ],
)
async def test_a_model_that_met_the_sandbox_is_told_so(folder, output, level, hint):
    text = (await run(FakeShell(folder, CommandResult(exit_code=1, output=output), level), command="x")).text
    assert text.removeprefix(f"exit code 1\n{output}").count("\n") == bool(hint)
    assert hint in text


async def test_time_and_network_are_passed_on(folder):
    shell = FakeShell(folder)
    await run(shell, command="a")
    await run(shell, command="b", timeout_s=300, network=True)
    assert shell.asked == [("a", 120, False), ("b", 300, True)]


async def test_more_time_than_permitted_is_refused(folder):
    with pytest.raises(ToolError, match="600 at most"):
        await run(FakeShell(folder), command="x", timeout_s=601)


async def test_G1_the_user_sees_the_whole_command_the_folder_and_the_network(folder):
    tool, _ = shell_tools(FakeShell(folder), print)
    command = "one\n" * 500 + "last"
    workspace = Workspace(folder)
    shown = await tool.propose(tool.args(command=command), workspace)
    assert shown[:2] == (f"# in {folder}\n{command}\n", command)
    shown = await tool.propose(tool.args(command="x", network=True), workspace)
    assert shown.difference == f"# in {folder}\n# with network\nx\n"
    assert (tool.effect, tool.targets(tool.args(command="x"))) == ("execute", ())


async def test_a_real_command_runs_through_the_operation(folder):
    shell, pieces = Shell(folder, ShellSettings(sandbox="none")), []
    tool, _ = shell_tools(shell, pieces.append)
    result = await tool.run(tool.args(command="echo made > file; cat file"), access_to(folder))
    await shell.aclose()
    assert (result.text, result.changed) == ("exit code 0\nmade", ("file",))
    assert "".join(piece.text for piece in pieces) == "made\n"
