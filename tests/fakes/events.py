"""Any event that can happen, for property tests. Follows the models, so a new event or field is covered."""

from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue

from duckflow.domain.decision import Action, Decision
from duckflow.domain.events import Event

EVENT_TYPES: tuple[type[BaseModel], ...] = get_args(get_args(Event)[0])

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.text(
    '日本語、がｶﾞ゛🦆👩\u200d👧🏽🇯🇵e\u0301\u202e\0\n"\\', max_size=8
)
floats = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | floats | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: texts,
    int: st.integers(-(2**63), 2**63 - 1),
    float: floats,
    bool: st.booleans(),
    NoneType: st.none(),
    JsonValue: json_values,
}


def _of(annotation: Any) -> st.SearchStrategy[Any]:
    """Values of a type."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if origin is Literal:
        return st.sampled_from(inner)
    if origin is Annotated:
        return st.floats(0, 1)
    if origin in (Union, UnionType):
        return st.one_of([_of(one) for one in inner])
    if origin is tuple and Ellipsis not in inner:
        return st.tuples(*map(_of, inner))
    if origin is tuple:
        return st.lists(_of(inner[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(_of(inner[0]), _of(inner[1]), max_size=3)
    if issubclass(annotation, Enum):
        return st.sampled_from(annotation)
    return values_of(annotation)


@cache
def values_of(model: type[BaseModel]) -> st.SearchStrategy[Any]:
    """Values of a model, every field of it set."""
    fields = {
        name: st.floats(0, 1) if field.annotation is float and field.metadata else _of(field.annotation)
        for name, field in model.model_fields.items()
    }
    if model is Action:
        fields["operation"] = texts.filter(bool)
    if model is Decision:
        fields["reply"] = texts.filter(str.strip)
    return st.deferred(lambda: st.builds(model, **fields))


# Drawn in two steps: a description of all of them at once would be too long to print.
events = st.sampled_from(EVENT_TYPES).flatmap(values_of)
