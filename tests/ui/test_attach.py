"""M7: the terminal as a second window: `duckflow sessions attach`."""

import asyncio
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from duckflow.api import find_session
from duckflow.app.places import open_log
from duckflow.cli.chat.conversation import attach
from duckflow.cli.secrets import redactor
from duckflow.domain.commands import AnswerShown, SayMessage
from duckflow.domain.errors import UsageError
from duckflow.domain.events import SessionStarted
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.session.remote import RemoteSession
from duckflow.store.command_inbox import CommandInbox
from duckflow.ui.frontend import Frontend
from fakes.conversation import conversation, program, ready
from fakes.engine import action, decision
from fakes.gate import Gate
from fakes.second_window import SecondWindow, wait_until
from fakes.terminal import Terminal


def write(name: str) -> str:
    return decision("", {**action("write_file", path=name, content="neu\n"), "reasoning": "you asked for it"})


def test_M7_a_second_terminal_reads_along_answers_and_sees_what_was_answered_elsewhere(folder: Path):
    answers = (write("a.txt"), decision("Written."), write("b.txt"), decision("Both."))
    command, quiet = program()
    with conversation(folder, *answers) as first:
        ready(first)
        first.type("Write a.txt\r")
        first.wait_for("Allow it?")
        with closing(SecondWindow()) as window:
            session = window.session
        attach = [*command, "sessions", "attach", session]
        with Terminal(attach, env={"DUCKFLOW_LANGUAGE": "en", **quiet}, warm=True) as second:
            second.wait_for("Allow it?")
            assert "A second window on “Write a.txt”" in second.text
            second.type("y\r")
            first.wait_for("Written.")
            assert "answered in another window" in first.text
            second.wait_for("Written.")
            assert (folder / "a.txt").read_text() == "neu\n"

            second.type("And b.txt\r")
            second.wait_for("And b.txt")
            first.wait_for("And b.txt")
            second.wait_for("Write b.txt?")
            first.wait_until(lambda: first.text.count("Allow it?") > 1 or "Allow" in first.shown[-2])
            first.type("n one file is enough\r")
            second.wait_for("answered in another window")
            second.wait_for("Both.")
            assert not (folder / "b.txt").exists()
            second.type("/undo\r")
            second.wait_for("removed a.txt")
            wait_until(lambda: not (folder / "a.txt").exists())
            second.type("/model\r")
            second.wait_for("That can't be done")
            second.type("!touch never\r")
            second.wait_until(lambda: second.text.count("That can't be done") == 2)
            assert not (folder / "never").exists(), "a guest runs no shell commands"
            first.type("/quit\r")
            second.wait_for("no longer open")
            assert second.process.wait(120) == 0


def test_M7_continuing_a_session_that_is_open_opens_a_second_window(folder: Path):
    command, quiet = program()
    with conversation(folder, decision("Hello."), decision("Again.")) as first:
        ready(first)
        first.type("Hi\r")
        first.wait_for("Hello.")
        again = [*command, "--continue", "--workspace", str(folder)]
        with Terminal(again, env={"DUCKFLOW_LANGUAGE": "en", **quiet}, warm=True) as second:
            second.wait_for("A second window on")
            second.type("Once more\r")
            first.wait_for("Again.")
            second.wait_for("Again.")


def test_M7_there_is_no_window_on_a_session_that_nobody_has_open(folder: Path):
    started = SessionStarted(
        session_id="s1", workspace=str(folder), model="m", model_reason="", mode="ask", version="0"
    )
    with closing(open_log()) as log:
        log.append("s1", [started])
    with pytest.raises(UsageError) as refused:
        asyncio.run(attach("s1", cast("Frontend", None)))
    assert refused.value.key == "attach.nobody"


async def test_what_a_second_window_sends_waits_without_secrets(folder: Path):
    """SAFETY 14: an answer's reason as well as a message."""
    key = f"ghp_{'a1B2' * 9}"
    began = SessionStarted(
        session_id="abcd1234", workspace=str(folder), model="m", model_reason="", mode="ask", version="0"
    )
    with closing(open_log()) as log:
        log.append("abcd1234", [began])
        window = RemoteSession(log, find_session("abcd"), redactor())
        answer = AnswerApproval(yes=False, reason=f"use {key}")
        window.send(AnswerShown(question_hash="0" * 64, answer=answer))
        window.send(SayMessage(text=f"it is {key}"))
        await asyncio.sleep(0)
        stored = [command for _, command in CommandInbox(log.database).waiting("abcd1234")]
        await window.aclose()
    assert isinstance(stored[0], AnswerShown)
    assert stored[0].question_hash == "0" * 64
    assert key not in f"{stored}"
    assert "use " in stored[0].answer.reason


def test_M7_a_message_of_a_second_window_is_shown_until_it_is_taken(folder: Path):
    gate = Gate(folder.parent / "gate")
    command, quiet = program()
    with conversation(folder, gate.hold(decision("One.")), decision("Two.")) as first:
        ready(first)
        first.type("Begin\r")
        first.wait_until(gate.asked)
        with closing(SecondWindow()) as window:
            session = window.session
        attach = [*command, "sessions", "attach", session]
        with Terminal(attach, env={"DUCKFLOW_LANGUAGE": "en", **quiet}, warm=True) as second:
            second.wait_for("A second window")
            second.type("and two\r")
            second.wait_for("queued: and two")
            gate.open()
            second.wait_for("Two.")
            assert "queued: and two" not in "\n".join(second.shown)
            assert "> and two" in second.text
