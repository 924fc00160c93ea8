"""Result of a review as Markdown, for the page of a CI job or a comment."""

from collections.abc import Iterator

from duckflow.domain.text import cut
from duckflow.domain.work.review import ReviewFinding, ReviewReport
from duckflow.i18n.catalogue import text
from duckflow.ui.job_summary import code, inert, plain
from duckflow.ui.transcript import fenced
from duckflow.ui.views.review import changes_name, proof_line, review_notes

_TEXT, _PART = 1_500, 6_000


def review_markdown(report: ReviewReport) -> str:
    """Return the result with each finding and its proof."""
    return "\n\n".join(_parts(report)) + "\n"


def _parts(report: ReviewReport) -> Iterator[str]:
    mark = "❌" if report.proven else "✅" if report.complete else "❔"
    key = "review.found" if report.findings else "review.found_nothing"
    values = {"files": report.files, "added": report.added, "removed": report.removed}
    yield f"### {mark} {text(key, count=len(report.findings), proven=report.proven)}"
    yield plain(text("review.about", name=changes_name(report), **values))
    for number, one in enumerate(report.findings, start=1):
        yield from _finding(number, one)
    for note in review_notes(report):
        yield plain(note)
    if report.reply.strip():
        yield inert(report.reply.strip())


def _finding(number: int, one: ReviewFinding) -> Iterator[str]:
    state = text("review.markdown.proven" if one.proven else "review.markdown.unproven")
    severity = text(f"review.severity.{one.severity}")
    yield f"#### {number}. {code(f'{one.file}:{one.line}')} · {severity} · {state}"
    yield plain(cut(one.text, _TEXT))
    if one.proof is None or not one.proven:
        yield plain(proof_line(one))
        return
    yield plain(text(f"review.markdown.{one.proof.without or 'passes'}", code=one.proof.exit_code))
    yield fenced(one.proof.command, "sh")
    if one.proof.test:
        yield code(one.proof.test_path)
        yield fenced(cut(one.proof.test, _PART), "")
    if one.proof.output.strip():
        yield fenced(cut(one.proof.output, _PART), "text")
