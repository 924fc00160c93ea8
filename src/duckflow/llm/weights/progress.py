"""How far an installation is; whoever asked for it draws the bar."""

from collections.abc import Callable
from typing import Literal

from duckflow.domain.frozen import Frozen

Source = Literal["file", "hub", "wheels", "check"]


class Progress(Frozen):
    """Bytes of the finished file that are there. `source` says from where they come; `check` is the hash."""

    done_bytes: int
    total_bytes: int
    source: Source


Report = Callable[[Progress], None]
