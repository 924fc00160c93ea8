"""M1: a reply is drawn block by block as it arrives, in pieces of any size."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.domain.events import ModeChanged, Reply, StoredEvent
from duckflow.domain.live_updates import ReplyPiece, ReplyVoid
from duckflow.ui.output.markdown import render_text
from duckflow.ui.output.reply_stream import MarkdownBlock, MarkdownBlocks, ReplyStream
from duckflow.ui.screen import Screen
from fakes.keyboard import FakeWriter

SOURCE = "# Title\nfirst line\nsecond\n\n- a\n\n  more of a\n- b\n\n"
SOURCE += "Text\n```py\nx = 1\n\ny\n```\nafter `x`\n\nlast"


def blocks(*pieces: str) -> list[MarkdownBlock]:
    splitting = MarkdownBlocks()
    found = [block for piece in pieces for block in splitting.feed(piece)]
    return [*found, *splitting.end()]


def test_blocks_are_headings_paragraphs_lists_and_code():
    assert blocks(SOURCE) == [
        MarkdownBlock("# Title"),
        MarkdownBlock("first line\nsecond\n\n- a\n\n  more of a\n- b"),
        MarkdownBlock("Text"),
        MarkdownBlock("x = 1\n\ny", "py"),
        MarkdownBlock("after `x`"),
        MarkdownBlock("last"),
    ]


@given(st.lists(st.integers(min_value=0, max_value=len(SOURCE)), max_size=8))
def test_pieces_make_no_difference(cuts: list[int]):
    places = [0, *sorted(cuts), len(SOURCE)]
    pieces = [SOURCE[start:end] for start, end in pairwise(places)]
    assert blocks(*pieces) == blocks(SOURCE)


@given(st.text(alphabet="ab`#-\n ~|>1.あ", max_size=80))
def test_nothing_is_lost(source: str):
    kept = "".join("".join(block.text.split()) for block in blocks(source))
    fences = "".join(source.split())
    assert all(kept.count(one) <= fences.count(one) for one in set(kept))
    assert kept.count("a") + kept.count("b") + kept.count("あ") >= sum(
        line.count("a") + line.count("b") + line.count("あ")
        for line in source.split("\n")
        if not line.strip().startswith(("```", "~~~"))
    )


def test_long_code_comes_in_parts_and_an_endless_line_is_not_waited_for():
    parts = blocks("```py\n" + "x = 1\n" * 100 + "```\n")
    assert [part.ends for part in parts] == [False, False, True]
    assert len(blocks("x" * 10_000)) >= 1
    splitting = MarkdownBlocks()
    assert not list(splitting.feed("x" * 3_000))
    list(splitting.feed("x" * 3_000))
    assert len(splitting.rest()) <= 6_001


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_a_streamed_reply_reads_like_a_whole_one(cut: int):
    whole, streamed = FakeWriter(), FakeWriter()
    for writer, step in ((whole, len(SOURCE)), (streamed, cut)):
        stream = ReplyStream(writer)
        for start in range(0, len(SOURCE), step):
            stream.feed(SOURCE[start : start + step])
        stream.end()
    assert streamed.text == whole.text


def test_what_is_being_written_is_shown_until_it_is_finished():
    stream = ReplyStream(FakeWriter())
    stream.feed("日本語の文章が" * 4)
    assert stream.preview(20, 2) == ["の文章が日本語の文章", "が日本語の文章が"]
    stream.feed("\n\nnext\n")
    assert stream.preview(20, 6) == ["next"]


def test_pieces_that_are_void_are_closed_and_the_reply_is_written_anew():
    writer = FakeWriter()
    screen = Screen(writer)
    screen(ReplyPiece(text="wrong"))
    screen(ReplyVoid())
    screen(ReplyPiece(text="right "))
    screen(StoredEvent.model_construct(seq=1, at=None, event=Reply(text="right answer")))
    assert writer.text.count("right") == 1
    assert "right answer" in writer.text


def test_a_very_long_reply_is_written_plainly_and_whole():
    writer = FakeWriter()
    stream = ReplyStream(writer)
    stream.feed("**word**\n\n" * 22_000)
    stream.end()
    assert writer.text.count("word") == 22_000
    assert "**word**" in writer.texts[-1]
    assert "**" not in writer.texts[1]


def test_what_was_just_drawn_is_not_shown_as_being_written_too():
    """Even if the lines are made slowly: drawing may pause after each line."""
    made: list[str] = []
    writer = FakeWriter()
    writer.write = lambda texts: [made.append(text) or shown.append(stream.preview(20, 6)) for text in texts]
    shown: list[list[str]] = []
    stream = ReplyStream(writer)
    stream.feed("the last word")
    assert stream.preview(20, 6) == ["the last word"]
    stream.end()
    assert made == ["\n", "the last word"]
    assert shown == [[], []]


def test_a_note_in_the_middle_of_a_reply_comes_below_it_and_the_reply_is_written_once():
    writer = FakeWriter()
    screen = Screen(writer)
    at = datetime.now(UTC)
    screen(ReplyPiece(text="Here is\n\nthe "))
    screen(StoredEvent(seq=1, at=at, event=ModeChanged(mode="plan")))
    screen(ReplyPiece(text="answer."))
    screen(StoredEvent(seq=2, at=at, event=Reply(text="Here is\n\nthe answer.")))
    assert [writer.text.count(one) for one in ("Here is", "the answer.")] == [1, 1]
    assert writer.text.index("the answer.") < writer.text.index("Mode plan")


def test_names_with_two_underscores_are_shown_as_they_are():
    shown = render_text(
        "Run reversi/__main__.py, __init__ or __all__, **now** and `__x__`.", 80, coloured=False
    )
    assert shown == "Run reversi/__main__.py, __init__ or __all__, now and `__x__`."
    assert render_text("__Very__ much", 80, coloured=False) == "Very much"


def test_an_address_in_angle_brackets_is_shown_once():
    shown = render_text("By Ann <ann@example.org>, see <https://example.org/a>.", 80, coloured=False)
    assert shown == "By Ann <ann@example.org>, see https://example.org/a."
