"""`duckflow mcp serve` (O7): a real MCP client, a real process, a real sandbox."""

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, TextContent


class User:
    """The user of the client, who answers every question alike."""

    def __init__(self, *, yes: bool) -> None:
        self.yes = yes
        self.asked: list[str] = []

    async def __call__(self, _context: Any, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params.message)
        return ElicitResult(action="accept", content={"yes": self.yes})


def called(
    folder: Path, *calls: tuple[str, dict[str, Any]], flags: tuple[str, ...] = (), user: User | None = None
):
    """Return the results of the calls. The argument `TRIAL` stands for the id of the last trial."""

    async def serve() -> list[CallToolResult]:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "duckflow", "mcp", "serve", *flags],
            cwd=folder,
            env={**os.environ},
        )
        results: list[CallToolResult] = []
        trial = ""
        async with Client(stdio_client(server), elicitation_callback=user) as client:
            for name, args in calls:
                args = {key: trial if value == "TRIAL" else value for key, value in args.items()}
                results.append(await client.call_tool(name, args))
                trial = next(iter(re.findall(r'trial="(\w+)"', said(results[-1]))), trial)
        return results

    return asyncio.run(asyncio.wait_for(serve(), 120))


def said(result: CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


@pytest.fixture
def changed(folder: Path) -> Path:
    (folder / "a.txt").write_text("a\n")
    return folder


TRY = ("try_command", {"command": "sed -i s/a/b/ a.txt; echo done; exit 3"})
APPLY = ("apply_changes", {"trial": "TRIAL"})


def test_O7_a_client_sees_output_and_difference_and_the_user_agrees(changed: Path):
    user = User(yes=True)
    tried, applied = called(changed, TRY, APPLY, user=user)
    assert not tried.is_error
    assert "done" in said(tried)
    assert "exit code 3" in said(tried)
    assert "+b" in said(tried)
    assert not applied.is_error, said(applied)
    assert len(user.asked) == 1
    assert "+b" in user.asked[0]
    assert (changed / "a.txt").read_text() == "b\n"


def test_O7_a_result_names_no_operation_that_clients_do_not_have(changed: Path):
    (tried,) = called(changed, ("try_command", {"command": "yes | head -100000"}))
    assert "only the beginning and the end of 200,000 characters" in said(tried)
    assert "shell.read" not in said(tried)


def test_O7_without_the_users_consent_nothing_is_applied(changed: Path):
    for user in (User(yes=False), None):
        _, applied = called(changed, TRY, APPLY, user=user)
        assert "try --apply" in said(applied)
        assert (changed / "a.txt").read_text() == "a\n"


def test_O7_the_user_can_leave_the_question_to_the_client(changed: Path):
    _, applied = called(changed, TRY, APPLY, flags=("--apply",))
    assert not applied.is_error, said(applied)
    assert (changed / "a.txt").read_text() == "b\n"


def test_O7_changes_can_be_forgotten_and_are_not_found_again(changed: Path):
    _, forgotten, again, unknown = called(
        changed, TRY, ("discard_changes", {"trial": "TRIAL"}), APPLY, ("apply_changes", {"trial": "nonsense"})
    )
    assert not forgotten.is_error
    assert again.is_error or "wait" in said(again)
    assert unknown.is_error
    assert (changed / "a.txt").read_text() == "a\n"


def test_O7_what_changed_meanwhile_is_not_overwritten(changed: Path):
    class Busy(User):
        async def __call__(self, context: Any, params: ElicitRequestParams) -> ElicitResult:
            (changed / "a.txt").write_text("my own\n")
            return await super().__call__(context, params)

    also = ("try_command", {"command": "sed -i s/a/b/ a.txt; echo new > b.txt"})
    _, applied = called(changed, also, APPLY, user=Busy(yes=True))
    assert "changed meanwhile" in said(applied)
    assert "Nothing was applied" not in said(applied)
    assert (changed / "a.txt").read_text() == "my own\n"


def test_O7_hosts_need_the_users_consent(changed: Path):
    reach = ("try_command", {"command": "echo ran", "hosts": ["example.org"]})
    (refused,) = called(changed, reach)
    assert refused.is_error
    assert "example.org" in said(refused)
    user = User(yes=True)
    (allowed,) = called(changed, reach, user=user)
    assert "ran" in said(allowed)
    assert "example.org" in user.asked[0]
    (granted,) = called(changed, reach, flags=("--host", "example.org"))
    assert "ran" in said(granted)
    (bad,) = called(changed, ("try_command", {"command": "echo ran", "hosts": ["no host"]}))
    assert "is no host" in said(bad)
