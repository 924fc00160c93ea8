"""Cutting text never splits a visible character (E1)."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.domain.text import cut, head_and_tail, in_pieces
from fakes.rows import every_row

FAMILY = "👩‍👩‍👧‍👦"
WHOLE = {
    "family of four": FAMILY,
    "skin tone": "👍🏽",
    "profession with skin tone": "👩🏽‍💻",
    "heart with selector": "❤️",
    "heart on fire": "❤️‍🔥",
    "rainbow flag": "🏳️‍🌈",
    "flag": "🇯🇵",
    "flag of Scotland": "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "keycap": "1️⃣",
    "e with accent": "e\u0301",
    "several marks": "a\u0302\u0323\u0308",
    "kana with a voicing mark": "か\u3099",
    "half-width kana": "ｶﾞ",
    "decomposed Hangul": "\u1112\u1161\u11ab",
    "Devanagari": "नि",
    "Thai": "ก\u0e38",
    "Arabic with vowel": "بَ",
    "Windows line end": "\r\n",
    "letter with a joiner": "ن\u200c",
}


@every_row("character", WHOLE.values(), ids=WHOLE.keys())
def test_E1_what_is_one_character_to_a_reader_stays_whole(character):
    text = "あ" + character * 4
    kept = {"あ" + character * count for count in range(5)}
    for limit in range(2, len(text)):
        shortened = cut(text, limit)
        assert shortened.endswith("…")
        assert shortened[:-1] in kept
        assert len(shortened) <= limit
        assert limit - len(shortened) < len(character)


def test_E1_text_within_the_limit_is_untouched():
    assert cut("日本語", 3) == "日本語"
    assert cut("", 0) == ""


def test_E1_text_over_the_limit_says_that_it_was_cut():
    assert cut("日本語テキスト", 4) == "日本語…"
    assert cut("ab", 1) == "…"
    assert cut("ab", 0) == ""
    assert cut(FAMILY + "x", 3) == "…"


@given(st.text() | st.text(alphabet=FAMILY + "🇯🇵e\u0301か\u3099\r\n"), st.integers(0, 50))
def test_E1_a_cut_text_is_a_beginning_of_the_text_and_never_too_long(text, limit):
    shortened = cut(text, limit)
    assert len(shortened) <= limit
    assert shortened == text or text.startswith(shortened.removesuffix("…"))
    if shortened != text and limit:
        rest = text[len(shortened) - 1 :]
        assert len(shortened) == 1 or unicodedata.combining(rest[0]) == 0


def test_a_long_text_keeps_its_head_and_its_tail():
    assert head_and_tail("abcdef", 6) == "abcdef"
    assert head_and_tail("abcdefgh", 6) == "abc\n… 2 characters left out …\nfgh"
    assert head_and_tail("abcdefg", 1) == "\n… 7 characters left out …\n"
    assert head_and_tail("abcdefg", 0) == "\n… 7 characters left out …\n"


def test_head_and_tail_are_made_of_whole_characters():
    text = FAMILY * 10
    head, left_out, tail = head_and_tail(text, 30).split("\n")
    assert (head, tail) == (FAMILY * 2, FAMILY * 2)
    assert left_out == f"… {len(FAMILY) * 6} characters left out …"


@given(st.text(), st.integers(0, 40))
def test_head_tail_and_what_was_left_out_add_up(text, limit):
    shortened = head_and_tail(text, limit)
    if len(text) <= limit:
        assert shortened == text
        return
    for at in range(limit + 1):
        head = text[:at]
        for size in range(limit + 1 - at):
            tail = text[len(text) - size :]
            if shortened == f"{head}\n… {len(text) - at - size} characters left out …\n{tail}":
                return
    pytest.fail("not a head and a tail of the text")


@given(text=st.text(st.sampled_from("ab\n-"), max_size=60), size=st.integers(1, 10))
def test_pieces_are_whole_lines_and_make_the_text_again(text, size):
    pieces = list(in_pieces(text, size))
    assert "".join(pieces) == text
    assert all(piece.endswith("\n") for piece in pieces[:-1])


def test_a_key_in_several_lines_stays_in_one_piece():
    key = "-----BEGIN KEY-----\nabc\ndef\n-----END KEY-----\n"
    assert list(in_pieces(f"x\n{key}y\n" * 2, 40)) == [f"x\n{key}", f"y\nx\n{key}", "y\n"]
