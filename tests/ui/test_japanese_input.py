"""M1: text in any script is drawn completely, with the cursor at the place of the next character."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from unicodedata import normalize

import pytest

from fakes.terminal import Terminal

PROGRAM = Path(__file__).parent.parent / "fakes" / "prompt_program.py"
COLUMNS = 40
ROOM = COLUMNS - 2
FULL = "あ" * (ROOM // 2)

CASES = {
    "kana": ("こんにちは", ["> こんにちは"], 12),
    "kanji": ("日本語入力", ["> 日本語入力"], 12),
    "mixed with English": ("fileを開くopen", ["> fileを開くopen"], 16),
    "half-width kana": ("ﾊﾝｶｸ", ["> ﾊﾝｶｸ"], 6),
    "half-width kana with voicing marks": ("ｶﾞｷﾞﾊﾟ", ["> ｶﾞｷﾞﾊﾟ"], 8),
    "full-width letters": ("ＡＢＣ１２３", ["> ＡＢＣ１２３"], 14),
    "full-width space": ("あ　い", ["> あ　い"], 8),
    "punctuation": ("「はい」、。", ["> 「はい」、。"], 14),
    "combining mark": ("cafe\u0301", ["> cafe\u0301"], 6),
    "decomposed kana, whose marks this screen hides": ("か\u3099き\u3099", ["> かき"], 6),
    "Hangul": ("안녕하세요", ["> 안녕하세요"], 12),
    "Chinese": ("你好世界", ["> 你好世界"], 10),
    "an emoji": ("ok 🦆", ["> ok 🦆"], 7),
    "emoji in a row": ("🦆🦆🦆", ["> 🦆🦆🦆"], 8),
    "a family of emoji is drawn side by side": ("👨\u200d👩\u200d👧", ["> 👨👩👧"], 8),
    "a skin tone is left out of the drawing": ("👍\U0001f3fd!", ["> 👍!"], 5),
    "a mark for the colourful form is left out": ("❤\ufe0f!", ["> ❤!"], 4),
    "exactly up to the edge": (FULL, [f"> {FULL}"], 2),
    "one beyond the edge": (FULL + "い", [f"> {FULL}", "  い"], 4),
    "a wide character that does not fit any more": (
        "a" * (ROOM - 1) + "あ",
        ["> " + "a" * (ROOM - 1), "  あ"],
        4,
    ),
    "an emoji at the edge": ("a" * (ROOM - 1) + "🦆", ["> " + "a" * (ROOM - 1), "  🦆"], 4),
    "half-width fills the last column": ("あ" * 18 + "ﾊﾝ", ["> " + "あ" * 18 + "ﾊﾝ"], 2),
    "three lines": (FULL * 2 + "う", [f"> {FULL}", f"  {FULL}", "  う"], 4),
    "English that wraps": ("x" * ROOM + "y", ["> " + "x" * ROOM, "  y"], 3),
    "all at once": ("修正: fix(ui)ﾊﾝｶｸ🦆é", ["> 修正: fix(ui)ﾊﾝｶｸ🦆é"], 22),
    "digits and kanji": ("2026年11月", ["> 2026年11月"], 12),
}


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """One program for all tests; each clears the line it has typed."""
    folder = tmp_path_factory.mktemp("history")
    with Terminal([sys.executable, str(PROGRAM), str(folder)], columns=COLUMNS, warm=True) as started:
        started.wait_for("said 'ready'")
        started.wait_for("[ bar ]")  # before it is drawn, the terminal itself would echo what is typed
        started.wait_until(lambda: input_lines(started)[:1] == [">"])
        yield started


def input_lines(terminal: Terminal) -> list[str]:
    """Return the input lines, between the output and the bar."""
    shown = terminal.shown
    start = max((place for place, line in enumerate(shown) if line.startswith(">")), default=0)
    return shown[start : shown.index("[ bar ]")] if "[ bar ]" in shown else []


@pytest.mark.parametrize("name", CASES)
def test_it_is_drawn_and_sent_as_it_was_typed(terminal: Terminal, name: str):
    typed, expected, column = CASES[name]
    drawn = [normalize("NFC", line) for line in expected]  # the screen of the tests joins marks so
    terminal.type(typed)
    terminal.wait_until(lambda: input_lines(terminal)[: len(drawn)] == drawn)
    terminal.wait_until(lambda: terminal.screen.cursor.x == column)
    terminal.type("\r")
    terminal.wait_until(lambda: last_said(terminal) == typed)


def test_the_line_can_be_edited_in_the_middle(terminal: Terminal):
    """The cursor moves over drawn characters, two columns at a time."""
    terminal.type("あいう\x1b[D\x1b[D")
    terminal.wait_until(lambda: terminal.screen.cursor.x == 4)
    terminal.type("x\x7fえ")
    terminal.wait_until(lambda: input_lines(terminal) == ["> あえいう"])
    terminal.type("\r")
    terminal.wait_until(lambda: last_said(terminal) == "あえいう")


def test_a_tab_inside_a_paste_is_kept(terminal: Terminal):
    terminal.type("\x1b[200~a\tb\x1b[201~\r")
    terminal.wait_until(lambda: last_said(terminal) == "a\tb")


def last_said(terminal: Terminal) -> str | None:
    """Return the message sent last, joined from its wrapped lines."""
    text = "".join(
        line.ljust(COLUMNS) if len(line) == COLUMNS else line + "\n" for line in terminal.text.split("\n")
    )
    said = [line for line in text.split("\n") if line.startswith("said ")]
    try:
        return ast.literal_eval(said[-1].removeprefix("said "))
    except (IndexError, SyntaxError, ValueError):
        return None
