"""Background commands, through the operations: started, queried, read, stopped (G11)."""

import asyncio
import hashlib
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from duckflow.domain.errors import UserError
from duckflow.domain.events import ActionFinished, ApprovalRequested, CommandEnded, CommandStarted, Recovered
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.loops.acting.dispatcher import Dispatcher
from fakes.engine import action, decision, engine
from fakes.sandbox_world import processes_with

LONG = str(1_000_000_000 + secrets.randbelow(1_000_000_000))
SERVER = "python3 -u -m http.server --bind 127.0.0.1 8124"
ASK = (
    "for i in $(seq 600); do exec 3<>/dev/tcp/127.0.0.1/8124 && break; sleep 0.1; done 2>/dev/null;"
    " printf 'GET /page HTTP/1.0\\r\\n\\r\\n' >&3; tail -n 1 <&3"
)


async def until(seen: Callable[[], Any]) -> None:
    """Wait until the condition holds."""
    async with asyncio.timeout(60):
        while not seen():
            await asyncio.sleep(0.01)


def shell(operation: str, **args: Any) -> dict[str, Any]:
    return {"operation": f"shell.{operation}", "args": args}


async def test_G11_a_server_is_started_asked_by_the_next_command_read_and_stopped(folder: Path):
    """The command sees changes by file tools, its own changes reach the folder, and undo reverts them."""
    (folder / "page").write_text("first\n")
    steps = [
        decision("", shell("start", command=f"echo log > own; {SERVER}")),
        decision("", shell("run", command=ASK)),
        decision("", action("write_file", path="page", content="second\n"), shell("run", command=ASK)),
        decision("", shell("read", id="c1")),
        decision("", shell("stop", id="c1")),
        decision("Done."),
    ]
    async with engine(folder, *steps, mode="auto") as duck:
        assert await duck.app.chat.say("go") == "done"
        texts = [event.text for event in duck.of(ActionFinished)]
        assert "exit code 0\nfirst" in texts[1]
        assert "exit code 0\nsecond" in texts[3]
        assert texts[5].startswith("c1 was stopped")
        assert "GET /page" in texts[4] + texts[5]
        assert [event.command.id for event in duck.of(CommandStarted)] == ["c1"]
        assert [event.how for event in duck.of(CommandEnded)] == ["stopped"]
        assert duck.of(ApprovalRequested) == []
        assert (folder / "own").read_text() == "log\n"
        await duck.app.undoing.undo_request()
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"page": "first\n"}


async def test_G11_it_ends_with_the_request_and_what_it_did_is_settled_then(folder: Path):
    for mode, asked in (("plan", 0), ("ask", 1), ("auto", 0)):
        (folder / "own").unlink(missing_ok=True)
        steps = [
            decision("", shell("start", command=f"echo > own; sleep {LONG}")),
            decision("Well?", next_step="pending_user"),
            decision("Done."),
            decision("Done."),
        ]
        async with engine(folder, *steps, mode=mode) as duck:
            await duck.app.chat.say("go")
            await until(lambda: processes_with(LONG))
            outcome = await duck.app.chat.say("go on")
            assert not processes_with(LONG)
            assert [event.how for event in duck.of(CommandEnded)] == ["with_request"], mode
            assert len(duck.of(ApprovalRequested)) == asked, mode
            if asked:
                assert not (folder / "own").exists()
                outcome = await duck.app.chat.answer(AnswerApproval(yes=True))
            assert outcome == "done", mode
            assert (folder / "own").exists() is (mode != "plan"), mode
            assert duck.state.background_commands == ()


async def test_G11_a_question_about_a_copy_in_use_is_about_what_was_shown(folder: Path):
    """The command keeps writing: a yes applies the changes shown, and the rest is asked about later."""
    steps = [
        decision("", shell("start", command="while :; do date +%N >> busy; sleep 0.01; done")),
        decision("", shell("run", command="until [ -s busy ]; do sleep 0.01; done; echo mine > own")),
        decision("", shell("stop", id="c1")),
        decision("Done."),
    ]
    async with engine(folder, *steps, mode="ask") as duck:
        assert await duck.app.chat.say("go") == "awaiting_approval"
        (shown,) = (one for one in duck.app.shell._live.reported.effects if one.path == "busy")
        upper = Path(duck.app.shell._live.copy.upper)
        size = (upper / "busy").stat().st_size
        await until(lambda: (upper / "busy").stat().st_size > size)
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "awaiting_approval"
        assert (folder / "own").read_text() == "mine\n"
        assert hashlib.sha256((folder / "busy").read_bytes()).hexdigest() == shown.after
        assert duck.state.background_commands == ()
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "done"
        assert (folder / "busy").stat().st_size > shown.size


async def test_G11_it_is_stopped_with_ctrl_c_and_what_it_did_is_offered(folder: Path):
    steps = [
        decision("", shell("start", command=f"echo > own; echo up; sleep {LONG}")),
        decision("", shell("run", command=f"echo > mine; sleep {LONG}")),
    ]
    async with engine(folder, *steps, mode="auto") as duck:
        work = asyncio.ensure_future(duck.app.chat.say("go"))
        await until(lambda: len(processes_with(LONG)) == 2)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert not processes_with(LONG)
        (asked,) = duck.of(ApprovalRequested)
        assert asked.approval.impact[0].key == "approval.impact.command_cancelled"
        assert list(folder.iterdir()) == []
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "interrupted"
        assert sorted(path.name for path in folder.iterdir()) == ["mine", "own"]


async def test_G11_C5_after_a_crash_beside_it_its_end_is_unknown_and_it_is_not_run_again(
    folder: Path, monkeypatch
):
    settle = Dispatcher.settle_background
    killed: list[bool] = []

    async def settle_unless_killed(self, *, cancelled=False):
        if not killed:
            await settle(self, cancelled=cancelled)

    monkeypatch.setattr(Dispatcher, "settle_background", settle_unless_killed)
    steps = [
        decision("", action("write_file", path="a", content="a\n")),
        decision("", shell("start", command=f"echo > own; echo up; sleep {LONG}")),
        decision("Hm?", next_step="pending_user"),
    ]
    async with engine(folder, *steps, mode="auto") as duck:
        await duck.app.chat.say("go")
        session = duck.state.session_id
        assert processes_with(LONG)
        with pytest.raises(UserError):
            await duck.app.undoing.undo()
        await duck.app.shell.aclose()  # as a kill: nothing is written down, and no process is left
        killed.append(True)
    async with engine(folder, decision("I see."), mode="auto", session=session) as duck:
        (found,) = duck.of(Recovered)
        assert found.unknown[0].startswith("shell.start echo > own")
        assert found.finished == ("file_ops.write_file a",)
        assert [event.how for event in duck.of(CommandEnded)] == ["unknown"]
        await duck.app.chat.say("and?")
        assert not processes_with(LONG)
        assert "unknown" in "".join(entry.text for entry in duck.state.transcript)
    assert [path.name for path in folder.iterdir()] == ["a"]


async def test_G11_one_that_fails_at_once_or_is_not_known_is_told(folder: Path):
    steps = [
        decision(
            "", shell("start", command="until [ -e /tmp/go ]; do sleep 0.01; done; echo half > a; no-such")
        ),
        decision("Well?", next_step="pending_user"),
        decision("", shell("read", id="c1")),
        decision("", shell("read", id="c1")),
        decision("Done."),
    ]
    async with engine(folder, *steps, mode="auto") as duck:
        await duck.app.chat.say("go")
        (await duck.app.shell._launcher.temporary() / "own" / "go").touch()
        await until(lambda: not duck.app.shell.background)
        assert await duck.app.chat.say("go on") == "done"
        ended = [one.text for one in duck.of(ActionFinished)]
        assert any("ended with exit code 127" in text for text in ended)
        assert duck.of(ApprovalRequested) == []
        assert "No background command c1 runs" in ended[-1]


async def test_G9_what_a_command_did_before_ctrl_c_is_offered_and_nothing_goes_on_after_the_answer(
    folder: Path,
):
    """Also after a restart; a no discards them."""
    command = shell("run", command=f"echo half > a; sleep {LONG}")
    for yes in (True, False):
        async with engine(
            folder, decision("", command, shell("run", command="echo > b")), mode="auto"
        ) as duck:
            work = asyncio.ensure_future(duck.app.chat.say("go"))
            await until(lambda: processes_with(LONG))
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work
            session = duck.state.session_id
            (asked,) = duck.of(ApprovalRequested)
            assert asked.approval.because == "failed"
            assert asked.approval.impact[0].key == "approval.impact.command_cancelled"
            assert list(folder.iterdir()) == []
        async with engine(folder, decision("Not asked."), mode="auto", session=session) as duck:
            assert await duck.app.chat.answer(AnswerApproval(yes=yes)) == "interrupted"
            assert [path.name for path in folder.iterdir()] == ["a"] * yes
            assert duck.state.queue == ()
            (folder / "a").unlink(missing_ok=True)


async def test_G7_a_secret_is_granted_for_one_command_after_a_question(folder: Path):
    (folder / ".env").write_text("word=open\n")
    (folder / "plain").write_text("x\n")
    steps = [
        decision("", shell("run", command="cat .env", secrets=["plain"])),
        decision("", shell("run", command="cat .env", secrets=[".env"]), shell("run", command="cat .env")),
        decision("Done."),
    ]
    for mode in ("plan", "auto"):
        async with engine(folder, *steps, mode=mode) as duck:
            assert await duck.app.chat.say("go") == "awaiting_approval"
            assert "no file with secrets" in duck.of(ActionFinished)[0].text
            (asked,) = duck.of(ApprovalRequested)
            assert asked.approval.reasons == ("secrets",)
            assert "sees .env" in asked.approval.difference
            await duck.app.chat.answer(AnswerApproval(yes=True))
            texts = [event.text for event in duck.of(ActionFinished)]
            assert texts[1] == "exit code 0\nword=open", mode
            assert texts[2].startswith("exit code 0\n(Hidden from commands, and opened by this one: .env."), (
                mode
            )


async def test_G1_a_no_with_a_reason_to_what_a_stopped_command_did_continues_with_it(folder: Path):
    answers = [decision("", shell("run", command=f"echo half > a; sleep {LONG}")), decision("As you said.")]
    async with engine(folder, *answers, mode="auto") as duck:
        work = asyncio.ensure_future(duck.app.chat.say("go"))
        await until(lambda: processes_with(LONG))
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        answer = AnswerApproval(yes=False, reason="write it to b instead")
        await duck.app.chat.answer(answer)
        assert duck.state.reply == "As you said.", "the user's words reach the model without another message"
        assert list(folder.iterdir()) == []
