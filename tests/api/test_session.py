"""`from duckflow import Session`: a program starts requests, receives events, answers and cancels."""

import ast
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest

import duckflow
from duckflow import Session
from duckflow.api import Update, Work, delete_session, earlier_sessions
from duckflow.config.places import config_dir
from duckflow.domain.errors import UsageError, UserError
from duckflow.domain.events import (
    ApprovalAnswered,
    ApprovalRequested,
    ConsultationRequested,
    Event,
    Reply,
    RequestFinished,
    SessionStarted,
    StoredEvent,
    UserMessage,
)
from duckflow.domain.frozen import replace
from duckflow.domain.live_updates import LiveUpdate, ReplyPiece
from duckflow.domain.questions.approval import Approval
from duckflow.i18n import catalogue
from duckflow.loops.judging.consultation import consult
from fakes.engine import action, decision, write_script
from fakes.gate import Gate
from fakes.rows import Failures

WRITE = decision("I write it.", action("write_file", path="a.txt", content="one\n"))
QUIET = {"checks.after_edit": False, "checks.before_verdict": False}


def session(folder: Path, *answers: str | dict[str, Any], **options: Any) -> Session:
    script = write_script(folder.parent / "script.jsonl", answers)
    return Session(folder, model=f"scripted:{script}", settings=QUIET, **options)


async def updates(work: Work) -> list[Update]:
    return [update async for update in work]


def events(seen: list[Update]) -> list[Event]:
    return [update.event for update in seen if isinstance(update, StoredEvent)]


async def test_a_request_is_seen_as_it_happens(folder: Path):
    """Events are typed and numbered from 1, and the reply arrives in pieces."""
    async with session(folder, decision("Paris is the capital.")) as duck:
        work = duck.start("What is the capital of France?")
        seen = await updates(work)
        assert work.outcome == "done"
    assert isinstance(events(seen)[0], SessionStarted)
    assert [one.seq for one in seen if isinstance(one, StoredEvent)] == list(range(1, len(events(seen)) + 1))
    assert any(isinstance(one, ReplyPiece) for one in seen)
    assert Reply(text="Paris is the capital.") in events(seen)
    assert [one.id for one in earlier_sessions(folder)] == [duck_id(seen)]


def duck_id(seen: list[Update]) -> str:
    return next(event.session_id for event in events(seen) if isinstance(event, SessionStarted))


async def test_an_answer_inside_the_loop_lets_the_work_go_on(folder: Path):
    """G5: an answer applies only to the question that was shown."""
    async with session(folder, WRITE, decision("It is there."), mode="ask") as duck:
        work, asked = duck.start("Write a.txt"), 0
        async for update in work:
            if isinstance(update, StoredEvent) and isinstance(update.event, ApprovalRequested):
                asked += 1
                with pytest.raises(UsageError, check=lambda error: error.key == "session.other_question"):
                    duck.answer(replace(update.event.approval, digest="0" * 64), "yes")
                assert not (folder / "a.txt").exists()
                duck.answer(update.event.approval, "yes")
        assert (work.outcome, asked, duck.question) == ("done", 1, None)
    assert (folder / "a.txt").read_text() == "one\n"


async def test_the_request_finishes_once_if_it_is_answered_in_the_loop(folder: Path):
    """After an unclear answer the question comes again, and still nothing has finished."""
    replies = iter(["hmm", "yes"])
    async with session(folder, WRITE, decision("It is there."), mode="ask") as duck:
        work, seen = duck.start("Write a.txt"), list[Event]()
        async for update in work:
            if isinstance(update, StoredEvent):
                seen.append(update.event)
                if isinstance(update.event, ApprovalRequested):
                    duck.answer(update.event.approval, next(replies))
        ends = [event.outcome for event in seen if isinstance(event, RequestFinished)]
        stored = [one.event.outcome for one in duck.events() if isinstance(one.event, RequestFinished)]
    assert [type(event) for event in seen].count(ApprovalRequested) == 2
    assert ends == ["done"]
    assert stored == ["awaiting_approval", "awaiting_approval", "done"]


async def test_an_answer_that_comes_too_late_does_not_hide_the_end(folder: Path):
    """The question was answered elsewhere, so this loop does nothing more."""
    async with session(folder, WRITE, mode="ask") as duck:
        work, seen = duck.start("Write a.txt"), list[Event]()
        async for update in work:
            if isinstance(update, StoredEvent):
                seen.append(update.event)
                if isinstance(update.event, ApprovalRequested):
                    duck.answer(update.event.approval, "yes")
                    other = ApprovalAnswered(approval_id=update.event.approval.approval_id, yes=False)
                    duck.app.session.record(other)
        assert work.outcome == "awaiting_approval"
    assert isinstance(seen[-1], RequestFinished)


async def test_a_question_nobody_answers_waits_for_another_time(folder: Path):
    """After an unclear answer the question is repeated; a session can be resumed by its id."""
    async with session(folder, WRITE, mode="ask") as duck:
        assert await duck.start("Write a.txt") == "awaiting_approval"
        question, name = duck.question, duck.id
        assert isinstance(question, Approval)
        duck.answer(question, "hmm")
        seen = events(await updates(duck.go_on()))
        assert [type(event) for event in seen] == [ApprovalRequested, RequestFinished]
    script = write_script(
        folder.parent / "script.jsonl", [decision("As you like.", next_step="pending_user")]
    )
    async with Session(resume=name[:6], model=f"scripted:{script}", settings=QUIET) as duck:
        assert duck.state.mode == "ask"
        assert duck.question == question
        duck.answer(question, "no, call it b.txt")
        assert await duck.go_on() == "pending_user"
        assert duck.question is None
    assert not list(folder.iterdir())


async def test_a_consultation_takes_a_choice(folder: Path):
    async with session(folder, decision("One.", next_step="pending_user"), decision("Two.")) as duck:
        await duck.start("Do it")
        duck.app.session.record(consult(duck.state, "stagnation"))
        seen: list[Update] = []
        work = duck.go_on()
        async for update in work:
            seen.append(update)
            if isinstance(update, StoredEvent) and isinstance(update.event, ConsultationRequested):
                assert duck.question == update.event.consultation
                duck.answer(update.event.consultation, "3")
        assert work.outcome == "done"
        assert Reply(text="Two.") in events(seen)


async def test_cancelling_stops_the_request_and_not_the_session(folder: Path, tmp_path: Path):
    gate = Gate(tmp_path / "gate")
    async with session(folder, gate.hold(decision("never")), decision("Yes?")) as duck:
        work = duck.start("Think forever")
        await gate.wait_until_asked()
        with pytest.raises(UsageError, check=lambda error: error.key == "session.busy"):
            duck.start("more")
        duck.cancel()
        assert await work == "interrupted"
        assert await duck.start("Still there?") == "done"


async def test_C6_a_message_sent_during_the_work_reaches_the_next_decision(folder: Path, tmp_path: Path):
    gate = Gate(tmp_path / "gate")
    async with session(folder, gate.hold(decision("Without.")), decision("With.")) as duck:
        work = duck.start("Do it")
        await gate.wait_until_asked()
        duck.send("with this")
        gate.open()
        assert await work == "done"
        assert duck.state.reply == "With."
        with pytest.raises(UsageError, check=lambda error: error.key == "clients.nothing_runs"):
            duck.send("too late")


async def test_a_session_that_was_not_opened_says_so(folder: Path):
    with pytest.raises(UsageError, check=lambda error: error.key == "session.not_open"):
        session(folder).start("x")


async def test_a_wrong_setting_is_a_sentence(folder: Path):
    with pytest.raises(UserError) as caught:
        await Session(folder, settings={"shell.netwrk": True}).open()
    assert str(caught.value) == "settings: there is no setting “shell.netwrk”. Did you mean “shell.network”?"
    assert "config.unknown_key_near" in repr(caught.value)
    catalogue.set_language("ja")
    assert "shell.network" in str(caught.value)
    assert "設定" in str(caught.value)


async def test_arguments_override_settings_only_if_they_are_given(folder: Path):
    script = write_script(folder.parent / "script.jsonl", [decision("Hello.")])
    settings = {**QUIET, "llm.model": f"scripted:{script}", "mode": "plan"}
    async with Session(folder, settings=settings) as duck:
        assert duck.state.mode == "plan"
        assert await duck.start("Hi") == "done"


@pytest.mark.parametrize(("wanted", "shown"), [("ja", "開かれていません"), ("en", "is not open")])
def test_errors_are_in_the_language_of_a_programs_user(wanted: str, shown: str):
    """M4: a program that has set no language gets that of the configuration or the locale."""
    probe = "import duckflow\ntry: duckflow.Session().id\nexcept duckflow.UserError as error: print(error)"
    environ = {**os.environ, "DUCKFLOW_LANGUAGE": wanted, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, encoding="utf-8", check=True, env=environ
    )
    assert shown in done.stdout


def test_everything_a_program_handles_is_exported():
    """The names for the type checker are those that can be imported, and all events are among them."""
    (typed,) = [
        node for node in ast.parse(Path(duckflow.__file__).read_text()).body if isinstance(node, ast.If)
    ]
    imports = [node for node in typed.body if isinstance(node, ast.ImportFrom)]
    names = {alias.asname or alias.name: node.module for node in imports for alias in node.names}
    assert names.keys() | {"__version__"} == set(duckflow.__all__)
    assert {event.__name__ for event in get_args(get_args(Event)[0])} <= names.keys()
    assert {update.__name__ for update in get_args(LiveUpdate)} <= names.keys()
    for name, home in names.items():
        exported = "OpenSession" if name == "Session" else name
        assert getattr(duckflow, name) is getattr(import_module(str(home)), exported)


def test_the_package_stays_cheap_to_import():
    """Only importing Session imports the engine, and only a name of the domain the domain."""
    probe = "import sys, duckflow; print([n for n in ('pydantic', 'asyncio') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert duckflow.Session is Session
    with pytest.raises(AttributeError):
        _ = duckflow.Sessions


async def test_L8_what_was_done_is_seen_taken_back_gone_back_behind_and_forked(folder: Path):
    """Like on the command line, custom commands are replaced by their text."""
    again = decision("Again.", action("write_file", path="a.txt", content="two\n"))
    own = config_dir() / "commands" / "change.md"
    own.parent.mkdir(parents=True)
    own.write_text("Change $1\n")
    answers = (WRITE, decision("Done."), again, decision("Done."), decision("Hello."))
    async with session(folder, *answers, mode="auto") as duck:
        await duck.start("write it")
        await duck.start("/change a.txt")
        assert [one.text.strip() for one in duck.messages()] == ["write it", "Change a.txt"]
        assert "+two" in await duck.diff()
        assert "+two" in await duck.diff(session=True)
        assert (await duck.undo()).actions == 1
        assert (folder / "a.txt").read_text() == "one\n"
        await duck.undo("redo")
        await duck.undo("all")
        forked = duck.fork(2)
        await duck.rewind(1)
        assert not (folder / "a.txt").exists()
        assert not any(isinstance(one.event, UserMessage) for one in duck.events())
        await duck.set_model(duck.state.model)
        assert await duck.start("hi") == "done"
    listed = [one.id for one in earlier_sessions(folder)]
    assert forked in listed
    assert delete_session(forked).id == forked
    assert forked not in [one.id for one in earlier_sessions(folder)]


async def test_a_program_shows_pictures(folder: Path):
    png = b"\x89PNG\r\n\x1a\n" + bytes(64)
    async with session(folder, decision("A duck.")) as duck:
        with pytest.raises(UsageError, check=lambda error: error.key == "pictures.not_pasted"):
            duck.start("What is this?", [b"nothing"])
        assert await duck.start("What is this?", [png]) == "done"
        (said,) = [one.event for one in duck.events() if isinstance(one.event, UserMessage)]
        assert [duck.app.kept.picture(picture.digest) for picture in said.pictures] == [png]


async def test_wrong_arguments_are_usage_errors_and_nothing_begins(folder: Path):
    async with session(folder, decision("Hello.")) as duck:
        rows: list[tuple[str, Any]] = [
            ("session.empty", lambda: duck.start("")),
            ("session.empty", lambda: duck.start(" \n")),
            ("mode.unknown", lambda: duck.set_mode("yolo")),  # pyright: ignore[reportArgumentType] - it is wrong
            ("effort.unknown", lambda: duck.set_effort("much")),  # pyright: ignore[reportArgumentType] - as above
        ]
        failures = Failures()
        for key, call in rows:
            with failures.of(key), pytest.raises(UsageError, check=lambda error, key=key: error.key == key):
                call()
        failures.report()
        assert not any(isinstance(one.event, UserMessage) for one in duck.events())
