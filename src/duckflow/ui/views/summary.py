"""Summary at the end of a request: what was made or changed, what ran, and how to try it (M1)."""

import posixpath
import re
from collections.abc import Iterator

from duckflow.domain import events
from duckflow.domain.decision import Action
from duckflow.domain.files.caches import is_cache
from duckflow.domain.files.changes import FileChange
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.text import cut
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import on_one_line

_MOST_FILES, _MOST_COMMANDS, _COMMAND = 8, 3, 80
_MOVE = "file_ops.move_file"
_TEXTS = (".md", ".rst", ".txt", ".csv", ".tsv", ".json", ".toml", ".yaml", ".yml", ".ini", ".cfg")
_LOOKS = lazy_regex(
    r"\s*(ls|cat|cd|pwd|echo|git|grep|rg|head|tail|wc|find|sed|tree|which|file|stat|rm|mkdir)\b"
)
_SHORTENED = lazy_regex(r"\s*(2>&1\s*)?(\|\s*(tail|head)\b[^|;&]*)?$")
"""End of a command that only shortens its output."""
_TESTS = lazy_regex(r"\btests?\b|pytest|unittest|\btox\b|\bcheck\b", re.IGNORECASE)


_Kept = tuple[str, int | None] | None


def _kept(content: str | None, mode: int | None) -> _Kept:
    return None if content is None else (content, mode)


class RequestSummary:
    """Collects the file changes and commands of one request, from its events."""

    def __init__(self) -> None:
        self._request = ""
        self._clear()

    def _clear(self) -> None:
        self._files: dict[str, tuple[_Kept, _Kept]] = {}
        """For each path, its content and mode before the request and now; None if it does not exist."""
        self._moved: set[str] = set()
        self._commands: dict[str, None] = {}
        """Commands that succeeded since the last change of a file, oldest first."""

    def __bool__(self) -> bool:
        """Return whether the request has changed files."""
        return any(True for _ in self._net())

    @property
    def wrote_code(self) -> bool:
        """True if the request wrote a program, which can be tested, and not only text or data."""
        written = (path for path, (_, now) in self._net() if now and path not in self._moved)
        return any(posixpath.splitext(path)[1].lower() not in _TEXTS for path in written)

    def note(self, event: events.Event, action: Action | None = None) -> None:
        """Note an event. `action` is the call that an `ActionFinished` ends."""
        match event:
            case events.UserMessage() if event.request_id != self._request:
                self._request = event.request_id
                self._clear()
            case events.Undone() | events.Rewound():
                self._clear()
            case events.ActionFinished() if event.outcome == "ok":
                self._finish(event, action)
            case _:
                pass

    def _finish(self, event: events.ActionFinished, action: Action | None) -> None:
        known = {change.path: change for change in event.changes}
        changed = [path for path in event.changed if not is_cache(path)]
        self._moved |= set(changed) if event.operation == _MOVE else set()
        for path in changed:
            change = known.get(path, FileChange(path=path, before="?", after=f"? {event.action_id}"))
            before, _ = self._files.get(path, (_kept(change.before, change.mode_before), None))
            after = None if path in event.removed else _kept(change.after, change.mode_after)
            self._files[path] = (before, after)
        command = str(action.args.get("command", "")) if action else ""
        if changed:
            self._commands = {}
        elif (
            event.operation == "shell.run"
            and event.exit_code == 0
            and not (event.tests_failed or _LOOKS.match(command))
        ):
            whole = _SHORTENED.sub("", command)
            self._commands.pop(whole, None)
            self._commands[whole] = None

    def _net(self) -> Iterator[tuple[str, tuple["_Kept", "_Kept"]]]:
        """Return the files that differ from what they were before the request."""
        return ((path, (before, now)) for path, (before, now) in self._files.items() if before != now)

    def text(self) -> str:
        """Return the summary, empty if the request changed no file."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        found: dict[str, list[str]] = {"created": [], "changed": [], "deleted": []}
        for path, (before, now) in self._net():
            found["deleted" if not now else "changed" if before else "created"].append(path)
        named = [text(f"ending.{kind}", files=_some(paths)) for kind, paths in found.items() if paths]
        if not named:
            return
        yield text("ending.files", files=text("ending.and").join(named))
        ran = [on_one_line(command) for command in self._commands if len(command) <= _COMMAND][
            -_MOST_COMMANDS:
        ]
        if ran:
            yield text("ending.checked", commands=" · ".join(f"$ {one}" for one in ran))
        names = {posixpath.basename(path) for kind in ("created", "changed") for path in found[kind]}
        tries = [one for one in ran if not _TESTS.search(one) and any(name in one for name in names)]
        if tries:
            yield text("ending.try", command=tries[-1])


def _some(paths: list[str]) -> str:
    more = f" … +{len(paths) - _MOST_FILES}" if len(paths) > _MOST_FILES else ""
    return ", ".join(cut(on_one_line(path), _COMMAND) for path in paths[:_MOST_FILES]) + more
