"""O6, SAFETY 22: hosts are asked about, once or for the session, or allowed in the settings."""

import sqlite3
from pathlib import Path
from typing import Any

from duckflow.config.places import state_dir
from duckflow.domain.events import ActionFinished, ApprovalRequested, HostContacted
from duckflow.domain.questions.approval import AnswerApproval, ApprovalScope
from fakes.engine import decision, engine
from fakes.model_server import ModelServer
from fakes.plays import play
from fakes.sent_prompts import written

CURL = "curl -sS --max-time 10 http://example.com/ http://example.org/"


def run(command: str, *hosts: str) -> dict[str, Any]:
    return {"operation": "shell.run", "args": {"command": command, "hosts": hosts}}


async def test_O6_hosts_are_asked_about_in_every_mode_and_the_answer_covers_only_them(folder: Path):
    for mode in ("plan", "ask", "edits", "auto"):
        steps = (decision("", run("true", "example.com", "registries")), decision("Done."))
        async with engine(folder, *steps, mode=mode) as duck:
            assert await duck.app.chat.say("go") == "awaiting_approval", mode
            (asked,) = (one.approval for one in duck.of(ApprovalRequested))
            assert asked.kind == ApprovalScope(what="hosts", scope="example.com registries")
            assert "# reaches example.com, package registries" in asked.difference
            assert "approval.impact.reaches" in [line.key for line in asked.impact]
            assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "done"
            assert duck.state.allowed == ()


async def test_O6_always_allows_the_hosts_for_the_session_and_no_others(folder: Path):
    steps = (
        decision("", run("true", "a.example", "b.example")),
        decision("", run("true", "b.example")),
        decision("", run("true", "c.example")),
    )
    async with engine(folder, *steps, mode="auto") as duck:
        assert await duck.app.chat.say("go") == "awaiting_approval"
        assert await duck.app.chat.answer(AnswerApproval(yes=True, always=True)) == "awaiting_approval"
        assert duck.of(ApprovalRequested)[-1].approval.kind == ApprovalScope(what="hosts", scope="c.example")
        assert duck.app.shell.hosts() == ("a.example", "b.example")


async def test_O6_hosts_in_the_settings_are_not_asked_about(folder: Path):
    steps = (decision("", run("true", "api.example.com", "registries")), decision("Done."))
    async with engine(folder, *steps, mode="auto", shell={"hosts": ["*.example.com", "registries"]}) as duck:
        assert await duck.app.chat.say("go") == "done"
        assert duck.of(ApprovalRequested) == []


async def test_O6_hosts_that_a_command_tried_are_named_in_its_result_and_in_the_audit_log(folder: Path):
    async with engine(folder, decision("", run(CURL)), decision("Done."), mode="auto") as duck:
        assert await duck.app.chat.say("go") == "done"
        (result,) = duck.of(ActionFinished)
        assert "tried to reach and may not: example.com, example.org." in result.text
        contacts = [(one.host, one.port, one.outcome) for one in duck.of(HostContacted)]
        assert contacts == [("example.com", 80, "refused"), ("example.org", 80, "refused")]
    connection = sqlite3.connect(state_dir() / "duckflow.db")
    audited = [body for (body,) in connection.execute("SELECT body FROM audit ORDER BY 1")]
    connection.close()
    assert sum("host_contacted" in one and "example.com:80" in one for one in audited) == 1


async def test_O6_what_is_no_host_is_told_to_the_model(folder: Path):
    steps = (decision("", run("true", "https://example.com/")), decision("Done."))
    with ModelServer(play(*steps)) as server:
        async with engine(folder, server=server, mode="auto") as duck:
            assert await duck.app.chat.say("go") == "done"
        assert any(
            "is no host; write a name such as github.com" in written(one.body) for one in server.requests
        )


async def test_SAFETY22_a_site_that_may_be_fetched_is_not_open_to_commands_nor_the_reverse(folder: Path):
    """The same holds for an answer that counts for the whole session."""
    fetch = {"operation": "web.fetch", "args": {"url": "http://127.0.0.1:1/"}}
    command = run("true", "127.0.0.1:1")
    for first, second, asked in ((fetch, command, "hosts"), (command, fetch, "site")):
        steps = decision("", first), decision("", second)
        async with engine(folder, *steps, mode="auto", web={"fetch": True}) as duck:
            assert await duck.app.chat.say("go") == "awaiting_approval"
            answer = AnswerApproval(yes=True, always=True)
            assert await duck.app.chat.answer(answer) == "awaiting_approval"
            assert duck.of(ApprovalRequested)[-1].approval.kind.what == asked


async def test_O6_without_a_copy_the_whole_network_is_asked_about(folder: Path):
    for level in ("landlock", "none"):
        step = decision("", run("true", "a.example"))
        async with engine(folder, step, mode="auto", shell={"sandbox": level}) as duck:
            assert await duck.app.chat.say("go") == "awaiting_approval"
            (asked,) = (one.approval for one in duck.of(ApprovalRequested))
            assert (asked.kind, asked.reasons) == (None, ("network",))
            assert "# with network" in asked.difference
