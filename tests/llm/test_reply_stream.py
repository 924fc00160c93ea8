"""The reply as it is being written: whatever the pieces, the same characters as the whole answer has."""

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from duckflow.llm.answers.partial_reply import ReplyExtractor
from duckflow.llm.answers.strict_json import parse_object
from fakes.rows import every_row

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
replies = texts | st.text(alphabet='\\"{}[]:,🦆é\n\tu0d8reply</', max_size=40)
values = st.recursive(
    replies | st.integers() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["reply", "a", 'b"', "reply\\"]), inner, max_size=3)
    ),
    max_leaves=6,
)
others = st.dictionaries(
    st.sampled_from(["a", "b", "actions", "state_delta", 'x"y', "\\"]), values, max_size=3
)


def fed(pieces, **options):
    stream = ReplyExtractor(**options)
    return "".join(stream.feed(piece) for piece in pieces)


def pieces_of(text, cuts):
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[start:end] for start, end in pairwise(places)]


@given(others, replies, others, st.booleans(), st.lists(st.integers(0), max_size=60))
def test_any_chunking_shows_exactly_the_parsed_reply(before, reply, after, ascii_only, cuts):
    text = json.dumps({**before, "reply": reply, **after}, ensure_ascii=ascii_only)
    whole = parse_object(text)["reply"]
    assert fed(pieces_of(text, cuts)) == whole
    assert fed(text) == whole
    assert fed(pieces_of(f"Sure:\n```json\n{text}\n```\n", cuts)) == whole
    assert fed(pieces_of(f'\ufeff\n <think>{{"reply": "no"}}</think> {text}', cuts)) == whole
    assert fed(pieces_of(f"```json\n{text}\n```\n", cuts), plain=True) == whole


@given(st.text(), st.lists(st.integers(0), max_size=30), st.booleans())
def test_any_text_in_any_pieces_shows_the_same_and_never_fails(text, cuts, plain):
    assert fed(pieces_of(text, cuts), plain=plain) == fed(text, plain=plain)


@given(
    st.text(alphabet='{}[]":,\\reply u0d8a\n`<>think/'), st.lists(st.integers(0), max_size=30), st.booleans()
)
def test_any_broken_json_in_any_pieces_shows_the_same_and_never_fails(text, cuts, plain):
    assert fed(pieces_of(text, cuts), plain=plain) == fed(text, plain=plain)


def test_characters_are_shown_as_they_come():
    stream = ReplyExtractor()
    shown = [
        stream.feed(piece)
        for piece in ['{"re', 'ply": "H', "i\\", "n\\ud83e", "\\udd", '86 "', ', "x": "y"}']
    ]
    assert shown == ["", "H", "i", "\n", "", "🦆 ", ""]


NOTHING = {
    "nested": '{"state_delta": {"reply": "no"}}',
    "in a list": '{"actions": [{"reply": "no"}, "reply", "no"]}',
    "a value that says reply": '{"goal": "reply", "x": "no"}',
    "not a string": '{"reply": {"reply": "no"}, "x": ["no"], "y": 1}',
    "a list": '{"reply": ["no"]}',
    "longer key": '{"reply2": "no", "areply": "no"}',
    "null": '{"reply": null, "x": "no"}',
    "no object": "plain words",
    "a list around": '["reply", "no"]',
}


@every_row("text", NOTHING.values(), ids=NOTHING.keys())
def test_only_the_top_level_reply_is_shown(text):
    assert fed(text) == ""


def test_braces_of_prose_begin_no_object():
    assert fed('I fill {name} and { name } in:\n{ "reply": "yes"}') == "yes"


def test_a_key_with_escapes_is_the_same_key():
    assert fed('{"\\u0072eply": "yes"}') == "yes"


@every_row("bad", ["\\x", "\\ud83d.", "\\ud83d\\n", "\\udd86", "\\u12g4", "\\ud83d\\u0041"])
def test_after_a_broken_escape_nothing_more_is_shown(bad):
    assert fed('{"reply": "so far' + bad + ' and on"}') == "so far"


def test_A8_plain_text_is_itself_the_reply_where_that_is_expected():
    assert fed("\n I read `{a}` now.  \n\n", plain=True) == "I read `{a}` now."
    assert fed("```python\nprint()\n```\n", plain=True) == "```python\nprint()\n```"
    assert fed("<think>{hm}</think>\nOk.", plain=True) == "Ok."
    assert fed("<thin air", plain=True) == "<thin air"
    assert fed('{"next_step": "done", "reply": "Hi"}', plain=True) == "Hi"


def test_long_answers_in_tiny_pieces_are_walked_over_once():

    stream = ReplyExtractor()
    stream.feed('{"a": "')
    for _ in range(200_000):
        stream.feed("\\")
        stream.feed('"')
    assert stream.feed('", "reply": "x') == "x"
