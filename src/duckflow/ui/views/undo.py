"""What an undo did, and what was found after a crash, as text in the user's language."""

from duckflow.domain.events import Recovered, Rewound, Undone
from duckflow.domain.files.changes import FileChange, UndoReport
from duckflow.domain.text import cut
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import on_one_line

_SHOWN = 20
_MESSAGE = 60


def undo_text(report: UndoReport) -> str:
    """What went back, what did not and why, and what no undo covers."""
    if report.restored:
        key = "undo.undone" if report.kind == "undo" else "undo.redone"
        lines = [text(key, actions=report.actions, files=len({one.path for one in report.restored}))]
    elif report.left:
        lines = [text("undo.not_undone" if report.kind == "undo" else "undo.not_redone")]
    else:
        lines = [text(f"undo.nothing_to_{report.kind}")]
    lines += _some([_file_line(change) for change in report.restored])
    lines += _some(
        [text(f"undo.left_{left.reason}", path=left.path, detail=left.detail) for left in report.left]
    )
    if report.covered:
        lines.append(text("undo.covered", files=", ".join(report.covered[:_SHOWN])))
        lines += _some(list(report.covered))[_SHOWN:]
    if report.commands:
        lines.append(text("undo.commands"))
        lines += _some([f"  $ {' '.join(command.split())}" for command in report.commands])
    return "\n".join(lines)


def undone_text(event: Undone) -> str:
    """The same, from what was stored of it."""
    kind = "redo" if event.redo else "undo"
    report = UndoReport(kind=kind, actions=len(event.takes_back), restored=event.changes, left=event.left)
    return undo_text(report)


def recovered_text(event: Recovered) -> str:
    """What was done before the crash, what was not, and what is unknown."""
    parts = (
        ("recovery.finished", event.finished),
        ("recovery.not_done", (*event.not_done, *event.not_run)),
        ("recovery.unknown", event.unknown),
    )
    lines = [text("recovery.title")]
    for key, named in parts:
        if named:
            lines += [text(key), *_some([f"    {one}" for one in named])]
    if not any(named for _, named in parts):
        lines.append(text("recovery.nothing"))
    lines.append(text("recovery.next"))
    return "\n".join(lines)


def _file_line(change: FileChange) -> str:
    if change.after is None:
        return text("undo.removed", path=change.path)
    return text("undo.brought_back" if change.before is None else "undo.restored", path=change.path)


def _some(lines: list[str]) -> list[str]:
    """All of them, or the first ones and how many more there are."""
    more = len(lines) - _SHOWN
    return lines if more <= 0 else [*lines[:_SHOWN], text("undo.more", count=more)]


def rewound_text(event: Rewound) -> str:
    """That the user went back, with what, and to where."""
    what = "both" if event.files and event.conversation else "files" if event.files else "conversation"
    return text(f"rewind.{what}", text=cut(on_one_line(event.text), _MESSAGE))
