"""Vi keys, themes, and /context on a screen (M1, M2)."""

import sys
from pathlib import Path

from duckflow.dialects.json_text import json_prompt
from duckflow.dialects.prompt import PromptFrame
from duckflow.domain.model import ModelTraits, PromptUse
from duckflow.i18n.catalogue import set_language
from duckflow.llm.tokens import TokenCounter
from duckflow.ui.output.text_width import width_of
from duckflow.ui.views.tables import context_text
from fakes import prompt_program
from fakes.conversation import conversation, ready
from fakes.engine import action, decision, engine
from fakes.rows import Failures, every_row
from fakes.terminal import Terminal


def prompt(folder: Path, theme: str = "auto", keys: str = "emacs") -> Terminal:
    command = [sys.executable, prompt_program.__file__, str(folder), theme, keys]
    return Terminal(command, env={"NO_COLOR": ""}, warm=True)


def colour_of(terminal: Terminal, beginning: str) -> str:
    """Return the colour of the first line with this beginning."""
    rows = range(terminal.screen.lines)
    row = next(row for row in rows if terminal.screen.display[row].startswith(beginning))
    return terminal.screen.buffer[row][0].fg


def test_M1_vi_keys_edit_the_line_and_the_mode_is_seen(folder: Path):
    with prompt(folder, keys="vi") as terminal:
        terminal.wait_for("said 'ready'")
        terminal.wait_for("[ bar ]")  # before the prompt is drawn, the terminal shows keys by itself
        terminal.type("hello world")
        terminal.wait_for("> hello world")
        terminal.type("\x1b")
        terminal.wait_for(": hello world")
        terminal.type("0dwA, duck")
        terminal.wait_for("> world, duck")
        terminal.type("\x1b")
        terminal.wait_for(": world, duck")
        terminal.type("x\r")
        terminal.wait_for("said 'world, duc'")
        terminal.type("i am back\r")  # a new line begins with inserting
        terminal.wait_for("said 'i am back'")


def test_M1_a_theme_sets_the_colours(folder: Path):
    failures = Failures()
    rows = {"auto": ("brown", "cyan"), "light": ("magenta", "blue"), "dark": ("brightyellow", "brightcyan")}
    for theme, wanted in {**rows, "none": ("default", "default")}.items():
        with failures.of(theme), prompt(folder, theme) as terminal:
            terminal.wait_for("said 'ready'")
            terminal.wait_for("[ bar ]")
            found = colour_of(terminal, "said"), colour_of(terminal, ">")
            assert found == wanted or found == tuple(one.replace("yellow", "brown") for one in wanted)
    failures.report()


async def test_M2_context_tells_what_is_in_the_prompt_and_what_was_left_out(folder: Path):
    """F3: the parts that were left out are named."""
    for name in ("a", "b", "c"):
        (folder / f"{name}.txt").write_text(f"{name} 1234567890\n" * 300)
    reads = [decision("", action("read_file", path=f"{name}.txt")) for name in ("a", "b", "c")]
    async with engine(folder, *reads, decision("Done.")) as duck:
        await duck.app.chat.say("read them all")
        whole = await duck.app.model.preview(duck.state)
        small = ModelTraits(name="m", window=6_000)
        cut = await json_prompt(small, (), PromptFrame(), TokenCounter()).assemble(duck.state)
    assert not any(whole.left_out.values())
    assert cut.left_out["evidence"] > 0
    assert cut.tokens["evidence"] < whole.tokens["evidence"]


@every_row(("language", "columns"), [("en", 60), ("en", 120), ("ja", 60), ("ja", 120)])
def test_M2_context_fits_the_screen(language: str, columns: int):
    set_language(language)
    tokens = {"base": 400, "rules": 0, "conversation": 12_000, "evidence": 9}
    shown = context_text(
        PromptUse(model="m", window=131_072, tokens=tokens, left_out={"evidence": 3, "words": 0}), columns
    )
    lines = shown.split("\n")
    assert all(width_of(line) <= columns for line in lines[1:])
    assert len(lines) == 6
    assert "12,000" in lines[3]
    assert "3" in lines[-1]
    assert lines[3].count("█") > lines[2].count("█") >= lines[4].count("█") == 1


def test_K7_context_tells_the_window_and_its_origin(folder: Path):
    with conversation(folder, decision("Hello."), env={"DUCKFLOW_LLM__WINDOW": "50000"}) as terminal:
        ready(terminal)
        terminal.type("/context\r")
        terminal.wait_for("of 50,000 tokens")
        terminal.wait_for("Window: set by")


def test_M2_context_in_a_conversation_with_vi_keys(folder: Path):
    settings = {"DUCKFLOW_UI__EDITING_MODE": "vi", "DUCKFLOW_UI__THEME": "none"}
    with conversation(folder, decision("Hello."), env=settings) as terminal:
        ready(terminal)
        terminal.type("/context\r")
        terminal.wait_for("how to answer")
        terminal.wait_for("█")
        terminal.type("hi there\x1b")
        terminal.wait_for(": hi there")
        terminal.type("\r")
        terminal.wait_for("Hello.")


def test_M1_a_notice_is_sent_where_the_terminal_shows_it_and_the_title_says_what_goes_on(folder: Path):
    write = decision("", action("write_file", path="a.txt", content="neu\n"))
    with conversation(folder, write, env={"TERM_PROGRAM": "WezTerm"}) as terminal:
        ready(terminal)
        terminal.wait_until(lambda: terminal.screen.title == f"🦆 {folder.name}")
        terminal.type("Write a.txt\r")
        terminal.wait_for("Allow it?")
        terminal.wait_until(lambda: terminal.screen.title == f"❓ {folder.name}")
        assert b"\x1b]9;" in terminal.raw
        terminal.type("\x03")
        terminal.wait_until(lambda: terminal.screen.title == f"🦆 {folder.name}")
        terminal.type("\x04")
        assert terminal.wait_for_end() == 0
        assert b"\x1b[23;2t" in terminal.raw, "the title from before is back"
    with conversation(folder, write, env={"TERM_PROGRAM": "tmux"}) as terminal:
        ready(terminal)
        terminal.type("Write a.txt\r")
        terminal.wait_for("Allow it?")
        assert b"\x1b]9;" not in terminal.raw
