"""Exit codes of all parts of a command's last pipeline; bash itself reports only that of the last part.

When bash exits, it writes its PIPESTATUS to a file in the commands' temporary folder, unless the command
ended with `exit`. Other shells have no PIPESTATUS, so with them the command runs unchanged.
"""

import os
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote

from duckflow.domain.frozen import replace
from duckflow.domain.patterns import lazy_regex
from duckflow.safety.descriptors import read_regular
from duckflow.safety.sandbox.view.confinement import LaunchOrder

_LONGEST = 2_000
_MOST_PARTS = 50
_READER_LEFT = (141, 120)
"""Exit codes of a program whose reader, such as `head`, stopped reading: SIGPIPE, and that of Python."""

_ANSWERS = frozenset(
    {"grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "diff", "cmp", "pgrep", "test", "["}
)
_NO = (1, 123)
"""Exit codes that mean "no" for these programs: 1 if nothing is found or files differ, 123 from xargs."""

_CALLERS = frozenset({"xargs", "git", "find", "timeout", "env", "time", "nice", "command", "sudo"})
_ASSIGNMENT = lazy_regex(r"[A-Za-z_]\w*=\S*")
_HERE_DOCUMENT = lazy_regex(r"<<-?[ \t]*(['\"]?)(\w+)\1([^\n]*)\n.*?^[ \t]*\2$", re.DOTALL | re.MULTILINE)
_TOKENS = lazy_regex(
    r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|\$\(|\$\{|[(){}]|&>>?|>&|<&|>\||\|\||&&|\|&|[|;&\n]|[^\\'\"$(){}&<>|;\n]+|.",
    re.DOTALL,
)
_LEADING = frozenset({"do", "then", "else", "elif", "if", "while", "until", "!", "{", "time"})


def watch_pipeline(order: LaunchOrder, temporary: Path) -> tuple[LaunchOrder, Path | None]:
    """Return an order that records PIPESTATUS, and the file for it; the file is None without pipe or bash."""
    *shell, command = order.argv
    if "|" not in command or not shell or not shell[-2].endswith("/bash"):
        return order, None
    name = f".{secrets.token_hex(8)}"
    file = quote(f"{order.env['TMPDIR']}/{name}")
    # PIPESTATUS is saved first, because the test `[[ … ]]` overwrites it
    says = 'printf "%s " "${_ended[@]}"'
    kept = '_ended=("${PIPESTATUS[@]}")'
    note = f"{{ {kept}; [[ $BASH_COMMAND = exit* ]] || {says} > {file}; }} 2> /dev/null"
    watched = f"trap {quote(note)} EXIT\n{command}"
    return replace(order, argv=(*shell, watched)), temporary / "own" / name


def read_statuses(file: Path) -> tuple[int, ...]:
    """Read the recorded exit codes. Commands can write to the file, so only valid codes are accepted."""
    said = read_regular(file, _LONGEST) or b""
    with suppress(OSError):
        file.unlink()
    words = said.split()
    plain = all(word.isdigit() and len(word) <= len("255") for word in words)
    return tuple(map(int, words)) if plain and len(words) <= _MOST_PARTS else ()


def end_of_pipeline(command: str, statuses: Sequence[int], code: int) -> tuple[int, str]:
    """Return the exit code, that of the first failed part if the shell reports success, and a text.

    The text has the exit codes of all parts, where that is worth showing.
    """
    if len(statuses) < len("ab") or not any(statuses):
        return code, ""
    parts = next((one for one in reversed(pipelines(command)) if len(one) == len(statuses)), ())
    names = [_name(part) for part in parts] or [f"part {at}" for at in range(1, len(statuses) + 1)]
    failed = [
        status
        for at, status in enumerate(statuses[:-1])
        if status and status not in _READER_LEFT and not (status in _NO and parts and _answers(parts[at]))
    ]
    told = [status for status in statuses[:-1] if status and status not in _READER_LEFT]
    text = (
        " | ".join(f"{name} {status}" for name, status in zip(names, statuses, strict=True)) if told else ""
    )
    return code or (failed[0] if failed else 0), text


def pipelines(command: str) -> list[tuple[str, ...]]:
    """Split a command into pipelines, and each pipeline into parts, as far as possible without running it."""
    found: list[list[str]] = [[""]]
    depth = 0
    for match in _TOKENS.finditer(_HERE_DOCUMENT.sub(r"<< \2\3", command)):
        token = match[0]
        depth += (token in ("(", "{", "$(", "${")) - (token in (")", "}") and depth > 0)
        if depth or token not in ("|", "|&", "||", "&&", ";", "&", "\n"):
            found[-1][-1] += token
        elif token in ("|", "|&"):
            found[-1].append("")
        else:
            found.append([""])
    return [tuple(part.strip() for part in one) for one in found if any(part.strip() for part in one)]


def _words(part: str) -> list[str]:
    words = part.split()
    while words and (words[0] in _LEADING or _ASSIGNMENT.fullmatch(words[0])):
        words.pop(0)
    return words


def _name(part: str) -> str:
    """Return a short name for the program in a part: `python -m pytest` becomes pytest."""
    if part.startswith(("(", "{")):
        return f"{part[0]}…{')' if part[0] == '(' else '}'}"
    words = _words(part)
    if "-m" in words[:3] and words.index("-m") + 1 < len(words):
        return words[words.index("-m") + 1]
    return os.path.basename(words[0].strip("'\"(")) if words else part[:20]


def _answers(part: str) -> bool:
    """Return whether the part's program, or a program that xargs starts there, says "no" by exit code 1."""
    words = [os.path.basename(word) for word in _words(part)]
    wanted = words if words and words[0] in _CALLERS else words[:1]
    return not _ANSWERS.isdisjoint(wanted)
