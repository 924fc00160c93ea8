"""The modes: what may happen without asking (SPEC G3). Imports nothing, so that flags can be read at once."""

from typing import Literal, get_args

Mode = Literal["plan", "ask", "edits", "auto"]
MODES: tuple[Mode, ...] = get_args(Mode)
"""The strictest first."""
