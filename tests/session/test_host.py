"""M7: one session, one actor: it takes or refuses every command of every client, then carries it out."""

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from duckflow.app.opening import Opening
from duckflow.app.places import holder_of, open_log
from duckflow.config.grants import GRANTS_FILE, Grants
from duckflow.config.loading import load
from duckflow.config.places import state_dir
from duckflow.domain.commands import (
    AnswerShown,
    CancelWork,
    ChangePermission,
    CompactConversation,
    DeclineAndStop,
    ForkSession,
    RewindWork,
    SayMessage,
    SessionResult,
    SetMode,
    StopBackground,
    UndoWork,
    hash_of,
)
from duckflow.domain.errors import UsageError
from duckflow.domain.events import ErrorReported, RequestFinished, SessionStarted, StoredEvent, UserMessage
from duckflow.domain.frozen import replace
from duckflow.domain.questions.approval import AnswerApproval, ApprovalScope
from duckflow.domain.session_client import StatusChanged
from duckflow.loops.judging.consultation import consult
from duckflow.loops.undo.rewind import past_messages
from duckflow.session.channel import UpdateQueue
from duckflow.session.host import SessionHost
from duckflow.session.local import LocalSession
from duckflow.store.command_inbox import CommandInbox
from fakes.engine import action, decision, write_script
from fakes.gate import Gate
from fakes.opened import opened

WRITE = decision("I write it.", action("write_file", path="a.txt", content="one\n"))
YES = AnswerApproval(yes=True)


async def test_a_client_sends_commands_and_sees_everything_that_comes_of_them(folder: Path):
    async with opened(folder, WRITE, decision("Done."), decision("Hello.")) as (host, updates):
        first = await host.send(SayMessage(text="Write a.txt"))
        asked = host.state.approval
        assert (first.outcome, asked is None) == ("awaiting_approval", False)
        assert asked is not None
        answer = AnswerShown(question_hash=hash_of(asked), answer=YES)
        assert (await host.send(answer)).outcome == "done"
        assert (await host.send(answer)).objection == "clients.stale", "an answer counts once"
        assert (folder / "a.txt").read_text() == "one\n"
        said = past_messages(host.app.log.load(host.session_id))
        copied = await host.send(ForkSession(before=said[0].seq))
        assert copied.newer == ("a.txt",), "files stay as they are, newer than the copied conversation"
        undone = await host.send(UndoWork())
        assert undone.report is not None
        assert undone.report.actions == 1
        forked = await host.send(ForkSession())
        assert forked.session_id not in ("", host.session_id)
        with pytest.raises(UsageError):
            await host.send(RewindWork(before=1))
    seen = [*updates.pending()]
    assert isinstance(seen[0], StoredEvent)
    assert isinstance(seen[0].event, SessionStarted), "nothing is missed"
    busy = [one.busy for one in seen if isinstance(one, StatusChanged)]
    assert busy[:4] == [True, False, True, False]
    with pytest.raises(StopAsyncIteration):
        await anext(updates)


async def test_commands_wait_their_turn_and_some_act_beside_the_work(folder: Path, tmp_path: Path):
    gate = Gate(tmp_path / "gate")
    async with opened(folder, gate.hold(decision("Never.")), decision("Second.")) as (host, _):
        first, second = host.send(SayMessage(text="one")), host.send(SayMessage(text="two", later=True))
        await gate.wait_until_asked()
        assert (first.taken.done(), second.taken.done()) == (True, False)
        assert (await host.send(SetMode(mode="plan"))) == SessionResult()
        assert host.state.mode == "plan"
        assert (await host.send(StopBackground())).objection == "tasks.none"
        await host.send(CancelWork())
        assert (await first).outcome == "interrupted"
        assert (await second).outcome == "pending_user", "a reply after a stop ends nothing"
        assert (await host.send(CancelWork())).objection == "clients.nothing_runs"


async def test_G1_a_guest_may_ask_about_a_change_may_not_edit_it_and_hears_errors_with_all(folder: Path):
    answers = (WRITE, decision("It was asked for."), decision("Done."))
    async with opened(folder, *answers) as (host, updates):
        await host.send(SayMessage(text="Write a.txt"))
        assert (await host.send(SayMessage(text="Why?"), guest=True)).outcome == "awaiting_approval"
        asked = host.state.approval
        assert asked is not None
        empty = host.send(SayMessage(text=" "), guest=True)
        assert empty.taken.result() == "clients.not_offered"
        edited = AnswerShown(question_hash=hash_of(asked), answer=replace(YES, edited="two\n"))
        assert host.send(edited, guest=True).taken.result() == "clients.not_offered"
        assert (await host.send(edited)).outcome == "done"
        assert (folder / "a.txt").read_text() == "two\n", "the window that shows it may change it"
        with pytest.raises(UsageError):
            await host.send(UndoWork(wanted="nonsense"), guest=True)
        shown = [one.event for one in updates.pending() if isinstance(one, StoredEvent)]
        assert [one.text for one in shown if isinstance(one, UserMessage)] == ["Write a.txt", "Why?"]
        assert [one.key for one in shown if isinstance(one, ErrorReported)] == ["undo.wanted"]


async def test_another_process_is_heard_through_the_inbox_and_a_program_keeps_its_requests(folder: Path):
    async with opened(folder, decision("Heard."), driven=True) as (host, _):
        inbox = CommandInbox(host.app.log.database)
        said = inbox.put(host.session_id, SayMessage(text="From elsewhere"))
        mode = inbox.put(host.session_id, SetMode(mode="plan"))
        while inbox.result(mode) is None:
            await asyncio.sleep(0.01)
        await host.app.session.wait_until(lambda state: state.mode == "plan")
        assert inbox.result(said) is None, "it waits for the next owner"
        session = host.session_id
    script = write_script(folder.parent / "script.jsonl", [decision("Heard.")])
    loaded = load(folder, trusted=False, flags={"llm.model": f"scripted:{script}"})
    updates = UpdateQueue()
    host = await SessionHost.open(Opening(loaded, folder, session), updates)
    async for update in updates:
        if isinstance(update, StoredEvent) and isinstance(update.event, RequestFinished):
            break
    assert inbox_of(host).result(said) == ""
    said_by = [one.event.text for one in host.app.log.load(session) if isinstance(one.event, UserMessage)]
    assert said_by == ["From elsewhere"]
    await host.aclose()


def inbox_of(host: SessionHost) -> CommandInbox:
    return CommandInbox(host.app.log.database)


async def test_a_session_that_rests_gives_its_folder_back(folder: Path, tmp_path: Path):
    gate = Gate(tmp_path / "gate")
    async with opened(folder, gate.hold(decision("Hi."))) as (host, _):
        working = host.send(SayMessage(text="hi"))
        await gate.wait_until_asked()
        assert not host.leave(), "something is being done"
        gate.open()
        await working
        assert host.leave()
        await host.until_idle()
        refused = await host.send(SayMessage(text="too late"))
        assert refused.objection
        assert host.standing(SayMessage(text="from elsewhere"), guest=True) is None, "for the next owner"
        assert holder_of(str(folder)) == host.session_id
    assert holder_of(str(folder)) is None


async def test_a_message_that_waited_for_an_answer_is_left_for_the_next_owner(folder: Path):
    async with opened(folder, decision("One.", next_step="pending_user")) as (host, _):
        inbox = inbox_of(host)
        await host.send(SayMessage(text="Write a.txt"))
        host.app.session.record(consult(host.state, "stagnation"))
        host.send(SayMessage(text="And this"), guest=True)
        assert host.leave()
        assert not inbox.sessions()
        session = host.session_id
    with closing(open_log()) as log:
        waiting = CommandInbox(log.database).waiting(session)
    assert [one.command for one in waiting] == [SayMessage(text="And this")]


async def test_a_local_client_lists_what_can_be_suggested(folder: Path):
    (folder / "a.txt").write_text("x\n")
    async with opened(folder) as (host, _):
        client = LocalSession(host, load(folder, trusted=False, flags={}))
        updates = client.updates()
        ready = asyncio.ensure_future(client.keep_ready())
        assert isinstance(await anext(updates), StatusChanged)
        while client.status.window is None:
            await anext(updates)
        assert client.files() == ["a.txt"]
        assert client.status.sandbox is not None
        assert client.models()
        assert (client.sessions(), client.servers(), client.memories()) == (client.sessions(), (), [])
        ready.cancel()


async def test_M1_no_client_sends_a_word_for_a_shell_to_the_model(folder: Path):
    async with opened(folder, WRITE) as (host, updates):
        for word in ("exit", "clear", "ls", "終了", "help"):
            assert (await host.send(SayMessage(text=word), guest=True)).outcome is None
        await host.send(SayMessage(text="Write a.txt"))
        asked = host.state.question
        await host.send(SayMessage(text="quit"))
        assert host.state.question == asked, "the question stays open"
    events = [one.event for one in updates.pending() if isinstance(one, StoredEvent)]
    said = [event.text for event in events if isinstance(event, UserMessage)]
    notices = [event.key for event in events if isinstance(event, ErrorReported) and event.notice]
    assert said == ["Write a.txt"]
    assert [key for key in notices if key.startswith("habits.")] == [
        f"habits.{habit}" for habit in ("leave", "clear", "shell", "leave", "help", "leave")
    ]


async def test_SAFETY_23_an_always_answer_can_be_kept_for_the_folder_and_revoked(folder: Path):
    def written(path: str) -> str:
        return decision("I write.", action("write_file", path=path, content="one\n"))

    async with opened(folder, WRITE, decision("Done.")) as (host, _):
        await host.send(SayMessage(text="Write a.txt"))
        kind = host.state.approval.kind if host.state.approval else None
        assert kind is not None
        kept = ChangePermission(kind=kind, change="here")
        assert (await host.send(kept)).objection == "clients.not_offered", "the user has not allowed it yet"
        answer = AnswerApproval(yes=True, always=True)
        await host.send(AnswerShown(question_hash=hash_of(host.state.approval), answer=answer))
        assert (await host.send(kept)).objection == ""
        assert host.state.allowed == (), "it is kept in one place, where another session can revoke it"
    kinds = ("b.txt", ".git/hooks/pre-commit", "sub/c.txt", "d.txt")
    async with opened(folder, written("b.txt"), decision("Done."), *map(written, kinds[1:])) as (host, _):
        client = LocalSession(host, load(folder, trusted=False, flags={}))
        assert [one.lasts for one in client.permissions()] == ["here"]
        assert (await host.send(SayMessage(text="Write b.txt"))).outcome == "done", (
            "a new session does not ask"
        )
        asked = await host.send(SayMessage(text="Write a hook"))
        assert asked.outcome == "awaiting_approval"
        assert host.state.approval is not None
        assert host.state.approval.kind is None, "nothing is kept for a protected place"
        await host.send(DeclineAndStop(question_hash=hash_of(host.state.approval)))
        assert (await host.send(SayMessage(text="elsewhere"))).outcome == "awaiting_approval"
        await host.send(DeclineAndStop(question_hash=hash_of(host.state.approval)))
        await host.send(ChangePermission(kind=kind, change="revoked"))
        assert client.permissions() == []
        assert (await host.send(SayMessage(text="Write d.txt"))).outcome == "awaiting_approval"


async def test_SAFETY_23_a_kept_answer_holds_only_where_it_was_given(folder: Path, tmp_path: Path):
    here, elsewhere = Grants(str(folder)), Grants(str(tmp_path / "other"))
    pytest_, edits = (ApprovalScope(what=what, scope="pytest") for what in ("command", "edits"))
    here.keep(edits, everywhere=False)
    here.keep(pytest_, everywhere=True)
    assert [one.cover(edits) for one in (here, elsewhere)] == [True, False]
    assert [one.cover(pytest_) for one in (here, elsewhere)] == [True, True]
    (state_dir() / GRANTS_FILE).write_text('{"[1]": "x", "{": "y"}')
    assert here.listed() == [], "what can't be read allows nothing"


@pytest.mark.parametrize("words", ["stop", "Stop, please!", "ちょっと待って", "ストップ", "いらない"])
async def test_C6_words_that_only_ask_to_stop_stop_the_work(folder: Path, tmp_path: Path, words: str):
    """The words do not reach the model, and the work rests until the user continues it."""
    gate = Gate(tmp_path / "gate")
    async with opened(folder, gate.hold(decision("Never.")), decision("Gone on.")) as (host, _):
        first = host.send(SayMessage(text="Do it"))
        await gate.wait_until_asked()
        assert (await host.send(SayMessage(text=words))).objection == ""
        assert (await first).outcome == "interrupted"
        assert (await host.send(SayMessage(text=words))).outcome is None, "there is nothing to stop"
        assert (await host.send(SayMessage(text="go on"))).outcome == "done"
        assert host.state.finished is not None
        assert host.state.finished.text == "Do it"


async def test_C6_stop_in_the_message_field_is_a_no_to_the_open_question(folder: Path):
    async with opened(folder, WRITE, decision("Never.")) as (host, _):
        await host.send(SayMessage(text="Write a.txt"))
        assert (await host.send(SayMessage(text="stop"), guest=True)).outcome == "consultation"
        assert (await host.send(SayMessage(text="stop"), guest=True)).outcome == "stopped"
        assert not (folder / "a.txt").exists()


async def test_C6_a_guests_words_reach_the_work_of_a_program_too(folder: Path, tmp_path: Path):
    gate = Gate(tmp_path / "gate")
    answers = gate.hold(decision("Without.")), decision("With.")
    async with opened(folder, *answers, driven=True) as (host, _):
        first = host.send(SayMessage(text="Do it"))
        await gate.wait_until_asked()
        with closing(open_log()) as log:
            inbox = CommandInbox(log.database)
            said = inbox.put(host.session_id, SayMessage(text="with this"))
            while inbox.result(said) is None:
                await asyncio.sleep(0.01)
        gate.open()
        assert (await first).outcome == "done"
        assert host.state.reply == "With."


async def test_C6_an_undo_means_the_changes_at_the_time_it_was_typed(folder: Path, tmp_path: Path):
    gate = Gate(tmp_path / "gate")
    earlier = decision("", action("write_file", path="earlier.txt", content="1\n"))
    later = decision("", action("write_file", path="later.txt", content="2\n"))
    answers = (earlier, gate.hold(later), decision("Done."))
    async with opened(folder, *answers, mode="edits") as (host, _):
        work = host.send(SayMessage(text="Write both"))
        await gate.wait_until_asked()
        undo = host.send(UndoWork())
        assert host.waiting_lines() == ["/undo"]
        gate.open()
        assert (await work).outcome == "done"
        report = (await undo).report
        assert report is not None
        assert [one.path for one in report.restored] == ["earlier.txt"]
        assert (folder / "later.txt").exists()


async def test_C6_lines_that_wait_are_taken_back_one_by_one(folder: Path, tmp_path: Path):
    gate = Gate(tmp_path / "gate")
    async with opened(folder, gate.hold(decision("Never."))) as (host, _):
        first = host.send(SayMessage(text="Do it"))
        await gate.wait_until_asked()
        host.send(SayMessage(text="one"))
        later = host.send(SayMessage(text="two", later=True))
        assert host.take_back() == ["one", "two"]
        assert (await later).outcome is None
        await host.send(CancelWork())
        assert (await first).outcome == "interrupted"
        assert not host.busy


LIST = {
    "operation": "task_loop.run",
    "args": {"task_list": [action("write_file", path="b.txt", content="b\n")]},
}
REPORT: dict[str, Any] = {
    "status": "success",
    "summary": "All is written.",
    "failures": [],
    "next_action": "",
}


async def test_C4_a_stop_says_what_still_runs_and_a_second_one_ends_that(folder: Path, tmp_path: Path):
    """The model does not continue automatically when the list has ended."""
    gate = Gate(tmp_path / "gate")
    start = decision("In the background.", LIST, next_step="defer")
    answers = (start, gate.hold(REPORT, "TaskReport"), decision("Never."))
    async with opened(folder, *answers, mode="edits") as (host, updates):
        assert (await host.send(SayMessage(text="Write it"))).outcome == "deferred"
        await gate.wait_until_asked()
        await host.send(CancelWork())
        events = [one.event for one in updates.pending() if isinstance(one, StoredEvent)]
        notices = [one for one in events if isinstance(one, ErrorReported)]
        assert [one.key for one in notices] == ["tasks.still_run"]
        assert host.state.background_runs
        await host.send(CancelWork())
        await host.app.session.wait_until(lambda state: not state.background_runs)
        assert not host.busy
        assert (await host.send(CancelWork())).objection == "clients.nothing_runs"


async def test_M2_the_conversations_of_a_folder_can_be_searched(folder: Path):
    async with opened(folder, decision("Prime numbers are endless.")) as (host, _):
        await host.send(SayMessage(text="素数について 教えて"))
        first = host.session_id
    async with opened(folder) as (host, _):
        client = LocalSession(host, load(folder, trusted=False, flags={}))
        for words, said in (("numbers PRIME", "endless"), ("素数", "教えて")):
            ((session, found),) = client.search(words)
            assert session.session_id == first
            assert said in found
        assert client.search("numbers odd") == []


async def test_M2_a_compacted_conversation_is_shorter_and_opens_with_a_recap(folder: Path):
    answers = [decision(f"Answer {number}. " + "word " * 500) for number in range(4)]
    async with opened(folder, *answers) as (host, _):
        client = LocalSession(host, load(folder, trusted=False, flags={}))
        for number in range(4):
            await host.send(SayMessage(text=f"Question {number}"))
        before = await client.context()
        await host.send(CompactConversation())
        after = await client.context()
        assert sum(after.tokens.values()) < sum(before.tokens.values()) * 3 // 4
        assert "Answer 0" in after.recap
        assert not before.recap
        again = await client.context()
        assert again.tokens == after.tokens
