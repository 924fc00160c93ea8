"""L8: back to an earlier message with the conversation, the files or both; on from there in a new session."""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duckflow.app.places import open_log
from duckflow.cli.main import app
from duckflow.domain.errors import UsageError
from duckflow.domain.events import Reply, Rewound, UserMessage
from duckflow.domain.reduce.rewind import present
from duckflow.domain.session_client import PastMessage, find_message
from duckflow.loops.session import Session
from duckflow.loops.undo.rewind import fork, past_messages, rewind
from fakes.engine import Watched, action, decision, engine
from fakes.rows import every_row


def write(content: str) -> str:
    return decision(f"I write {content}.", action("write_file", path="a.txt", content=content))


ANSWERS = (write("one"), decision("First."), write("two"), decision("Second."), decision("Third."))


async def worked(duck: Watched) -> None:
    for said in ("Write one", "Write two", "What else?"):
        await duck.app.chat.say(said)


async def go_back(duck: Watched, before: int, **parts: bool) -> None:
    await rewind(duck.app.session, duck.app.log, duck.app.undoing, before, **parts)


def messages(duck: Watched) -> Sequence[PastMessage]:
    return past_messages(duck.app.log.load(duck.state.session_id))


def message(duck: Watched, number: int) -> int:
    return find_message(messages(duck), number).seq


def told(duck: Watched) -> str:
    return "\n".join(entry.text for entry in duck.state.transcript)


def loaded(session_id: str):
    with closing(open_log()) as log:
        return Session(log, session_id).state


@every_row(
    "conversation, files, content, knows",
    [(True, True, "one", False), (True, False, "two", False), (False, True, "one", True)],
    ids=str,
)
async def test_it_goes_back_with_what_was_asked_for(
    folder: Path, conversation: bool, files: bool, content: str, knows: bool
):
    """L8: nothing is deleted; loading the session again gives the same state."""
    async with engine(folder, *ANSWERS) as duck:
        await worked(duck)
        before = duck.app.log.load(duck.state.session_id)
        spent = duck.state.usage
        assert [one.text for one in messages(duck)] == ["Write one", "Write two", "What else?"]
        await go_back(duck, message(duck, 2), conversation=conversation, files=files)
        assert (folder / "a.txt").read_text() == content
        assert ("Write two" in told(duck)) is knows
        assert "Write one" in told(duck)
        assert duck.state.usage == spent
        assert duck.app.log.load(duck.state.session_id)[: len(before)] == before
        assert loaded(duck.state.session_id) == duck.state
        shown = [one.event.text for one in present(duck.app.log.load(duck.state.session_id))
                 if isinstance(one.event, UserMessage)]  # fmt: skip
        assert shown == (["Write one", "Write two", "What else?"] if knows else ["Write one"])


async def test_after_going_back_the_work_goes_on_and_can_go_back_again(folder: Path):
    answers = (*ANSWERS, write("three"), decision("Other."), decision("At last."))
    async with engine(folder, *answers) as duck:
        await worked(duck)
        gone = message(duck, 2)
        await go_back(duck, gone)
        assert await duck.app.chat.say("Write three") == "done"
        assert (folder / "a.txt").read_text() == "three"
        assert [one.text for one in messages(duck)] == ["Write one", "Write three"]
        await go_back(duck, message(duck, 1))
        assert not (folder / "a.txt").exists()
        assert not told(duck)
        assert loaded(duck.state.session_id) == duck.state
        assert await duck.app.chat.say("Hello?") == "done"
        with pytest.raises(UsageError):
            message(duck, 2)
        with pytest.raises(UsageError):
            await go_back(duck, gone)
        assert len(duck.of(Rewound)) == 2


async def test_a_fork_goes_on_from_there_and_leaves_the_session_alone(folder: Path):
    async with engine(folder, *ANSWERS) as duck:
        await worked(duck)
        old, state = duck.state.session_id, duck.state
        whole, early = fork(duck.app.log, old), fork(duck.app.log, old, message(duck, 2))
        assert loaded(old) == state
    assert loaded(whole).transcript == state.transcript
    async with engine(folder, decision("Another way."), session=early) as duck:
        assert "Write two" not in told(duck)
        assert await duck.app.chat.say("Try otherwise") == "done"
        assert duck.of(Reply)[-1].text == "Another way."
        assert "Write one" in told(duck)
        assert duck.state.session_id == early
    assert loaded(old) == state


def test_the_same_without_a_terminal(folder: Path):
    """L8: `duckflow sessions rewind` lists and goes back, `fork` prints the new id last."""

    async def work() -> str:
        async with engine(folder, *ANSWERS) as duck:
            await worked(duck)
            return duck.state.session_id

    old, run = asyncio.run(work()), CliRunner().invoke
    listed = run(app, ["sessions", "rewind", old]).output.splitlines()
    assert [line.split("  ")[-1] for line in listed] == ["Write one", "Write two", "What else?"]
    new = run(app, ["sessions", "fork", old, "3"]).output.split()[-1]
    assert "Write two" in run(app, ["sessions", "show", new]).output
    before = run(app, ["sessions", "show", old, "--json"]).output
    assert run(app, ["sessions", "rewind", old, "99"]).exit_code != 0
    assert run(app, ["sessions", "show", old, "--json"]).output == before, "a wrong number records nothing"
    assert "a.txt" in run(app, ["sessions", "rewind", old, "2", "--files"]).output
    assert (folder / "a.txt").read_text() == "one"
    assert "Write two" in run(app, ["sessions", "export", old]).output
    run(app, ["sessions", "rewind", old, "1", "--conversation"])
    assert (folder / "a.txt").read_text() == "one"
    assert "I write two" not in run(app, ["sessions", "export", old]).output
    assert "I write two" in run(app, ["sessions", "show", old, "--json"]).output
