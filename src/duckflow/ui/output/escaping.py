"""What a model or a file says must neither steer the terminal nor hide anything (SAFETY 8, 19)."""

import re
import sys
from typing import TextIO

from duckflow.domain.patterns import lazy_regex

_STEERING = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029"
"""Control characters, direction, and line ends that only some programs see."""
_CONTROLS = lazy_regex(f"[{_STEERING}]")
_HIDDEN = lazy_regex(
    f"[{_STEERING}"
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U00013430-\U0001343f"
    "\U000e0000-\U000e0fff"  # without a width: fillers, joiners, selectors, tags
    "\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800"  # blanks of other kinds
    "\ud800-\udfff\ue000-\uf8ff\U000f0000-\U0010ffff"  # without a meaning of their own
    "]"
)


def harmless(shown: str) -> str:
    """The text with everything made visible that steers a terminal or turns the order of what is drawn."""
    return _CONTROLS.sub(_revealed, shown)


def visible(shown: str) -> str:
    """The text with everything made visible that draws nothing, or turns what is drawn around (SAFETY 8)."""
    return _HIDDEN.sub(_revealed, shown)


def on_one_line(said: str) -> str:
    """A text that stays on its line, so that it can't draw a question of its own."""
    return visible(" ".join(said.split()))


class OutputFailed(OSError):
    """What is printed can't be written, for one because the disk is full: for the user to mend."""


def echo(shown: str, out: TextIO | None = None) -> None:
    """Print a line on standard output, or another stream: what every command prints goes through here.

    On a terminal it is made harmless, anywhere else it stays as it is (SAFETY 19).
    """
    stream = out or sys.stdout
    try:
        stream.write((harmless(shown) if stream.isatty() else shown) + "\n")
        stream.flush()
    except BrokenPipeError:
        raise  # whoever read has gone: a usual end, not a fault
    except OSError as exc:
        raise OutputFailed(exc.strerror or str(exc)) from exc


def _revealed(found: re.Match[str]) -> str:
    return f"\\u{{{ord(found[0]):x}}}"
