"""K6, K4: thinking is shown while it arrives and folded afterwards; a wait counts down."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from duckflow.domain.events import ActionFinished, Event, Reply, RequestFinished, StoredEvent
from duckflow.domain.live_updates import OutputPiece, ReplyPiece, ReplyVoid, ThinkingShown, Waiting
from duckflow.domain.state import AgentState
from duckflow.domain.text import count_words
from duckflow.i18n.catalogue import set_language
from duckflow.ui.output.reply_stream import ReplyStream
from duckflow.ui.output.text_width import end_to_width, width_of
from duckflow.ui.screen import Screen
from duckflow.ui.views.live.activity import Activity
from fakes.conversation import conversation, ready
from fakes.engine import decision
from fakes.keyboard import FakeWriter
from fakes.rows import every_row

THOUGHT = "The tests fail because the path is wrong, so I look at the path first."


def recorded(event: Event) -> StoredEvent:
    return StoredEvent(seq=1, at=datetime.now(UTC), event=event)


class Watch:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def activity_text(activity: Activity, columns: int = 60) -> str:
    lines = activity.lines(AgentState(), (), columns)
    return "\n".join("".join(piece for _, piece in line) for line in lines).strip()


def test_K6_the_last_words_are_shown_while_the_model_thinks():
    activity = Activity(ReplyStream(FakeWriter()), Watch())
    for word in THOUGHT.split(" "):
        activity.note(ThinkingShown(text=f"{word}\n"))
    shown = activity_text(activity, 40)
    assert shown == "💭 Thinking: …I look at the path first."
    assert activity.end_thinking() is not None
    assert activity_text(activity) == ""


@pytest.mark.parametrize("columns", [1, 5, 12, 20, 40, 80])
@pytest.mark.parametrize("language", ["en", "ja"])
def test_K6_thinking_is_one_line_however_narrow_the_terminal_and_steers_nothing(language, columns):
    set_language(language)
    activity = Activity(ReplyStream(FakeWriter()), Watch())
    activity.note(ThinkingShown(text="まず\x1b[2Jテストを読みます。\n" * 50))
    shown = activity_text(activity, columns)
    assert "\x1b" not in shown
    assert "\n" not in shown
    assert width_of(shown) <= max(columns - 1, width_of("💭 考え中: "), width_of("💭 Thinking: "))


@every_row(
    ("language", "after", "line"),
    [
        ("en", ReplyPiece(text="So."), "💭 Thought for 12 s (15 words). /expand or Ctrl-O shows it."),
        ("ja", ReplyVoid(), "💭 12 秒考えました（15 語）。/expand か Ctrl-O で表示します。"),
        ("en", recorded(Reply(text="Done.")), "💭 Thought for 12 s (15 words). /expand or Ctrl-O shows it."),
        ("en", Waiting(reason="llm.waits_cut_off", wait_s=2), "💭 Thought for 12 s (15 words)."),
    ],
)
def test_K6_thinking_that_is_over_is_folded_into_one_line_and_can_be_expanded(language, after, line):
    set_language(language)
    writer, clock = FakeWriter(), Watch()
    screen = Screen(writer, clock=clock)
    screen(ThinkingShown(text=THOUGHT[:20]))
    screen(OutputPiece(text="a command of the background prints\n"))
    clock.now += 12.3
    screen(ThinkingShown(text=THOUGHT[20:]))
    assert writer.text == ""
    screen(after)
    assert writer.text.startswith(line)
    assert THOUGHT not in writer.text
    screen.expand()
    assert writer.texts[-1] == THOUGHT


def finished(operation: str, said: str, outcome: str = "ok") -> ActionFinished:
    given = {"action_id": "a", "operation": operation, "outcome": outcome, "evidence_id": "e1", "text": said}
    changed = ["a.py"] if operation == "file_ops.write_file" else []
    code = 0 if operation == "shell.run" else None
    return ActionFinished.model_validate({**given, "exit_code": code, "changed": changed})


@every_row(
    ("event", "full"),
    [
        (finished("shell.run", "exit code 0\n\n3 passed"), "✓ $\n\n3 passed"),
        (finished("file_ops.read_file", "a.py (lines 1-1 of 1)\nx = 1"), "✓ を読みました\nx = 1"),
        (finished("file_ops.search", "a.py:1: x"), "✓ 検索しました:\na.py:1: x"),
        (finished("file_ops.write_file", "created a.py (1 lines)\nchecked: ruff ok"), "✓ に書き込みました"),
        (finished("file_ops.edit_file", "a.py: no match", "failed"), "✗ 失敗: の編集"),
    ],
)
def test_M4_the_whole_result_has_no_words_for_the_model(event, full):
    set_language("ja")
    writer = FakeWriter()
    screen = Screen(writer)
    screen(recorded(event))
    screen.expand()
    assert writer.texts[-1] == full


def test_K6_the_newest_of_a_result_and_thinking_is_expanded():
    writer = FakeWriter()
    screen = Screen(writer)
    screen(ThinkingShown(text=THOUGHT))
    screen(recorded(finished("shell.run", "exit code 0\nall of it")))
    screen.expand()
    assert writer.texts[-1].splitlines()[-1] == "all of it"


def test_K6_without_readable_thinking_nothing_is_said_of_it():
    writer = FakeWriter()
    screen = Screen(writer)
    screen(ThinkingShown(text=" \n"))
    screen(recorded(RequestFinished(request_id="r", outcome="done", exit_code=0)))
    assert writer.text == ""


def test_K4_the_seconds_until_the_next_try_count_down():
    writer, clock = FakeWriter(), Watch()
    screen = Screen(writer, clock=clock)
    screen(Waiting(reason="llm.waits_rate_limited", wait_s=120))
    assert writer.text == "the provider is busy; trying again in 120 s"
    shown: list[str] = []
    for passed in (0.2, 60, 59, 1):
        clock.now += passed
        shown.append(activity_text(screen.activity))
    assert [line.rpartition("in ")[2] for line in shown] == ["120 s", "60 s", "1 s", ""]
    screen(Waiting(reason="llm.waits_rate_limited", wait_s=120))
    screen(ReplyPiece(text="Here"))
    assert "120 s" not in activity_text(screen.activity)
    screen(Waiting(reason="llm.waits_rate_limited", wait_s=120))
    screen(recorded(RequestFinished(request_id="r", outcome="interrupted", exit_code=130)))
    assert activity_text(screen.activity) == ""


@every_row(
    ("text", "columns", "end"),
    [
        ("short", 10, "short"),
        ("abcdefgh", 4, "…fgh"),
        ("日本語", 6, "日本語"),
        ("日本語です", 6, "…です"),
        ("日本語です", 5, "…です"),
        ("abc", 0, ""),
    ],
)
def test_the_end_of_a_line_is_cut_to_a_width(text, columns, end):
    assert end_to_width(text, columns) == end


@every_row(
    ("text", "words"),
    [("", 0), ("one two", 2), ("It's a.b", 4), ("日本語の文章です", 4), ("カタカナとASCII", 3)],
)
def test_words_are_counted_without_spaces_too(text, words):
    assert count_words(text) == words


@pytest.mark.parametrize("language", ["en", "ja"])
def test_K6_a_user_sees_thinking_folded_and_opens_it(folder: Path, language: str):
    answer = {"for": "Decision", "thinking": THOUGHT, "text": decision("It is the path.")}
    with conversation(folder, answer, language=language) as terminal:
        ready(terminal)
        terminal.type("why?\r")
        terminal.wait_for("It is the path.")
        folded = {"en": "Thought for 1 s (15 words)", "ja": "1 秒考えました（15 語）"}[language]
        assert folded in terminal.text
        assert THOUGHT not in terminal.text
        ready(terminal)
        terminal.type("\x0f")
        terminal.wait_for(THOUGHT)


def test_K4_a_reply_that_was_cut_is_read_as_one(folder: Path):
    whole = decision("The answer is forty-two, as it always was.")
    place = whole.index("ty-two")
    answers = (
        {"for": "Decision", "thinking": "Hm.", "stop": "length"},
        {"for": "Decision", "text": whole[:place], "stop": "length"},
        {"for": "Decision", "text": whole[place:]},
    )
    with conversation(folder, *answers) as terminal:
        ready(terminal)
        terminal.type("what?\r")
        terminal.wait_for("as it always was.")
        ready(terminal)
        assert "asking again with more room." in terminal.text
        assert terminal.text.count("The answer is") == 1
        assert "The answer is forty-two, as it always was." in terminal.text


def test_M1_a_long_message_shows_its_first_and_last_lines():
    writer = FakeWriter()
    Screen(writer).said("\n".join([*map(str, range(20)), "What is this?"]))
    assert "8\n" in writer.text
    assert "… 9 more lines\n  18\n  19\n  What is this?" in writer.text
