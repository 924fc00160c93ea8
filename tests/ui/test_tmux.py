"""M1, L1, C5: whole conversations in tmux, whose window can be resized, closed and opened again."""

import os
import shutil
from pathlib import Path

import pytest

from fakes.engine import action, decision
from fakes.gate import Gate
from fakes.tmux import conversation_in

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

ALLOW = {"en": "Allow it?", "ja": "お返事をどうぞ"}


def write(name: str, content: str) -> str:
    return decision("", action("write_file", path=name, content=content))


def test_a_conversation_in_japanese_through_a_resize(folder: Path, tmp_path: Path):
    gate = Gate(tmp_path / "gate")
    answers = (gate.hold(decision("日本語の返事です。")), write("a.txt", "neu\n"), decision("書きました。"))
    with conversation_in(folder, *answers, language="ja") as window:
        window.wait_for_prompt()
        window.say("こんにちは")
        window.wait_for("🦆 考えています…")
        window.keys("書きかけの長いメッセージです、折り返しも確認します")
        gate.open()
        window.wait_for("日本語の返事です。")
        window.wait(lambda shown: "Esc で中断" not in shown)  # Ctrl-C would stop the work
        window.resize(40)
        shown = window.wait_for("> 書きかけの")
        assert shown.count("書きかけの") == 1, shown
        window.resize(100)
        window.keys("C-c")
        window.say("a.txt を書いて")
        window.wait_for("お返事をどうぞ")
        assert not (folder / "a.txt").exists()
        window.say("はい")
        window.wait_for("書きました。")
        assert (folder / "a.txt").read_text() == "neu\n"


FIRST = {
    "en": ("Project rules: AGENTS.md", "I ask before every change", "Try: “What does stats.py do?”"),
    "ja": ("AGENTS.md", "確認", "例: 「stats.py"),
}


@pytest.mark.parametrize("language", ["en", "ja"])
def test_M1_the_first_run_finds_asks_offers_and_then_waits(language: str, folder: Path):
    """In this order, and only the first time."""
    (folder / "AGENTS.md").write_text("be kind\n")
    (folder / "stats.py").write_text("x = 1\n")
    with conversation_in(folder, decision("Hello."), language=language) as window:
        shown = window.wait_for_prompt()
        wanted = (*FIRST[language], "\n>\n", "😎🧘💪 ")
        places = [shown.find(one) for one in wanted]
        assert places == sorted(places), shown
        assert -1 not in places, shown
        window.say("hi")
        window.wait_for("Hello.")
        window.say("/new")
        shown = window.wait(lambda shown: shown.count("🦆 Duckflow ") == 2)
        assert shown.count(FIRST[language][-1]) == 1


@pytest.mark.parametrize("language", ["en", "ja"])
def test_G1_no_edit_always_and_yes_each_do_what_they_say(language: str, folder: Path):
    editor = folder.parent / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i s/two/zwei/ "$1"\n')
    editor.chmod(0o755)
    answers = (
        write("one.txt", "one\n"),
        write("two.txt", "two\nrest\n"),
        write("three.txt", "three\n"),
        write("four.txt", "four\n"),
        decision("", {"operation": "shell.run", "args": {"command": "echo five > five.txt"}}),
        decision("That was all."),
    )
    env = {"EDITOR": str(editor), "PATH": os.environ["PATH"]}
    with conversation_in(folder, *answers, language=language, env=env) as window:
        window.wait_for_prompt()

        def answer(asked: str, said: str) -> None:
            window.wait(lambda shown: asked in shown and ALLOW[language] in shown.rpartition(asked)[2])
            window.say(said)

        window.say("Write them")
        answer("+one", {"en": "n not that one", "ja": "いいえ、not that one"}[language])
        answer("+two", {"en": "e", "ja": "４"}[language])
        answer("+three", {"en": "a", "ja": "いつも"}[language])
        answer("echo five", {"en": "yes", "ja": "はい"}[language])
        shown = window.wait_for("That was all.")
        assert "not that one" in shown
        assert shown.count("+four") == 0, "always means not to be asked again"
    written = {file.name: file.read_text() for file in folder.iterdir()}
    assert written == {
        "two.txt": "zwei\nrest\n",
        "three.txt": "three\n",
        "four.txt": "four\n",
        "five.txt": "five\n",
    }


def test_C1_M1_background_work_chat_and_a_resize_at_once(folder: Path, tmp_path: Path):
    """The chat answers while tasks run and the window is resized."""
    tasks = [
        {"operation": "file_ops.write_file", "args": {"path": "a.txt", "content": "neu\n"}},
        {"operation": "file_ops.write_file", "args": {"path": "b.txt", "content": "neu\n"}},
    ]
    starts = decision(
        "裏で進めます。", {"operation": "task_loop.run", "args": {"task_list": tasks}}, next_step="defer"
    )
    body = {"status": "success", "summary": "二つとも書けました。", "failures": [], "next_action": ""}
    gate = Gate(tmp_path / "gate")
    answers = (
        starts,
        gate.hold(body, "TaskReport"),
        decision("パリです。", next_step="defer"),
        decision("完了です。"),
    )
    with conversation_in(folder, *answers, language="ja", args=("--mode", "edits")) as window:
        window.wait_for_prompt()
        window.say("二つ書いて")
        window.wait_for("裏で進めます。", "b.txt に書き込みました")
        window.resize(46)
        window.say("フランスの首都は？")
        window.wait_for("パリです。")
        window.say("/tasks")
        window.wait_for("● b.txt に書き込みました")
        window.resize(90)
        gate.open()
        shown = window.wait_for("二つとも書けました。", "完了です。")
        places = [shown.index(one) for one in ("パリです。", "二つとも書けました。", "完了です。")]
        assert places == sorted(places)
        assert window.wait_for_prompt().count("\n😎🧘") == 1, "nothing of the old bars is left"


UNSURE = decision("", action("read_file", path="b.txt"), confidence=0.3)


def test_C5_L1_an_open_approval_is_asked_again(folder: Path):
    with conversation_in(folder, write("a.txt", "neu\n")) as window:
        window.wait_for_prompt()
        window.say("Write a.txt")
        window.wait_for("Allow it?")
    assert not (folder / "a.txt").exists()
    with conversation_in(folder, decision("Written."), language="ja", args=("--continue",)) as window:
        shown = window.wait_for("お返事をどうぞ")
        assert "> Write a.txt" in shown
        assert "+neu" in shown
        window.say("はい")
        window.wait_for("Written.")
    assert (folder / "a.txt").read_text() == "neu\n"


def test_C5_L1_an_open_consultation_is_asked_again_by_continue_and_by_resume(folder: Path):
    (folder / "b.txt").write_text("b\n")
    with conversation_in(folder, UNSURE) as window:
        window.wait_for_prompt()
        window.say("Look at b.txt")
        window.wait_for("Your choice")
    with conversation_in(folder, args=("--continue",), language="ja") as window:
        shown = window.wait_for("番号で選んでください")
        assert "3. この調子で続ける" in shown
    with conversation_in(folder, decision("I went on."), args=("resume",)) as window:
        shown = window.wait_for("Your choice")
        assert "no longer sure" in shown
        window.say("3")
        window.wait_for("→ Continue like this", "I went on.")
        window.wait_for_prompt()


def test_M1_esc_twice_goes_back_to_a_message_and_a_list_does_not_stop_the_work(folder: Path, tmp_path: Path):
    gate = Gate(tmp_path / "gate")
    with conversation_in(folder, decision("One."), gate.hold(decision("Two."))) as window:
        window.wait_for_prompt()
        window.say("first request")
        window.wait_for("One.")
        window.wait_for_prompt()
        window.say("second request")
        window.wait_for("thinking…")
        window.say("/resume")
        window.say("/model")
        window.wait_for("Use which model?", "thinking…")
        gate.open()
        window.wait_for("Two.", "Use which model?")
        window.keys("Escape")
        window.wait_for_prompt()
        window.keys("Escape")
        window.keys("Escape")
        window.wait_for("Go back to before which message?", "❯ 2. second request")
        window.say("first")
        window.wait_for("Take back what?")
        window.keys("Enter")
        window.wait_for("back to the state before: first request", "> first request\n😎")
