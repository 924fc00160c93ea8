"""Convert a model's JSON arguments to a valid value, or to errors that the model can act on."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from pydantic import AfterValidator, JsonValue

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.domain.model import JsonSchema
from duckflow.domain.reading.fitting import fit

_LINES = frozenset({"content", "find", "replace", "text", "description"})
"""Arguments that may be a list of lines. For a command or a path, a list would mean something else."""


def parse_arguments(operation: str, model: type[Frozen], args: Mapping[str, JsonValue]) -> Frozen:
    """Return a valid instance of `model`. Raise ToolError with all problems. null counts as missing."""
    fields = model.model_fields
    given = {
        name: value
        for name, value in args.items()
        if value is not None or name not in fields or fields[name].is_required()
    }
    value, faults = fit(model, given, _LINES)
    if faults or value is None:
        problems = "; ".join(faults)
        problems += "" if problems.endswith("?") else "."
        raise ToolError(f"{operation}({signature(model)}) can't be called so: {problems}", "reason.call")
    return value


def one_to(most: int) -> AfterValidator:
    """Limit a list to 1 to `most` items. Limits in the schema would make a small model's grammar huge."""

    def check(value: tuple[object, ...] | None) -> tuple[object, ...] | None:
        if value is not None and not 1 <= len(value) <= most:
            raise ValueError(f"must have 1 to {most} items, not {len(value)}")
        return value

    return AfterValidator(check)


def signature(model: type[Frozen]) -> str:
    """Return the names of the arguments, each optional one with a question mark."""
    fields = model.model_fields.items()
    return ", ".join(name if field.is_required() else f"{name}?" for name, field in fields)


@lru_cache(maxsize=256)
def argument_schema(model: type[Frozen]) -> JsonSchema:
    """Return the JSON schema of the arguments, kept small because it becomes a grammar or part of prompts."""
    schema = model.model_json_schema()
    schema.pop("description", None)
    return cast("JsonSchema", _plainer(schema))


def _plainer(value: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """Remove titles, and null for optional values."""
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
    if len(choices) > 1:
        return {**schema, "anyOf": choices}
    return {**schema, **choices[0]} if choices else schema
