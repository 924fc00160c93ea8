"""The base of all data here: frozen, and a field nobody declared is an error."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A value. Change it with `model_copy(update=...)`, which gives a new one."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
