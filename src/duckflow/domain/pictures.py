"""Pictures the user mentions: what is kept of one is its path and its digest, never its bytes."""

from pydantic import Field

from duckflow.domain.frozen import Frozen

PICTURE_TOKENS = 1600
"""What a picture is counted as: both large wires scale one down to about this."""


class Picture(Frozen):
    """A picture as it was when it was mentioned. `data` is only there on the way to a model, in no event."""

    path: str
    media: str
    digest: str
    data: str = Field(default="", repr=False)
    """Base64."""
