"""Fitting model output to a shape: clear faults are repaired, all others are listed (A6)."""

import json
from typing import Annotated, Literal

from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from duckflow.domain.frozen import Frozen
from duckflow.domain.reading.fitting import as_text, fit
from fakes.rows import every_row


class Part(Frozen):
    """An item of a list in the shape."""

    name: str
    weight: Annotated[float, Field(ge=0, le=1)] = 0.5
    note: str | None = None


class Whole(Frozen):
    """A shape with one field of each kind."""

    title: str = ""
    lines: tuple[str, ...] = ()
    count: int = 1
    sure: bool = False
    level: Literal["low", "high"] = "low"
    rank: Literal[1, 2, 3] = 1
    parts: tuple[Part, ...] = ()
    mixed: tuple[int | str, ...] = ()


MENDED = {
    "a list of lines as a text": ({"title": ["a", "b\n", ""]}, {"title": "a\nb\n"}),
    "lines with their line breaks": ({"title": ["a\n", "\n", "b\n"]}, {"title": "a\n\nb\n"}),
    "a number as a text": ({"title": 7, "lines": [1, 2.5]}, {"title": "7", "lines": ["1", "2.5"]}),
    "an object that holds the text": ({"title": {"text": "a"}}, {"title": "a"}),
    "a text as a list": ({"lines": "a"}, {"lines": ["a"]}),
    "nothing as a list": ({"lines": " ", "parts": ""}, {}),
    "a list in a text": (
        {"lines": '["a", "b"]', "parts": '[{"name": "a"}]'},
        {"lines": ["a", "b"], "parts": [{"name": "a"}]},
    ),
    "one object as a list": ({"parts": {"name": "a"}}, {"parts": [{"name": "a"}]}),
    "an object in a text": ({"parts": ['{"name": "a"}']}, {"parts": [{"name": "a"}]}),
    "its only text as an object": ({"parts": ["a", "b"]}, {"parts": [{"name": "a"}, {"name": "b"}]}),
    "numbers and truths as texts": (
        {"count": "3", "sure": "true", "rank": "2"},
        {"count": 3, "sure": True, "rank": 2},
    ),
    "other letters in a word": ({"level": " HIGH"}, {"level": "high"}),
    "a share in words": (
        {"parts": [{"name": "a", "weight": "90%"}]},
        {"parts": [{"name": "a", "weight": 0.9}]},
    ),
    "a share of a hundred": (
        {"parts": [{"name": "a", "weight": 75}]},
        {"parts": [{"name": "a", "weight": 0.75}]},
    ),
    "null": (
        {"title": None, "lines": ["a", None, "b", None], "parts": None, "count": None},
        {"lines": ["a", "b"]},
    ),
    "unknown fields": ({"x": 1, "parts": [{"name": "a", "y": {}}], "z": []}, {"parts": [{"name": "a"}]}),
    "all of it at several depths": (
        {"parts": {"name": ["a", "b"], "note": 1, "x": 1}},
        {"parts": [{"name": "a\nb", "note": "1"}]},
    ),
}


@every_row(("written", "meant"), MENDED.values(), ids=MENDED.keys())
def test_A6_what_has_one_plain_meaning_fits(written, meant):
    before = json.dumps(written)
    assert fit(Whole, written) == (Whole.model_validate(meant), ())
    assert json.dumps(written) == before


LEFT = {
    "a truth as a text": ({"title": True}, ["`title`: must be a string, not True"]),
    "lists in a list of lines": ({"title": [["a"]]}, ["`title`: must be a string, not [['a']]"]),
    "an object with two texts": (
        {"title": {"a": "b", "c": "d"}},
        ["`title`: must be a string, not {'a': 'b', 'c': 'd'}"],
    ),
    "a word that is no number": ({"count": "many"}, ["`count`: must be a whole number, not 'many'"]),
    "another word": (
        {"level": "medium", "rank": 4},
        ["`level`: must be one of 'low' or 'high', not 'medium'", "`rank`: must be one of 1, 2 or 3, not 4"],
    ),
    "a share of something": (
        {"parts": [{"name": "a", "weight": 7}]},
        ["`parts[0].weight`: must be at most 1.0, not 7"],
    ),
    "no field that is needed": (
        {"parts": [{}, {"nam": "a"}]},
        [
            "`parts[0].name` is missing",
            "`parts[1].name` is missing",
            "`parts[1].nam` is not a field; did you mean `name`?",
        ],
    ),
    "a key twice in a text": (
        {"parts": ['{"name": "a", "name": "b"}', 1]},
        [
            '`parts[0]`: must be an object, not \'{"name": "a", "name": "b"}\'',
            "`parts[1]`: must be an object, not 1",
        ],
    ),
}


@every_row(("written", "faults"), LEFT.values(), ids=LEFT.keys())
def test_A6_all_that_is_not_plain_is_named(written, faults):
    assert list(fit(Whole, written).faults) == faults


def test_A6_the_parts_without_a_fault_are_left_to_be_checked():
    written = {
        "title": "a",
        "count": "many",
        "parts": [{"name": "a"}, {}, {"name": "b", "weight": -1}, {"name": "c"}],
    }
    value, faults = fit(Whole, written)
    assert len(faults) == 3
    assert value == Whole(title="a", parts=(Part(name="a"), Part(name="c")))


def test_A6_arguments_are_held_to_their_names_and_only_some_are_lists_of_lines():
    lines = frozenset({"title"})
    assert fit(Whole, {"title": ["a", "b"], "lines": "c", "count": "2"}, lines) == (
        Whole(title="a\nb", lines=("c",), count=2),
        (),
    )
    _, faults = fit(
        Whole, {"title": {"text": "a"}, "parts": [{"name": ["a"], "weight": "x"}], "x": None, "y": 1}, lines
    )
    assert [fault.split("`")[1] for fault in faults] == ["title", "parts[0].name", "parts[0].weight", "y"]


TEXTS = ["{}", "[]", "high", '{"name": "a"}', "[[", "90%"]
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 200)
    | st.floats(allow_nan=False)
    | st.text(max_size=4)
    | st.sampled_from(TEXTS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "weight", "note", "x", "0"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*Whole.model_fields, "x"]), values, max_size=4))
def test_whatever_a_model_writes_fits_or_is_refused_and_what_fits_already_stays(written):
    value, faults = fit(Whole, written)
    assert all(isinstance(fault, str) for fault in faults)
    try:
        assert Whole.model_validate(written) == value
    except ValidationError:
        assert value is None or Whole.model_validate(value.model_dump()) == value


@every_row(
    ("value", "text"),
    [("a", "a"), (["a", 1], "a\n1"), ({"a": "あ"}, '{"a": "あ"}'), ([{}], "[{}]"), ([], "")],
)
def test_a_value_in_place_of_a_text(value, text):
    assert as_text(value) == text
