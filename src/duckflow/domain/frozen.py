"""The base of all data here: frozen, and a field nobody declared is an error."""

from typing import TYPE_CHECKING, ParamSpec, Protocol, Self, TypeVar

from pydantic import BaseModel, ConfigDict

P = ParamSpec("P")
Changed_co = TypeVar("Changed_co", covariant=True)


class Frozen(BaseModel):
    """A value. Change it with `replace`, which gives a new one.

    Its validator is built when it is first needed. `model_construct()`, a value of nothing but defaults, does
    not need it: so write defaults of fields, or a start builds validators that nobody uses.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    if not TYPE_CHECKING:  # the type checker works it out from the fields, so that changes are checked

        def __replace__(self, **changes: object) -> Self:
            return self.model_copy(update=changes)


class _Replaceable(Protocol[P, Changed_co]):
    def __replace__(self, *args: P.args, **kwargs: P.kwargs) -> Changed_co: ...


def replace(value: _Replaceable[P, Changed_co], *args: P.args, **changes: P.kwargs) -> Changed_co:
    """The same value with these fields changed. The type checker knows their names and types."""
    return value.__replace__(*args, **changes)
