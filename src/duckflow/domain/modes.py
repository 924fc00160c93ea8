"""Permission modes: what may happen without asking (G3). Imports nothing, so that flags are parsed fast."""

from typing import Literal, get_args

Mode = Literal["plan", "ask", "edits", "auto"]
MODES: tuple[Mode, ...] = get_args(Mode)
"""All modes, the strictest first."""
