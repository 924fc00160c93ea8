"""Arguments of an operation: from a model's JSON to a valid value, or to sentences it can act on."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, cast

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.domain.model import JsonSchema

_PROBLEMS = {
    "missing": "is missing",
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be one of {expected}",
}


def parse_arguments(operation: str, model: type[Frozen], args: Mapping[str, JsonValue]) -> Frozen:
    """A valid instance of `model`; ToolError with every problem at once. null is as good as left out."""
    fields = model.model_fields
    given = {
        name: value
        for name, value in args.items()
        if value is not None or name not in fields or fields[name].is_required()
    }
    try:
        return model.model_validate(given)
    except ValidationError as exc:
        problems = "; ".join(_sentence(error, model) for error in exc.errors(include_url=False))
        raise ToolError(f"{operation}({signature(model)}) can't be called so: {problems}.") from exc


def signature(model: type[Frozen]) -> str:
    """The names of the arguments; those with a question mark may be left out."""
    fields = model.model_fields.items()
    return ", ".join(name if field.is_required() else f"{name}?" for name, field in fields)


def argument_schema(model: type[Frozen]) -> JsonSchema:
    """The JSON schema of the arguments, as small as it can be: it becomes a grammar or part of a prompt."""
    schema = model.model_json_schema()
    schema.pop("description", None)
    return cast("JsonSchema", _plainer(schema))


def _sentence(error: ErrorDetails, model: type[Frozen]) -> str:
    place = _place(error["loc"])
    if error["type"] == "extra_forbidden":
        return _unknown(place, str(error["loc"][-1]), model if len(error["loc"]) == 1 else None)
    if error["type"] == "value_error":
        return f"{place} {error['msg'].removeprefix('Value error, ')}".lstrip()
    known = _PROBLEMS.get(error["type"])
    if known is None:
        return f"{place}: {error['msg']}" if place else error["msg"]
    return f"{place} {known.format(**error.get('ctx', {}))}"


def _unknown(place: str, name: str, model: type[Frozen] | None) -> str:
    close = get_close_matches(name, model.model_fields, n=1, cutoff=0.5) if model else []
    hint = f", the nearest is {close[0]}" if close else ""
    return f"there is no argument {place[:100]}{hint}"


def _place(location: tuple[int | str, ...]) -> str:
    """edits[0].find, counted as JSON does."""
    words = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return "".join(words).removeprefix(".")


def _plainer(value: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """Without titles, and without null for what may be left out."""
    if isinstance(value, list):
        return [_plainer(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    schema = {
        key: _plainer(item)
        for key, item in cast("dict[str, Any]", value).items()
        if not (key == "title" and isinstance(item, str)) and not (key == "default" and item is None)
    }
    choices = [choice for choice in schema.pop("anyOf", []) if choice != {"type": "null"}]
    return (
        {**schema, **choices[0]}
        if len(choices) == 1
        else {**schema, **({"anyOf": choices} if choices else {})}
    )
