"""The session: stored first, then applied, then shown; and taken up again as it was."""

from pathlib import Path

import pytest

from duckflow.config.places import state_dir
from duckflow.domain.decision import Action
from duckflow.domain.errors import UsageError
from duckflow.domain.events import ActionFinished, ActionStarted, StoredEvent, UserMessage
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.loops.session import Session
from fakes.engine import action, decision, engine


class Order:
    """An event log that notes when it was asked to store, over a real one."""

    def __init__(self, log, notes: list[str]) -> None:
        self._log, self._notes = log, notes

    def append(self, session_id, events):
        stored = self._log.append(session_id, events)
        self._notes.extend(f"stored {event.type}" for event in events)
        return stored

    def load(self, session_id):
        return self._log.load(session_id)


async def test_every_event_is_stored_before_anyone_sees_it(tmp_path: Path):
    notes: list[str] = []
    async with engine(tmp_path, decision("Hi.")) as duck:
        session = duck.app.session
        session._log = Order(session._log, notes)

        def watch(what):
            if isinstance(what, StoredEvent):
                assert f"stored {what.event.type}" in notes
                assert session.state.seq >= what.seq
                notes.append(f"shown {what.event.type}")

        session.subscribe(watch)
        await duck.app.chat.say("hello")
    assert [note for note in notes if note.startswith("shown")] == [
        note.replace("stored", "shown") for note in notes if note.startswith("stored")
    ]
    assert "shown reply" in notes


async def test_a_session_taken_up_again_is_the_session_that_was_left(tmp_path: Path):
    """L1: saved as it happens, nothing to save by hand."""
    async with engine(
        tmp_path, decision("", action("write_file", path="a", content="b")), mode="ask"
    ) as duck:
        await duck.app.chat.say("write it")
        left = duck.state
        again = Session(duck.app.log, left.session_id)
        assert again.state == left


async def test_an_open_approval_can_be_answered_after_a_restart(tmp_path: Path):
    write = decision("", action("write_file", path="a.txt", content="b\n"))
    async with engine(tmp_path, write, mode="ask") as duck:
        await duck.app.chat.say("write it")
        session_id = duck.state.session_id
    async with engine(tmp_path, decision("Done."), mode="ask", session=session_id) as duck:
        assert duck.state.approval is not None
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "done"
    assert (tmp_path / "a.txt").read_text() == "b\n"


async def test_an_action_that_was_running_at_a_crash_is_told_as_unknown(tmp_path: Path):
    """C5: what is unknown is said, and nothing is run again by itself."""
    async with engine(tmp_path, decision("never said")) as duck:
        session, session_id = duck.app.session, duck.state.session_id
        running = Action(operation="file_ops.delete_file", args={"path": "a"})
        session.record(
            UserMessage(request_id="r_1", text="go"), ActionStarted(action_id="a1", action=running)
        )
    async with engine(tmp_path, decision("I look first."), session=session_id) as duck:
        (unknown,) = duck.of(ActionFinished)
        assert unknown.outcome == "unknown"
        assert "may or may not" in unknown.text
        assert duck.state.running is None
        assert await duck.app.chat.go_on() == "done"


def open_files() -> list[str]:
    """Paths of the files that this process has open, where /proc tells."""
    links = Path("/proc/self/fd").glob("*")
    return [str(link.readlink()) for link in links if link.is_symlink()]


async def test_a_session_belongs_to_its_folder(tmp_path: Path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    async with engine(here, decision("Hi.")) as duck:
        session_id = duck.state.session_id
    with pytest.raises(UsageError) as error:
        async with engine(there, decision("Hi."), session=session_id):
            pass
    assert error.value.key == "session.other_folder"
    assert [path for path in open_files() if path.startswith(str(state_dir()))] == []
