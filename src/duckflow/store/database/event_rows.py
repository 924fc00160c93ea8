"""Converts events to the text of a row and back, without loss."""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from duckflow.domain.events import Event


@cache
def _adapter() -> TypeAdapter[Event]:
    # Built on first use, because it costs more than importing this module.
    return TypeAdapter(Event)


def encode(event: Event) -> str:
    """Return the event as JSON. Invalid Unicode (lone surrogates) becomes question marks."""
    try:
        return event.model_dump_json()
    except PydanticSerializationError:
        body = json.dumps(event.model_dump(), ensure_ascii=False)
        return body.encode("utf-8", "replace").decode()


def decode(body: str) -> Event:
    """Return the event of a row. Raises pydantic's ValidationError if this version does not know it."""
    return _adapter().validate_json(body)


def known_events(bodies: Iterable[str]) -> Iterator[Event]:
    """Yield the events of these rows, skipping those that this version does not know."""
    for body in bodies:
        with suppress(ValidationError):
            yield decode(body)
