"""The five points of an approval as coloured lines; the difference comes below them (SPEC G1)."""

from collections.abc import Iterator

from duckflow.domain.approval import Risk
from duckflow.i18n.catalogue import text
from duckflow.ui.approvals import ApprovalView
from duckflow.ui.colours import Colour

_RISKS: dict[Risk, Colour] = {"low": "green", "medium": "yellow", "high": "red", "forbidden": "red"}


def question_lines(view: ApprovalView) -> Iterator[tuple[str, Colour | None]]:
    """What is asked, its risk, what it is for, why it is asked, what it does, and what else could be done."""
    yield f"\n{view.question}", "bold"
    yield f"  {view.risk_line}", _RISKS[view.risk]
    if view.intent:
        yield text("approval.intent", intent=view.intent), None
    yield view.rationale, None
    for title, points in (
        ("approval.impact_title", view.impact),
        ("approval.instead_title", view.alternatives),
    ):
        if points:
            yield text(title), None
            for point in points:
                yield f"    - {point}", "dim"
    if view.always:
        yield text("approval.always_covers", kind=view.always), "dim"
