"""Pictures the user mentions: what is kept of one is its path and its digest, never its bytes."""

from pydantic import Field

from duckflow.domain.frozen import Frozen

PICTURE_TOKENS = 1600
"""What a picture is counted as: both large wires scale one down to about this."""


class Picture(Frozen):
    """A picture as it was when it was mentioned. `data` is there only on the way to a model."""

    path: str
    media: str
    digest: str
    data: str = Field(default="", repr=False, exclude=True)
    """Base64."""
