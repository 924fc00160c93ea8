"""Texts about undos, rewinds and recovery after a crash."""

from collections.abc import Sequence

from duckflow.domain.events import Recovered, Rewound, Undone
from duckflow.domain.files.caches import is_cache
from duckflow.domain.files.changes import FileChange, UndoReport
from duckflow.domain.text import cut
from duckflow.i18n.catalogue import has_text, text
from duckflow.ui.output.escaping import on_one_line

_SHOWN = 20
_MESSAGE = 60


def undo_text(report: UndoReport) -> str:
    """Return the undone changes, changes that were not undone and why, and commands that can't be undone."""
    if report.restored:
        key = "undo.undone" if report.kind == "undo" else "undo.redone"
        lines = [text(key, actions=report.actions, files=len({one.path for one in report.restored}))]
    elif report.left:
        lines = [text("undo.not_undone" if report.kind == "undo" else "undo.not_redone")]
    else:
        lines = [text(f"undo.nothing_to_{report.kind}")]
    own = sum(_is_gits(change) for change in report.restored)
    caches = sum(is_cache(change.path) for change in report.restored)
    shown = [one for one in report.restored if not _is_gits(one) and not is_cache(one.path)]
    lines += first_lines([_file_line(change) for change in shown])
    lines += [text("undo.caches", count=caches)] if caches else []
    lines += [text("undo.git", count=own)] if own else []
    left = [text(f"undo.left_{one.reason}", path=one.path, detail=one.detail) for one in report.left]
    lines += first_lines(left)
    if report.commands:
        lines.append(text("undo.commands"))
        lines += first_lines([f"  $ {' '.join(command.split())}" for command in report.commands])
    lines += [text("undo.after_stop", count=report.after_stop)] if report.after_stop else []
    lines += [text("undo.remaining", count=report.remaining)] if report.remaining else []
    return "\n".join(lines)


def undone_text(event: Undone) -> str:
    """Return the text about an undo, from its stored event."""
    kind = "redo" if event.redo else "undo"
    report = UndoReport(
        kind=kind,
        actions=len(event.takes_back),
        restored=event.changes,
        left=event.left,
        commands=event.commands,
        remaining=event.remaining,
        after_stop=event.after_stop,
    )
    return undo_text(report)


def recovered_text(event: Recovered) -> str:
    """Return the text about actions that a crash interrupted: finished, not done, or unknown."""
    parts = {
        "recovery.finished": event.finished,
        "recovery.not_done": (*event.not_done, *event.not_run),
        "recovery.unknown": event.unknown,
    }
    listed: list[str] = []
    for key, named in parts.items():
        if named:
            done = event.finished is named
            listed += [text(key), *first_lines([f"    {_in_words(one, done=done)}" for one in named])]
    return "\n".join([text("recovery.title"), *(listed or [text("recovery.nothing")]), text("recovery.next")])


def _in_words(label: str, *, done: bool) -> str:
    """Return an action by its words for the user: the event has its operation and its target."""
    operation, _, target = label.partition(" ")
    key = f"{'did' if done else 'doing'}.{operation.replace('.', '_')}"
    return text(key, target=on_one_line(target)) if has_text(key) else on_one_line(label)


def rewound_text(event: Rewound) -> str:
    """Return the text about a rewind: to which message, and what was rewound."""
    what = "both" if event.files and event.conversation else "files" if event.files else "conversation"
    return text(f"rewind.{what}", text=cut(on_one_line(event.text), _MESSAGE))


def _is_gits(change: FileChange) -> bool:
    return ".git" in change.path.split("/")


def _file_line(change: FileChange) -> str:
    if change.after is None:
        return text("undo.removed", path=change.path)
    return text("undo.brought_back" if change.before is None else "undo.restored", path=change.path)


def first_lines(lines: Sequence[str]) -> Sequence[str]:
    """Return the first lines of a list, and the number of the others."""
    more = len(lines) - _SHOWN
    return lines if more <= 0 else [*lines[:_SHOWN], text("list.more", count=more)]
