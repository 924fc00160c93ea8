"""Events as the text of a row, and back. What was encoded and what is decoded are equal."""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from duckflow.domain.events import Event


@cache
def _adapter() -> TypeAdapter[Event]:
    # Built at first use: it costs more than importing this module.
    return TypeAdapter(Event)


def encode(event: Event) -> str:
    """The event as JSON. Halves of surrogate pairs, which no file can hold, become question marks."""
    try:
        return event.model_dump_json()
    except PydanticSerializationError:
        body = json.dumps(event.model_dump(), ensure_ascii=False)
        return body.encode("utf-8", "replace").decode()


def decode(body: str) -> Event:
    """The event of a body. Raises pydantic's ValidationError where this version knows no such event."""
    return _adapter().validate_json(body)


def known_events(bodies: Iterable[str]) -> Iterator[Event]:
    """The events of bodies, without those this version does not know."""
    for body in bodies:
        with suppress(ValidationError):
            yield decode(body)
