"""M1: the summary at the end of a request names the files that differ now."""

from duckflow.domain.events import ActionFinished
from duckflow.domain.files.changes import FileChange
from duckflow.i18n.catalogue import set_language
from duckflow.ui.views.summary import RequestSummary


def finished(*changes: FileChange, removed: tuple[str, ...] = ()) -> ActionFinished:
    return ActionFinished(
        action_id="a",
        operation="shell.run",
        outcome="ok",
        text="",
        changed=tuple(change.path for change in changes),
        removed=removed,
        changes=changes,
        evidence_id="e1",
    )


def test_M1_a_file_that_is_again_as_it_was_is_not_named():
    set_language("en")
    summary = RequestSummary()
    for before, after in (("one", "two"), ("two", "one")):
        summary.note(
            finished(
                FileChange(path="a.txt", before=before, after=after, mode_before=0o644, mode_after=0o644),
                FileChange(path="b.txt", before="x", after=after, mode_before=0o644, mode_after=0o644),
                FileChange(path="run", before="x", after="x", mode_before=0o644, mode_after=0o755),
            )
        )
    made = FileChange(path="made.txt", before=None, after="x", mode_after=0o644)
    summary.note(finished(made, FileChange(path="gone.txt", before="x", after=None)))
    summary.note(finished(FileChange(path="brief.txt", before=None, after="x")))
    summary.note(finished(FileChange(path="brief.txt", before="x", after=None), removed=("brief.txt",)))
    told = summary.text()
    assert "a.txt" not in told
    assert "brief.txt" not in told
    assert all(path in told for path in ("b.txt", "run", "made.txt", "gone.txt"))
