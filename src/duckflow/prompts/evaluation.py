"""The prompt of a verdict: how far the evidence shows each requirement to be met."""

from collections.abc import Iterable

from duckflow.domain.frozen import replace
from duckflow.domain.model import JsonSchema, ModelRequest, ModelTraits
from duckflow.domain.text import cut, head_and_tail
from duckflow.domain.work.objective import REPLY, EvaluationCase
from duckflow.prompts.evidence import harmless
from duckflow.prompts.questions import MOST_EVIDENCE, question_request, whole_request
from duckflow.prompts.sections import object_schema
from duckflow.prompts.templates import template

_SOURCES = 30_000
"""Token limit of the evidence for a reply that informs."""

_REPLY, _SMALL_REPLY = 12_000, 1_200
_LINE = 300


def satisfaction_request(traits: ModelTraits, case: EvaluationCase) -> ModelRequest:
    """Build the request for a verdict."""
    reply = harmless(head_and_tail(case.reply.strip(), _SMALL_REPLY if traits.small else _REPLY))
    about = [
        f"[{REPLY}] What the user was told:\n{reply or '(nothing)'}",
        "Requirements\n" + "\n".join(_numbered(case, with_priority=not traits.small)),
        _situation(case),
    ]
    system = template("satisfaction_small" if traits.small else "satisfaction")
    request = question_request(
        "SatisfactionEvaluation",
        traits,
        system,
        about,
        case.request,
        case.evidence,
        most_evidence=_SOURCES if case.information else MOST_EVIDENCE,
    )
    return replace(request, answer_schema=small_verdict_schema(case)) if traits.small else request


def small_verdict_schema(case: EvaluationCase) -> JsonSchema:
    """Return the schema of a short verdict: what is missing, then one of three scores per requirement."""
    count = max(len(case.requirements), 1)
    ids = [one.evidence_id for one in case.evidence if one.current and one.supports != "nothing"]
    ids = [*ids, REPLY] if case.information or not ids else ids
    score = object_schema(
        requirement={"enum": [str(place) for place in range(1, count + 1)]},
        evidence={"type": "array", "items": {"enum": ids}, "maxItems": 2},
        score={"enum": [0, 0.5, 1]},
    )
    return object_schema(
        missing_aspects={"type": "array", "items": {"type": "string"}, "maxItems": 2},
        requirement_scores={"type": "array", "items": score, "minItems": count, "maxItems": count},
        quality_assessment={"enum": ["good", "fair", "poor"]},
        completion_recommendation={"type": "boolean"},
    )


def _numbered(case: EvaluationCase, *, with_priority: bool) -> Iterable[str]:
    """Yield the requirements as numbered lines. One that equals the request does not repeat it."""
    for place, one in enumerate(case.requirements, start=1):
        whole = one.requirement == whole_request(case.request)
        priority = f" (priority {one.priority})" if with_priority else ""
        yield f"{place}. {'the request as a whole' if whole else one.requirement}{priority}"


def _situation(case: EvaluationCase) -> str:
    if case.information:
        lines = ["Nothing was changed or run: judge the reply itself. Its sources are the evidence."]
    else:
        done = "Files were changed" if case.changed else "Commands were run, and no file was changed"
        lines = [f"{done}: judge the evidence. The reply is only a claim."]
    if case.verification == "failed":
        lines.append("A required check failed.")
    failed = [one for one in case.checks if one.state == "failed"]
    if new := [one.name for one in failed if not one.before]:
        lines.append(f"Checks that failed: {cut(', '.join(new), _LINE)}")
    if old := [one.name for one in failed if one.before]:
        names = cut(", ".join(old), _LINE)
        lines.append(f"Failed the same way before the request, so only a fix was asked for counts: {names}")
    if case.unwanted:
        lines.append("The user did not want this done, which lowers no score:")
        lines += [f"- {cut(one, _LINE)}" for one in case.unwanted]
    if case.failing:
        lines.append(f"Failed, with no success since: {cut(', '.join(case.failing), _LINE)}")
    return "\n".join(lines)
