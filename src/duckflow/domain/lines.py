"""Lines for the user, as a catalogue key with values, so that they can be shown in any language."""

from pydantic import Field, JsonValue

from duckflow.domain.frozen import Frozen


class TextLine(Frozen):
    """A catalogue key and the values for its slots."""

    key: str
    values: dict[str, JsonValue] = Field(default_factory=dict)


def line(key: str, /, **values: JsonValue) -> TextLine:
    """Return the line with this key and these slot values."""
    return TextLine(key=key, values=values)
