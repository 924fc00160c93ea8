"""All settings, by dotted key (`llm.embedded.window`) and by environment variable."""

from collections.abc import Iterator, Mapping
from functools import cache
from types import NoneType
from typing import Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from duckflow.config.settings import Settings
from duckflow.domain.frozen import Frozen

SHORT_VARIABLES: Mapping[str, str] = {
    "DUCKFLOW_MODEL": "llm.model",
    "DUCKFLOW_MODE": "mode",
    "DUCKFLOW_LANGUAGE": "language",
}
"""Environment variables that have a short name instead of DUCKFLOW_SECTION__KEY."""

REMOVED = (
    *("duck_pacemaker.base_loops", "duck_pacemaker.factors", "duck_pacemaker.complexity"),
    *("duck_pacemaker.vitals", "duck_pacemaker.dynamic_limits.min_loops", "duck_pacemaker.budget.warn_share"),
    *("duck_pacemaker.learning.least_requests", "duck_pacemaker.learning.reach", "prompt"),
    *("evaluation.done_at", "evaluation.unproven_at_most", "evaluation.weights", "memory.max_entries"),
    *("llm.candidates_time_s", "web.max_bytes", "web.timeout_s"),
)
"""Settings of earlier versions that no longer exist. No similar key is suggested for them."""


@cache
def leaves() -> Mapping[str, FieldInfo]:
    """Return every setting that holds a value, by dotted key, in the order of the models."""
    return dict(_walk(Settings, ""))


@cache
def sections() -> frozenset[str]:
    """Return every dotted key that holds further settings."""
    parts = (key.split(".") for key in leaves())
    return frozenset(".".join(part[:end]) for part in parts for end in range(1, len(part)))


def _walk(model: type[Frozen], prefix: str) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, Frozen):
            yield from _walk(inner, f"{prefix}{name}.")
        else:
            yield prefix + name, field


def variable_for(key: str) -> str:
    """Return the environment variable that sets a key: `llm.fast` is DUCKFLOW_LLM__FAST."""
    short = {setting: variable for variable, setting in SHORT_VARIABLES.items()}
    return short.get(key) or "DUCKFLOW_" + key.replace(".", "__").upper()


def nearest(key: str) -> str | None:
    """Return the closest known key: the same last word in another section, otherwise a similar spelling."""
    import difflib  # noqa: PLC0415 - only a mistake needs it

    if key.startswith(REMOVED):
        return None
    known = [*leaves(), *sections()]
    words = {one.rpartition(".")[2]: one for one in reversed(known)}
    last = key.rpartition(".")[2]
    if last in words:
        return words[last]
    if alike := difflib.get_close_matches(key, known, n=1, cutoff=0.6):
        return alike[0]
    alike = difflib.get_close_matches(last, words, n=1, cutoff=0.7)
    return words[alike[0]] if alike else None


def choices(annotation: object) -> tuple[object, ...]:
    """Return all values that a setting can have; empty if they can't be listed."""
    if annotation is bool:
        return (True, False)
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if get_origin(annotation) is not Union:
        return ()
    parts = [choices(part) for part in get_args(annotation) if part is not NoneType]
    return tuple(value for part in parts for value in part) if all(parts) else ()
