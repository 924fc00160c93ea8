"""Escaping: text of models and files must not control the terminal or hide anything (SAFETY 8, 19)."""

import re
import sys
from typing import TextIO

from duckflow.domain.patterns import lazy_regex

_STEERING = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029"
"""Control characters, direction marks, and line ends that only some programs know."""
_CONTROLS = lazy_regex(f"[{_STEERING}]")
_HIDDEN = lazy_regex(
    f"[{_STEERING}"
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U00013430-\U0001343f"
    "\U000e0000-\U000e0fff"  # fillers, joiners, selectors and tags, which have no width
    "\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800"  # unusual blanks
    "\ud800-\udfff\ue000-\uf8ff\U000f0000-\U0010ffff"  # surrogates and private use
    "]"
)


def harmless(shown: str) -> str:
    """Return the text with control characters and direction marks as visible escapes."""
    return _CONTROLS.sub(_revealed, shown)


def visible(shown: str) -> str:
    """Return the text with all invisible characters as visible escapes (SAFETY 8)."""
    return _HIDDEN.sub(_revealed, shown)


def on_one_line(said: str) -> str:
    """Return the text in one line, so that it can't imitate a question."""
    return visible(" ".join(said.split()))


class OutputFailed(OSError):
    """Output can't be written, for example because the disk is full."""


def echo(shown: str, out: TextIO | None = None) -> None:
    """Print a line: escaped on a terminal, unchanged elsewhere. All commands print with this (SAFETY 19)."""
    stream = out or sys.stdout
    try:
        stream.write((harmless(shown) if stream.isatty() else shown) + "\n")
        stream.flush()
    except BrokenPipeError:
        raise  # the reader has closed the pipe, which is not an error
    except OSError as exc:
        raise OutputFailed(exc.strerror or str(exc)) from exc


def _revealed(found: re.Match[str]) -> str:
    return f"\\u{{{ord(found[0]):x}}}"
