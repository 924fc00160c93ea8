"""The settings of undo: how much of what files were is kept."""

from typing import Annotated

from pydantic import Field

from duckflow.domain.frozen import Frozen


class UndoSettings(Frozen):
    """What is kept so that changes can be taken back."""

    max_mb: Annotated[int, Field(ge=0, le=1_000_000)] = 200
    """Megabytes of old file contents, compressed; past it the oldest requests go first. 0 keeps none."""

    command_files: Annotated[int, Field(ge=0, le=1_000_000)] = 5000
    """Files copied before a command so that undo covers it too; a folder with more is not. 0 copies none."""

    command_mb: Annotated[int, Field(ge=0, le=100_000)] = 32
    """The most megabytes of files copied before a command."""
