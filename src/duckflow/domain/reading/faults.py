"""Describes validation errors in data of a model or a user, in short sentences that help to correct them."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, get_args

from pydantic import BaseModel, ValidationError

from duckflow.domain.text import cut

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_MOST = 5
"""Largest number of faults to describe to a user."""
_MOST_LISTED = 20
_SHOWN = 60
_EXPECTED = {
    "string_type": "must be a string",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be one of {expected}",
}


def describe_faults(error: ValidationError, model: type[BaseModel]) -> str:
    """Return the faults that pydantic found in one line: the path and problem of each."""
    return "; ".join(list_faults(error.errors(include_url=False), model, _MOST))


def list_faults(
    faults: Sequence["ErrorDetails"], model: type[BaseModel], most: int = _MOST_LISTED
) -> list[str]:
    """Return the faults that pydantic found, one short sentence each."""
    listed = [_sentence(model, fault) for fault in faults[:most]]
    if len(faults) > most:
        listed.append(f"{len(faults) - most} more faults of this kind")
    return listed


def model_at(model: type[BaseModel], loc: Sequence[int | str]) -> type[BaseModel]:
    """Return the model class at this path."""
    for part in loc:
        field = model.model_fields.get(part) if isinstance(part, str) else None
        model = (_model_in(field.annotation) if field else None) or model
    return model


def _sentence(model: type[BaseModel], fault: "ErrorDetails") -> str:
    loc = fault["loc"]
    path = _path(loc)
    if fault["type"] == "missing":
        return f"{path} is missing"
    if fault["type"] == "extra_forbidden":
        return f"{path} is not a field; {_nearest(str(loc[-1]), model_at(model, loc[:-1]).model_fields)}"
    known = _EXPECTED.get(fault["type"])
    message = known.format(**fault.get("ctx", {})) if known else fault["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if not loc:
        return message
    if fault["type"] == "value_error":
        return f"{path} {message}"
    got = cut(repr(fault["input"]), _SHOWN)
    return f"{path}: {message}, not {got}"


def _path(loc: Sequence[int | str]) -> str:
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return "`" + cut(text.removeprefix("."), 2 * _SHOWN) + "`"


def _nearest(name: str, known: Iterable[str]) -> str:
    fields = list(known)
    near = get_close_matches(name[:_SHOWN], fields, n=1)
    return f"did you mean `{near[0]}`?" if near else "known are: " + ", ".join(fields)


def _model_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in get_args(annotation):
        found = _model_in(inner)
        if found:
            return found
    return None
