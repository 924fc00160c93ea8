"""M1, G1: a lone y or n without a question, and words that end a request."""

from pathlib import Path

from duckflow.domain.commands import AnswerShown, RunShellCommand, SayMessage, UndoWork, hash_of
from duckflow.domain.events import ActionStarted, RequestFinished, StoredEvent, UserMessage
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.session.channel import UpdateQueue
from fakes.engine import action, decision
from fakes.gate import Gate
from fakes.opened import opened

WRITE = decision("", action("write_file", path="a.py", content="one = 1\n"))
ASKS = decision("次は README も書きますか？", next_step="pending_user")


def said(updates: UpdateQueue) -> list[str]:
    return [
        one.event.text
        for one in updates.pending()
        if isinstance(one, StoredEvent) and isinstance(one.event, UserMessage)
    ]


async def test_G1_a_key_without_a_question_reaches_no_model(folder: Path):
    async with opened(folder, decision("Hello."), decision("Fine.")) as (host, updates):
        for key in ("n", "y", "ｎ"):
            assert (await host.send(SayMessage(text=key))).objection == "clients.nothing_asked"
        assert said(updates) == []
        assert (await host.send(SayMessage(text="Hi"))).outcome == "done"
        assert (await host.send(SayMessage(text="n"))).objection == "clients.nothing_asked"


async def test_G1_a_key_answers_the_question_that_the_model_asked_last(folder: Path):
    for question in (ASKS, decision("直しますか？"), decision("直しましょうか。")):
        async with opened(folder, question, decision("Well.")) as (host, updates):
            await host.send(SayMessage(text="a.py を見て"))
            assert (await host.send(SayMessage(text="n"))).objection == ""
            assert said(updates)[-1] == "n"


async def test_M1_words_that_want_no_more_end_the_request_without_a_model_or_tests(folder: Path):
    (folder / "test_a.py").write_text("def test_a():\n    assert False\n")
    async with opened(folder, WRITE, ASKS) as (host, _):
        await host.send(SayMessage(text="a.py を書いて"))
        asked = host.state.approval
        assert asked is not None
        answer = AnswerShown(question_hash=hash_of(asked), answer=AnswerApproval(yes=True))
        assert (await host.send(answer)).outcome == "pending_user"
        before = host.state.seq
        assert (await host.send(SayMessage(text="もう終わりでいい"))).outcome == "accepted"
        events = [one.event for one in host.app.log.load_after(host.session_id, before)]
        assert not any(isinstance(one, ActionStarted) for one in events)
        assert any(isinstance(one, RequestFinished) and one.outcome == "accepted" for one in events)
        assert host.state.request is None
        assert (folder / "a.py").exists()


async def test_M1_a_request_that_has_done_nothing_is_stopped(folder: Path):
    async with opened(folder, ASKS) as (host, _):
        await host.send(SayMessage(text="何ができる？"))
        assert (await host.send(SayMessage(text="that's all, thanks"))).outcome == "stopped"


async def test_M1_words_that_want_no_more_end_work_and_questions_too(folder: Path):
    gate = Gate(folder.parent / "gate")
    async with opened(folder, gate.hold(WRITE)) as (host, _):
        work = host.send(SayMessage(text="a.py を書いて"))
        await gate.wait_until_asked()
        assert (await host.send(SayMessage(text="もう終わりでいいです"))).outcome == "stopped"
        assert (await work).outcome == "interrupted"
        gate.open()
        assert host.state.request is None
    async with opened(folder, WRITE) as (host, _):
        assert (await host.send(SayMessage(text="a.py を書いて"))).outcome == "awaiting_approval"
        assert (await host.send(SayMessage(text="これで終わりにして"))).outcome == "stopped"
        assert (host.state.request, host.state.question) == (None, None)
    assert not (folder / "a.py").exists()


async def test_C6_lines_typed_after_an_undo_wait_behind_it(folder: Path, tmp_path: Path):
    gate = Gate(tmp_path / "gate")
    written = decision("", action("write_file", path="a.py", content="one = 1\n"), next_step="done")
    answers = written, gate.hold(decision("It is one.")), decision("Committed.")
    async with opened(folder, *answers, mode="edits") as (host, updates):
        await host.send(SayMessage(text="Write a.py"))
        assert (await host.send(UndoWork())).report
        work = host.send(SayMessage(text="What did it say?"))
        await gate.wait_until_asked()
        redo = host.send(UndoWork(wanted="redo"))
        command = host.send(RunShellCommand(command="cat a.py > seen.txt"))
        message = host.send(SayMessage(text="Now commit it"))
        assert host.waiting_lines() == ["/redo", "!cat a.py > seen.txt", "Now commit it"]
        gate.open()
        for receipt in (work, redo, command, message):
            await receipt
        assert (folder / "seen.txt").read_text() == "one = 1\n"
        assert said(updates)[-1] == "Now commit it"
