"""Reviews of changes in words: a line for each finding, its proof in full, and Markdown for CI jobs (O4)."""

from collections.abc import Iterator, Sequence

from duckflow.domain.text import cut
from duckflow.domain.work.review import ReviewFinding, ReviewReport
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import harmless, on_one_line

_COMMAND, _MOST_LEFT_OUT = 100, 10


def review_text(report: ReviewReport, *, details: bool = False) -> str:
    """Return the result of a review: a line with numbers, and a few for each finding, or all `details`."""
    lines = [_head(report)]
    for number, one in enumerate(report.findings, start=1):
        lines += [finding_details(number, one)] if details else _brief(number, one)
    return "\n".join([*lines, *review_notes(report)])


def review_notes(report: ReviewReport) -> Sequence[str]:
    """Return what limits the result: an early end, and files that the model did not get."""
    notes: list[str] = []
    if not report.complete:
        said = text("review.incomplete", outcome=text(f"agents.outcome.{report.outcome}"))
        notes.append(f"{said} {on_one_line(report.problem)}".rstrip())
    if report.left_out:
        more = len(report.left_out) - _MOST_LEFT_OUT
        paths = [on_one_line(path) for path in report.left_out[:_MOST_LEFT_OUT]]
        notes.append(
            text("review.left_out", paths=", ".join([*paths, *([f"… +{more}"] if more > 0 else [])]))
        )
    return notes


def finding_details(number: int, one: ReviewFinding) -> str:
    """Return a finding with its proof in full: command, test, and the end of the output."""
    return "\n".join([*_brief(number, one), *(f"     {line}" for line in _proof(one))])


def proof_line(one: ReviewFinding) -> str:
    """Return one line about the proof of a finding."""
    proof = one.proof
    if proof is None or not one.proven:
        return text(f"review.unproven.{one.outcome}")
    command = cut(on_one_line(proof.command), _COMMAND)
    return text(f"review.proof.{proof.without or 'passes'}", command=command, code=proof.exit_code)


def how_to_see(report: ReviewReport) -> str:
    """Return how a user of the conversation sees the details, empty without findings."""
    return text("review.details") if any(one.proof for one in report.findings) else ""


def changes_name(report: ReviewReport) -> str:
    """Return the name of the changes."""
    return on_one_line(report.changes) or text("review.uncommitted")


def _head(report: ReviewReport) -> str:
    values = {
        "name": changes_name(report),
        "files": report.files,
        "added": report.added,
        "removed": report.removed,
    }
    about = text("review.about", **values)
    key = "review.found" if report.findings else "review.found_nothing"
    return f"{about} {text(key, count=len(report.findings), proven=report.proven)}"


def _brief(number: int, one: ReviewFinding) -> list[str]:
    return [_title(number, one), f"     {on_one_line(one.text)}", f"     {proof_line(one)}"]


def _title(number: int, one: ReviewFinding) -> str:
    mark = "✗" if one.proven else "?"
    severity = text(f"review.severity.{one.severity}")
    return f"  {mark} {number}. {severity} {on_one_line(one.file)}:{one.line}"


def _proof(one: ReviewFinding) -> Iterator[str]:
    if one.proof is None:
        return
    yield f"$ {on_one_line(one.proof.command)}"
    if one.proof.test:
        yield f"{on_one_line(one.proof.test_path)}:"
        yield from (f"  {harmless(line)}" for line in one.proof.test.rstrip("\n").split("\n"))
    yield from (harmless(line) for line in one.proof.output.split("\n") if line.strip())
