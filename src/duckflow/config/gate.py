"""The settings of the gate: from where on a change is a large one."""

from typing import Annotated

from pydantic import Field

from duckflow.domain.frozen import Frozen


class GateSettings(Frozen):
    """What makes a change so large that it is asked about in every mode."""

    many_files: Annotated[int, Field(ge=1, le=1_000_000)] = 20
    """Files that may change before you are asked again, in modes that do not ask anyway."""

    large_bytes: Annotated[int, Field(ge=1_000, le=64_000_000)] = 200_000
    """Bytes that may be written at once before you are asked."""
