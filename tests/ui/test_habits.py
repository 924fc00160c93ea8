"""M1: words for a shell, typed in the conversation, are handled by the program and never reach a model."""

from pathlib import Path

from fakes.conversation import conversation, ready
from fakes.engine import action, decision

WRITE = decision("I write it.", action("write_file", path="a.txt", content="neu\n"))


def test_M1_words_for_a_shell_never_reach_the_model(folder: Path):
    with conversation(folder, decision("The model answers."), rows=60) as terminal:
        ready(terminal)
        for word, shown in (
            ("ls", "type !ls"),
            ("ls -la", "type !ls -la"),
            ("pwd", "type !pwd"),
            ("cd src", "duckflow --workspace"),
            ("?", "/rewind"),
            ("ヘルプ", "Anything else you type"),
            ("undo", "type /undo"),
        ):
            terminal.type(f"{word}\r")
            terminal.wait_for(shown)
        terminal.type("clear\r")
        terminal.wait_until(lambda: "type !ls" not in "\n".join(terminal.shown))
        terminal.type("hello\r")
        terminal.wait_for("The model answers.")
        terminal.type(":q\r")
        assert terminal.wait_for_end() == 0


def test_M1_words_for_a_shell_leave_an_open_question_as_it_is(folder: Path):
    with conversation(folder, WRITE, decision("Written.")) as terminal:
        ready(terminal)
        terminal.type("Write a.txt\r")
        terminal.wait_for("Allow it?")
        terminal.type("ls\r")
        terminal.wait_for("type !ls")
        terminal.type("終了\r")
        assert terminal.wait_for_end() == 0
    assert not (folder / "a.txt").exists()


def test_M1_a_request_on_the_command_line_is_the_first_message(folder: Path):
    args = ("--workspace", str(folder), "Say hello to me")
    with conversation(folder, decision("Hello to you."), args=args) as terminal:
        terminal.wait_for("Say hello to me")
        terminal.wait_for("Hello to you.")
