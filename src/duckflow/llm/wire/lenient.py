"""Base classes for data from servers: only the fields we read are declared, others are ignored."""

import json
from typing import Self

from pydantic import BaseModel, ConfigDict


class LenientModel(BaseModel):
    """Base of data from servers. Unlike our own data it allows unknown fields, since servers add them."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    @classmethod
    def from_json(cls, data: str | bytes) -> Self:
        """Parse JSON, or raise ValueError. Accepts lone surrogates, since some servers split an emoji."""
        try:
            return cls.model_validate(json.loads(data))
        except RecursionError as exc:
            raise ValueError("nested too deep") from exc


class StreamedError(Exception):
    """Error inside a server's stream, with the HTTP status that fits it.

    `said` is the part of the event that describes it; if empty, the whole event does.
    """

    def __init__(self, status: int, said: str = "") -> None:
        super().__init__(status)
        self.status = status
        self.said = said
