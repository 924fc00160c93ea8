"""The conversation on a real terminal, in both languages."""

import os
import sys
from pathlib import Path

import pytest

from fakes import warm
from fakes.conversation import conversation, ready
from fakes.engine import action, decision, write_script
from fakes.gate import Gate
from fakes.terminal import Terminal

WRITE = decision("", {**action("write_file", path="a.txt", content="neu\n"), "reasoning": "you asked for it"})


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")


def test_a_message_is_answered_and_the_prompt_comes_back(folder: Path):
    """M1."""
    with conversation(folder, decision("Paris, of course."), decision("Rome.")) as terminal:
        ready(terminal)
        terminal.type("Capital of France?\r")
        terminal.wait_for("Paris, of course.")
        terminal.type("And Italy?\r")
        terminal.wait_for("Rome.")
        assert "> Capital of France?\n\nParis, of course." in terminal.text
        terminal.type("/quit\r")
        assert terminal.wait_for_end() == 0
    assert "scripted:" in terminal.text
    assert "😎🧘💪" not in terminal.text, "the bar does not stay behind"


@pytest.mark.parametrize(("language", "expected"), [("en", "Try: “What does"), ("ja", "は何をするファイル")])
def test_the_first_run_says_what_it_found_and_what_to_try(folder: Path, language: str, expected: str):
    """M1, M4."""
    (folder / "AGENTS.md").write_text("be kind\n")
    (folder / "stats.py").write_text("x = 1\n")
    with conversation(folder, language=language) as terminal:
        ready(terminal)
        assert "AGENTS.md" in terminal.text
        assert expected in terminal.text
        assert "stats.py" in terminal.text
        assert "/undo" in terminal.text


def test_the_start_and_the_help_are_japanese_for_japanese(folder: Path):
    """M4: full width on the screen, nothing in English but names."""
    with conversation(folder, decision("こんにちは。何を作りましょうか？"), language="ja") as terminal:
        terminal.wait_for("やりたいこと")
        terminal.type("こんにちは\r")
        terminal.wait_for("何を作りましょうか")
        terminal.type("/help\r")
        terminal.wait_for("入力履歴を検索する")
        terminal.type("\x04")
        assert terminal.wait_for_end() == 0


def test_a_change_shows_its_difference_and_waits_for_yes(folder: Path):
    """G1, M1: the approval is part of the conversation."""
    with conversation(folder, WRITE, decision("Written.")) as terminal:
        ready(terminal)
        terminal.type("Write a.txt\r")
        terminal.wait_for("Allow it?")
        assert "+neu" in terminal.text
        assert "you asked for it" in terminal.text
        assert not (folder / "a.txt").exists()
        terminal.type("y\r")
        terminal.wait_for("Written.")
    assert (folder / "a.txt").read_text() == "neu\n"


def test_no_with_a_reason_changes_nothing(folder: Path):
    with conversation(folder, WRITE, decision("Then I leave it.")) as terminal:
        ready(terminal)
        terminal.type("Write a.txt\r")
        terminal.wait_for("Allow it?")
        terminal.type("n wrong file\r")
        terminal.wait_for("Then I leave it.")
        assert "not allowed: wrong file" in terminal.text
    assert not (folder / "a.txt").exists()


def test_G1_a_remark_about_a_question_is_shown_once(folder: Path):
    reply = decision("It holds the notes.", next_step="pending_user")
    with conversation(folder, WRITE, reply, decision("I leave it.")) as terminal:
        ready(terminal)
        terminal.type("Write a.txt\r")
        terminal.wait_for("Allow it?")
        terminal.type("What is this file for?\r")
        terminal.wait_for("It holds the notes.")
        terminal.wait_for("Allow it?")
        assert terminal.text.count("> What is this file for?") == 1
        terminal.type("n leave it\r")
        terminal.wait_for("I leave it.")


def test_keys_typed_ahead_are_no_answer(folder: Path, gate: Gate):
    """SAFETY 8, G1: a line typed before the question was shown is no answer, and a mere y no message."""
    answers = [gate.hold(WRITE), decision("I leave it.")]
    with conversation(folder, *answers) as terminal:
        ready(terminal)
        terminal.type("Write a.txt\r")
        terminal.wait_until(gate.asked)
        terminal.type("y\r")
        terminal.wait_for("No question is open")
        gate.open()
        terminal.wait_for("Allow it?")
        assert not (folder / "a.txt").exists()
        terminal.type("n leave it\r")
        terminal.wait_for("I leave it.")
    assert not (folder / "a.txt").exists()


def test_a_question_does_not_take_the_keyboard_from_someone_who_types(folder: Path, gate: Gate):
    """SAFETY 8: a y in the middle of a word is not a yes."""
    with conversation(folder, gate.hold(WRITE), decision("I leave it."), quiet_s=5.0) as terminal:
        ready(terminal)
        terminal.type("Write a.txt\r")
        terminal.wait_until(gate.asked)
        terminal.type("y")
        terminal.wait_for("> y")
        gate.open()
        terminal.wait_for("Write a.txt?")
        terminal.type("yy")
        terminal.wait_for("> yyy")
        terminal.wait_for("Allow it?")
        assert "Allow it? [y yes · n no, and why" in terminal.text
        assert any(line.endswith("more]") for line in terminal.shown), "the answer is empty"
        terminal.type("n leave it\r")
        terminal.wait_for("I leave it.")
        terminal.wait_for("> yyy")
    assert not (folder / "a.txt").exists()


def test_an_answer_right_after_a_command_is_not_swallowed(folder: Path):
    with conversation(folder, WRITE, decision("Written."), quiet_s=2.0) as terminal:
        ready(terminal)
        terminal.type("Write a.txt\r")
        terminal.wait_for("Allow it?")
        terminal.type("/mode\r")
        terminal.wait_for("Mode ask")
        terminal.type("y\r")
        terminal.wait_for("Written.")
        assert "> y" not in terminal.text


def test_messages_typed_while_it_works_go_into_the_next_decision(folder: Path, gate: Gate):
    """C6, M1: the prompt stays open, and typed text appears only there."""
    with conversation(folder, gate.hold(decision("Here it is.")), decision("Second.")) as terminal:
        ready(terminal)
        terminal.type("one\r")
        terminal.wait_until(gate.asked)
        terminal.type("two\r")
        terminal.wait_for("⋯ queued: two")
        terminal.type("dra")
        terminal.wait_for("> dra")
        gate.open()
        terminal.wait_for("Here it is.")
        terminal.wait_for("> two\n\nSecond.")
        terminal.wait_for("> dra")


@pytest.mark.parametrize("key", ["\x03", "\x1b"])
def test_ctrl_c_and_esc_stop_the_work_and_not_the_program(folder: Path, gate: Gate, key: str):
    """M1."""
    with conversation(folder, gate.hold(decision("too late")), decision("Still here.")) as terminal:
        ready(terminal)
        terminal.type("think\r")
        terminal.wait_until(gate.asked)
        terminal.type(key)
        terminal.wait_for("Stopped.")
        terminal.type("hello?\r")
        terminal.wait_for("Still here.")


def test_what_waited_for_work_that_was_stopped_is_back_on_the_line(folder: Path, gate: Gate):
    with conversation(folder, gate.hold(decision("too late")), decision("Both.")) as terminal:
        ready(terminal)
        terminal.type("think\r")
        terminal.wait_until(gate.asked)
        terminal.type("then this\r")
        terminal.wait_for("queued: then this")
        terminal.type("\x1b")
        terminal.wait_for("Stopped.")
        terminal.wait_for("> then this")
        terminal.type("\r")
        terminal.wait_for("Both.")


def test_C6_lines_that_a_stop_puts_back_are_sent_one_by_one(folder: Path, gate: Gate):
    answers = [gate.hold(decision("too late")), decision("One."), decision("Two.")]
    with conversation(folder, *answers) as terminal:
        ready(terminal)
        terminal.type("think\r")
        terminal.wait_until(gate.asked)
        terminal.type("first line\r")
        terminal.wait_for("queued: first line")
        terminal.type("/later second line\r")
        terminal.wait_for("queued: second line")
        terminal.type("\x1b")
        terminal.wait_for("Stopped.")
        terminal.wait_until(lambda: "> first line" in terminal.shown)
        assert "⋯ queued: second line" in terminal.shown
        terminal.type("\r")
        terminal.wait_for("One.")
        terminal.wait_until(lambda: "> second line" in terminal.shown)
        terminal.type("\r")
        terminal.wait_for("> second line\n\nTwo.")


def test_C6_words_that_ask_to_wait_stop_the_work(folder: Path, gate: Gate):
    with conversation(
        folder, gate.hold(decision("too late")), decision("続けました。"), language="ja"
    ) as terminal:
        terminal.wait_for("やりたいこと")
        terminal.type("作って\r")
        terminal.wait_until(gate.asked)
        terminal.type("ちょっと待って\r")
        terminal.wait_for("中断しました。")
        terminal.type("続けて\r")
        terminal.wait_for("続けました。")


def test_ctrl_c_at_the_prompt_clears_the_line_and_twice_leaves(folder: Path):
    """M1: only twice in a row; a message in between starts the count again."""
    with conversation(folder, decision("Yes?")) as terminal:
        ready(terminal)
        terminal.type("never mind\x03")
        terminal.type("hello\r")
        terminal.wait_for("Yes?")
        ready(terminal)
        terminal.type("\x03")
        terminal.wait_for("Press Ctrl-C again")
        terminal.type("\x03")
        assert terminal.wait_for_end() == 0
        assert "never mind" not in "\n".join(terminal.shown)


def test_ctrl_c_before_the_engine_is_loaded_leaves(folder: Path):
    with conversation(folder) as terminal:
        terminal.wait_for(">")
        terminal.type("\x03\x03")
        assert terminal.wait_for_end() == 0


def test_ctrl_c_at_an_approval_stops_and_nothing_runs(folder: Path, gate: Gate):
    """SAFETY 8, M1."""
    with conversation(folder, WRITE, gate.hold(decision("too late"))) as terminal:
        ready(terminal)
        terminal.type("Write a.txt\r")
        terminal.wait_for("Allow it?")
        terminal.type("\x03")
        terminal.wait_for("Stopped.")
        assert "left unanswered" in terminal.text
        ready(terminal)
    assert not (folder / "a.txt").exists()


def test_an_unknown_command_gets_the_nearest_one(folder: Path):
    """M2."""
    with conversation(folder) as terminal:
        ready(terminal)
        terminal.type("/hepl\r")
        terminal.wait_for("There is no command /hepl. Did you mean /help?")
        terminal.type("/xyzzy\r")
        terminal.wait_for("There is no command /xyzzy. /help lists the commands.")


def test_several_lines_are_one_message(folder: Path):
    """M1: Alt-Enter, Ctrl-J, a backslash, and a paste."""
    with conversation(folder, decision("Four lines.")) as terminal:
        ready(terminal)
        terminal.type("one\x1b\rtwo\x0athree\\\r\x1b[200~four\r\nfive\x1b[201~")
        terminal.wait_for("  five")
        assert "> one\n  two\n  three\n  four\n  five" in terminal.text
        terminal.type("\r")
        terminal.wait_for("Four lines.")


def test_history_lasts_across_sessions_and_can_be_searched(folder: Path):
    """M1."""
    with conversation(folder, decision("Yes."), decision("Yes.")) as terminal:
        ready(terminal)
        terminal.type("find the needle\r")
        terminal.wait_for("Yes.")
        terminal.type("hay\r")
        terminal.wait_for("> hay\n\nYes.")
        terminal.type("\x04")
        terminal.wait_for_end()
    with conversation(folder, decision("Found.")) as terminal:
        ready(terminal)
        terminal.type("\x12need")
        terminal.wait_for("search: need")
        terminal.wait_for("> find the needle")
        terminal.type("\r")
        terminal.wait_until(lambda: "search: need" not in "\n".join(terminal.shown))
        terminal.type("\r")
        terminal.wait_for("Found.")
        terminal.type("\x1b[A")
        terminal.wait_until(lambda: "> find the needle" in terminal.shown)


def test_commands_and_files_are_completed(folder: Path):
    """M1."""
    (folder / "src").mkdir()
    (folder / "src" / "deep_file.py").write_text("")
    with conversation(folder, decision("I see it.")) as terminal:
        ready(terminal)
        terminal.type("/st")
        terminal.wait_for("/status")
        terminal.type("\x7f\x7f\x7flook at @deep")
        # The first example above the prompt names the file, too.
        terminal.wait_until(lambda: sum("src/deep_file.py" in line for line in terminal.shown) == 2)
        terminal.type("\t")
        terminal.wait_for("> look at @src/deep_file.py")
        terminal.type("\r")
        terminal.wait_until(lambda: sum("deep_file" in line for line in terminal.shown) == 2)
        terminal.type("\r")
        terminal.wait_for("I see it.")


def test_shift_tab_goes_through_the_modes(folder: Path):
    """G3, M2: and the mode is kept with the session."""
    with conversation(folder) as terminal:
        ready(terminal)
        terminal.wait_for(" · ask")
        terminal.type("\x1b[Z")
        terminal.wait_for(" · edits")
        terminal.type("/mode plan\r")
        terminal.wait_for(" · plan")
        terminal.type("/mode nonsense\r")
        terminal.wait_for("There is no mode nonsense")


def test_continue_takes_up_the_last_session_with_its_open_question(folder: Path):
    """L1, M1: an interrupted approval is asked again."""
    with conversation(folder, WRITE) as terminal:
        ready(terminal)
        terminal.type("Write a.txt\r")
        terminal.wait_for("Allow it?")
        terminal.process.kill()
    args = ("--continue", "--workspace", str(folder))
    with conversation(folder, decision("Written."), args=args) as terminal:
        terminal.wait_for("Allow it?")
        terminal.type("yes\r")
        terminal.wait_for("Written.")
    assert (folder / "a.txt").exists()


def test_new_and_resume_change_the_session(folder: Path):
    """L1, M2."""
    with conversation(folder, decision("It is called Tama."), decision("Tama, still.")) as terminal:
        ready(terminal)
        terminal.type("What is the cat called?\r")
        terminal.wait_for("Tama.")
        terminal.type("/new\r")
        terminal.wait_until(lambda: terminal.text.count("Duckflow is using") == 2)
        ready(terminal)
        terminal.type("/resume\r")
        terminal.wait_for("Continue which session?")
        terminal.type("tama\r")  # the search finds what was said, too
        terminal.wait_for("Back in “What is the cat called?” (work · ")
        terminal.wait_for("> /resume What is the cat called?")
        terminal.wait_for("> What is the cat called?\n\nIt is called Tama.")


def test_resizing_draws_the_prompt_anew(folder: Path):
    """M1."""
    with conversation(folder, decision("Yes.")) as terminal:
        ready(terminal)
        terminal.type("half a message")
        terminal.wait_for("> half a message")
        terminal.resize(60, 24)
        terminal.wait_until(
            lambda: [line for line in terminal.shown if "half a message" in line] == ["> half a message"]
        )
        terminal.resize(120, 24)
        terminal.wait_until(lambda: any("😎🧘💪" in line and " · ask" in line for line in terminal.shown))
        terminal.type("\r")
        terminal.wait_for("Yes.")


def test_lines_through_a_pipe_are_a_conversation_too(folder: Path):
    script = write_script(folder.parent / "script.jsonl", [decision("One."), WRITE, decision("Two.")])
    done = warm.run(
        [sys.executable, "-m", "duckflow", "--workspace", str(folder), "--model", f"scripted:{script}"],
        input="first\nsecond\nn use b.txt\n/tasks\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    shown = ("One.", "+neu", "use b.txt", "Two.", "No tasks are running")
    places = [done.stdout.index(part) for part in shown]
    assert places == sorted(places)
    assert "\x1b" not in done.stdout


def test_a_dumb_terminal_gets_plain_lines(folder: Path):
    """M1."""
    answers = [decision("One."), WRITE, decision("Then not.")]
    with conversation(folder, *answers, env={"TERM": "dumb"}) as terminal:
        terminal.wait_for("/help lists")
        terminal.type("hello\n")
        terminal.wait_for("One.")
        terminal.type("Write a.txt\n")
        terminal.wait_for("Allow it?")
        terminal.type("no, leave it\n")
        terminal.wait_for("Then not.")
        assert b"\x1b" not in terminal.raw
        terminal.type("\x03")  # stops what is still being judged, if anything is
        terminal.wait_until(lambda: "Press Ctrl-C again" in terminal.text or "Stopped." in terminal.text)
        terminal.type("\x04")
        assert terminal.wait_for_end() == 0


def test_no_color_is_honoured(folder: Path):
    with conversation(folder, WRITE, env={"NO_COLOR": "1"}) as terminal:
        ready(terminal)
        terminal.type("Write a.txt\r")
        terminal.wait_for("Allow it?")
        assert b"\x1b[32m" not in terminal.raw
        assert b"\x1b[36m" not in terminal.raw
    with conversation(folder, WRITE) as terminal:
        ready(terminal)
        terminal.type("Write a.txt\r")
        terminal.wait_for("Allow it?")
        assert b"\x1b[32m+neu" in terminal.raw


def test_a_bell_rings_for_a_question_only_if_wanted(folder: Path):
    for way, expected in (("off", False), ("bell", True)):
        with conversation(folder, WRITE, env={"DUCKFLOW_UI__NOTIFY": way}) as terminal:
            ready(terminal)
            terminal.type("Write a.txt\r")
            terminal.wait_for("Allow it?")
            assert (b"\x07" in terminal.raw) is expected


def test_e_opens_the_editor_and_what_was_made_of_it_is_written(folder: Path):
    """G1: the answer edit."""
    editor = folder.parent / "editor.sh"
    editor.write_text('#!/bin/sh\necho "mine" > "$1"\n')
    editor.chmod(0o755)
    env = {"EDITOR": str(editor), "PATH": os.environ["PATH"]}
    with conversation(folder, WRITE, decision("As you like."), env=env) as terminal:
        ready(terminal)
        terminal.type("Write a.txt\r")
        terminal.wait_for("e edit")
        terminal.type("e\r")
        terminal.wait_for("as you edited it")
        terminal.wait_for("As you like.")
    assert (folder / "a.txt").read_text() == "mine\n"


def test_e_on_an_edit_opens_the_whole_new_content_and_what_is_saved_becomes_the_file(folder: Path):
    """G1: an edit has a few lines, but the editor shows the complete new file."""
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    editor = folder.parent / "editor.sh"
    editor.write_text('#!/bin/sh\ncp "$1" "$0.shown"\necho "four" >> "$1"\n')
    editor.chmod(0o755)
    edit = decision(
        "I'll change it.", action("edit_file", path="a.txt", edits=[{"find": "two", "replace": "2"}])
    )
    env = {"EDITOR": str(editor), "PATH": os.environ["PATH"]}
    with conversation(folder, edit, decision("As you like."), env=env) as terminal:
        ready(terminal)
        terminal.type("Change a.txt\r")
        terminal.wait_for("e edit")
        terminal.type("e\r")
        terminal.wait_for("As you like.")
    assert (folder.parent / "editor.sh.shown").read_text() == "one\n2\nthree\n"
    assert (folder / "a.txt").read_text() == "one\n2\nthree\nfour\n"


def test_K2_a_person_can_be_the_messenger_of_a_model(folder: Path):
    """The relay: the prompt is shown, the answer is pasted, the work is done."""
    command = [sys.executable, "-m", "duckflow", "--workspace", str(folder), "--model", "relay"]
    with Terminal(command, rows=60, warm=True) as terminal:
        ready(terminal)
        terminal.type("Capital of France?\r")
        terminal.wait_for("Its answer:")
        assert "Output: Decision" in terminal.text
        terminal.type('{"next_step": "done", "reply": "It is Paris."}\r')
        terminal.wait_for("\nIt is Paris.\n")
        terminal.wait_for("Output: RequirementList")
        terminal.wait_until(lambda: any("Its answer:" in line for line in terminal.shown[-4:]))
        terminal.type("/hepl\r")  # a command, not the model's answer
        terminal.wait_for("Did you mean /help?")
        terminal.type("/quit\r")
        assert terminal.wait_for_end() == 0
