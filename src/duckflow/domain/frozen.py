"""Base class of all data in this package: immutable, and unknown fields are errors."""

from typing import TYPE_CHECKING, ParamSpec, Protocol, Self, TypeVar

from pydantic import BaseModel, ConfigDict

P = ParamSpec("P")
Changed_co = TypeVar("Changed_co", covariant=True)


class Frozen(BaseModel):
    """An immutable value. Use `replace` to get a changed copy.

    Write field defaults with `model_construct()`, because building the validators of models slows the start.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    if not TYPE_CHECKING:  # The type checker derives it from the fields, so that it can check changes.

        def __replace__(self, **changes: object) -> Self:
            return self.model_copy(update=changes)


class _Replaceable(Protocol[P, Changed_co]):
    def __replace__(self, *args: P.args, **kwargs: P.kwargs) -> Changed_co: ...


def replace(value: _Replaceable[P, Changed_co], *args: P.args, **changes: P.kwargs) -> Changed_co:
    """Return a copy with these fields changed. The type checker checks their names and types."""
    return value.__replace__(*args, **changes)
