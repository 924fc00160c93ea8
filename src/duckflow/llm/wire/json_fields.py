"""Typed access to JSON from servers: only the fields we read are checked, and any of them may be missing."""

import json
from typing import Self, TypeVar, cast

from pydantic import JsonValue

Value = TypeVar("Value")


class JsonFields:
    """JSON object from a server. A missing or null field counts as empty; a wrong type raises ValueError."""

    def __init__(self, values: dict[str, JsonValue] | None = None) -> None:
        self.values = values or {}

    @classmethod
    def parse(cls, data: str | bytes) -> Self:
        """Parse JSON, or raise ValueError. Accepts lone surrogates, since some servers split an emoji."""
        try:
            values = json.loads(data)
        except RecursionError as exc:
            raise ValueError("nested too deep") from exc
        if not isinstance(values, dict):
            raise ValueError("not an object")  # noqa: TRY004 - invalid data, not a mistake in our code
        return cls(cast("dict[str, JsonValue]", values))

    def text(self, name: str) -> str:
        """Return a field that is a text."""
        return self._get(name, str, "")

    def count(self, name: str) -> int:
        """Return a field that is a whole number."""
        value = self.values.get(name)
        if isinstance(value, float) and value.is_integer():
            return int(value)
        return self._get(name, int, 0)

    def inner(self, name: str) -> "JsonFields":
        """Return a field that is an object."""
        return JsonFields(self._get(name, dict, {}))

    def objects(self, name: str) -> "list[JsonFields]":
        """Return a field that is a list of objects."""
        return [JsonFields({"item": item}).inner("item") for item in self._get(name, list, [])]

    def joined(self, name: str, part: str = "text") -> str:
        """Return a field that is a text, or a list of objects whose field `part` has the text."""
        if isinstance(self.values.get(name), str):
            return self.text(name)
        return "".join(item.joined(part) for item in self.objects(name))

    def json(self, name: str) -> str:
        """Return an object field as JSON text, which some servers send instead of the object."""
        value = self.values.get(name) or ""
        return value if isinstance(value, str) else json.dumps(self.inner(name).values, ensure_ascii=False)

    def _get(self, name: str, kind: type[Value], empty: Value) -> Value:
        value = self.values.get(name)
        if value is None:
            return empty
        if not isinstance(value, kind):
            raise ValueError(f"{name} is no {kind.__name__}")  # noqa: TRY004 - as above
        return value


class StreamedError(Exception):
    """Error inside a server's stream, with the HTTP status that fits it and, if known, a description."""

    def __init__(self, status: int, said: str = "") -> None:
        super().__init__(status)
        self.status = status
        self.said = said
