"""Strict JSON: what is refused, with which words, and that nothing else is."""

import json
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.llm.answers.strict_json import MAX_BYTES, MAX_DEPTH, MAX_VALUES, UnusableAnswer, parse_object
from fakes.rows import every_row

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**60), 10**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=8)
objects = st.dictionaries(texts, values)


@given(objects, st.booleans(), st.sampled_from([None, 2]))
def test_every_plain_object_is_read_as_it_was_written(value, ascii_only, indent):
    assert parse_object(json.dumps(value, ensure_ascii=ascii_only, indent=indent)) == value


@given(st.text() | st.text(alphabet='{}[]":,\\u0dtrue1-.e+ \n\0\ud800'))
def test_any_text_is_read_or_refused_and_never_read_otherwise_than_the_standard_reader_does(text):
    try:
        value = parse_object("{" + text)
    except UnusableAnswer as fault:
        fault.problem.encode()
    else:
        try:
            standard = json.loads("{" + text.strip(), strict=False)
        except json.JSONDecodeError:
            assert re.search(r",\s*[}\]]|True|False|None|#|//|/\*", text), "read, though it is not plain"
        else:
            assert value == standard


untidy = st.sampled_from(["", " ", "\n", "// so: {\n", "# so\n", "/* a: ] * */", "\t/**/\r\n"])


@st.composite
def untidily(draw, value):
    """JSON with comments and commas that the standard does not know, and Python's words."""
    comma = draw(st.sampled_from(["", ","])) if value else ""
    if isinstance(value, dict):
        inner = [f"{json.dumps(key)}{draw(untidy)}:{draw(untidily(one))}" for key, one in value.items()]
        said = "{" + ",".join(inner) + draw(untidy) + comma + draw(untidy) + "}"
    elif isinstance(value, list):
        said = "[" + ",".join(draw(untidily(one)) for one in value) + comma + draw(untidy) + "]"
    elif value is None or isinstance(value, bool):
        said = draw(st.sampled_from([json.dumps(value), repr(value)]))
    else:
        said = json.dumps(value)
    return draw(untidy) + said + draw(untidy)


@given(objects.flatmap(lambda value: st.tuples(st.just(value), untidily(value))))
def test_A6_comments_last_commas_and_words_of_python_change_nothing(case):
    value, text = case
    assert parse_object(f'{{"x": {text}}}') == {"x": value}


@given(objects, st.data())
def test_every_cut_object_is_refused(value, data):
    whole = json.dumps(value)
    end = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(UnusableAnswer):
        parse_object(whole[:end])


REFUSED = {
    "duplicate key": (
        '{"a": 1, "b": {}, "a": 2}',
        "line 1, column 19, at '\"a\": 2}': the key 'a' appears twice",
    ),
    "duplicate key deep down": ('{"a": [{"b": 1, "b": 1}]}', "the key 'b' appears twice"),
    "duplicate key, one escaped": ('{"a": 1, "\\u0061": 2}', "the key 'a' appears twice"),
    "NaN": ('{"a": NaN}', "'NaN' is not a JSON value"),
    "Infinity": ('{"a": Infinity}', "'Infinity' is not a JSON value"),
    "minus Infinity": ('{"a": -Infinity}', "'-Infinity' is not a JSON value"),
    "float too large": ('{"a": 1e999}', "the number 1e999 is too large"),
    "endless number": ('{"a": ' + "9" * 100_000 + "}", "a number of 100,000 characters"),
    "endless fraction": ('{"a": 0.' + "1" * 100 + "}", "a number of 102 characters"),
    "number with a leading zero": ('{"a": 01}', "'01' is not a JSON value"),
    "hexadecimal": ('{"a": 0x10}', "'0x10' is not a JSON value"),
    "lone surrogate": ('{"a": "\\ud800"}', "half of a surrogate pair"),
    "lone surrogate in a key": ('{"\\udc00": 1}', "half of a surrogate pair"),
    "lone surrogate, raw": ('{"a": "\ud800"}', "half of a surrogate pair"),
    "NUL, raw": ('{"a": "\0"}', "U+0000"),
    "NUL, escaped": ('{"a": "\\u0000"}', "NUL"),
    "NUL between": ('{"a":\0 1}', "expected a value"),
    "escape character, raw": ('{"a": "\x1b[1m"}', "U+001B"),
    "invalid escape": ('{"a": "\\d+"}', "an invalid escape in a string (a backslash is written \\\\)"),
    "single quotes": ("{'a': 1}", "expected a key in double quotes"),
    "bare key": ("{a: 1}", "expected a key in double quotes"),
    "typographic quotes": ("{“a”: 1}", "expected a key in double quotes"),
    "undefined": ('{"a": undefined}', "'undefined' is not a JSON value"),
    "endless comment": ('{"a": 1 /* note }', "expected , or }"),
    "comma alone": ("{,}", "expected a key in double quotes"),
    "two commas": ('{"a": [1,,]}', "expected a value"),
    "number as key": ("{1: 1}", "expected a key in double quotes"),
    "no comma": ('{"a": 1 "b": 2}', "expected , or } after a value"),
    "unescaped quote": ('{"a": "say "hi" now"}', "a quote inside a string is written"),
    "no colon": ('{"a" 1}', "expected : after the key 'a'"),
    "no value": ('{"a": }', "expected a value"),
    "wrong closer": ('{"a": [1}', "expected , or ] after a value"),
    "unterminated string": ('{"a": "b', "the text ends inside this string"),
    "cut in an escape": ('{"a": "b\\u00', "the text ends inside this string"),
    "unterminated object": ('{"a": 1', "at the end: the text ends before the object does"),
    "two objects": ('{"a": 1}\n{"a": 2}', "line 1, column 9, at '\\n{\"a\": 2}': text follows"),
    "an array": ("[1]", "must begin with {"),
    "nothing": ("", "must begin with {"),
    "wide space": ('{"a":\u30001}', "expected a value"),
}


@every_row(("text", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_with_exact_words_and_place_A6(text, words):
    with pytest.raises(UnusableAnswer) as caught:
        parse_object(text)
    assert words in caught.value.problem
    assert len(caught.value.problem) < 300


def test_A6_all_that_is_wrong_but_readable_is_said_at_once():
    with pytest.raises(UnusableAnswer) as caught:
        parse_object('{"a": 1, "a": NaN, "b": [1e999, "\\u0000"], "c": Infinity} and')
    words = [
        "the key 'a' appears twice",
        "'NaN' is not",
        "1e999 is too large",
        "a NUL",
        "'Infinity' is not",
        "text follows",
    ]
    assert len(caught.value.faults) == len(words)
    assert all(word in fault for word, fault in zip(words, caught.value.faults, strict=True))
    with pytest.raises(UnusableAnswer) as caught:
        parse_object('{"a": [' + "NaN," * 1_000)
    assert len(caught.value.faults) == 11


def test_the_place_counts_lines_and_columns_from_one():
    with pytest.raises(UnusableAnswer, match="line 3, column 8, at 'oops}'"):
        parse_object('{\n "日本": 1,\n  "b": oops}')


def test_depth_is_limited_and_ten_thousand_levels_cost_nothing_A6():
    def nested(levels):
        return '{"a":' * levels + "1" + "}" * levels

    assert parse_object(nested(MAX_DEPTH))
    for levels in (MAX_DEPTH + 1, 10_000, 300_000):
        with pytest.raises(UnusableAnswer, match="nested deeper than 64 levels"):
            parse_object(nested(levels))
    with pytest.raises(UnusableAnswer, match="nested deeper"):
        parse_object('{"a":' + "[" * 10_000)
    assert sys.getrecursionlimit() < 10_000


def test_size_is_limited_in_bytes_before_anything_is_read_A6():
    fits = '{"a": "' + "x" * (MAX_BYTES - 9) + '"}'
    assert parse_object(fits)
    with pytest.raises(UnusableAnswer, match="too large: 2,000,001 bytes"):
        parse_object(fits.replace("x", "xx", 1))
    with pytest.raises(UnusableAnswer, match="too large"):
        parse_object('{"a": "' + "鴨" * 700_000 + '"}')


def test_the_number_of_values_is_limited():
    with pytest.raises(UnusableAnswer, match="more than 100,000 values"):
        parse_object('{"a": [' + "0," * MAX_VALUES + "0]}")


def test_raw_line_breaks_and_tabs_in_strings_are_taken_as_they_are():
    assert parse_object('{"a": "one\n\ttwo\r\nthree"}') == {"a": "one\n\ttwo\r\nthree"}


def test_a_byte_order_mark_and_white_space_around_are_tolerated():
    assert parse_object('\ufeff \n{"a": 1}\n\n') == {"a": 1}
