"""Lines for the user: a catalogue key and what fills its slots, so that they are shown in any language."""

from pydantic import Field, JsonValue

from duckflow.domain.frozen import Frozen


class TextLine(Frozen):
    """One line."""

    key: str
    values: dict[str, JsonValue] = Field(default_factory=dict)


def line(key: str, /, **values: JsonValue) -> TextLine:
    """The line with this key, its slots filled."""
    return TextLine(key=key, values=values)
