"""Prompts that extract requirements, judge satisfaction, find what is missing and plan the next attempt.

The fixed text comes first, so that calls share a prefix; the text about this case follows. Small models read
slowly, so they get less to read and may answer in fewer words.
"""

from collections.abc import Iterable, Sequence

from duckflow.domain.frozen import replace
from duckflow.domain.model import JsonSchema, ModelRequest, ModelTraits
from duckflow.domain.text import cut, head_and_tail, one_line
from duckflow.domain.work.objective import (
    REPLY,
    EvaluationCase,
    Evidence,
)
from duckflow.prompts.evidence import harmless, show_evidence
from duckflow.prompts.sections import object_schema, question_messages
from duckflow.prompts.templates import template
from duckflow.prompts.tokens import estimate_tokens

SMALL_ANSWER = 300
SMALL_EVIDENCE = 400
"""Token limits of a small model: for its answer, and for the evidence it reads."""

_ANSWER, _ANSWER_SHARE = 2048, 4
_REQUEST_SHARE, _TOKEN = 4, 3
"""The request may take a quarter of the window. A token has at least three characters in most texts."""

_MOST_EVIDENCE, _MOST_SOURCES = 16_000, 30_000
"""Token limits of the evidence, however large the window is: for a change, and for a reply that informs."""

_SPOKEN = 4_000
_REPLY, _SMALL_REPLY = 12_000, 1_200
_LINE, _WHOLE = 300, 500


def satisfaction_request(traits: ModelTraits, case: EvaluationCase) -> ModelRequest:
    """Ask the model how far the evidence shows each requirement to be met."""
    reply = harmless(head_and_tail(case.reply.strip(), _SMALL_REPLY if traits.small else _REPLY))
    about = [
        f"[{REPLY}] What the user was told:\n{reply or '(nothing)'}",
        "Requirements\n" + "\n".join(_numbered(case, with_priority=not traits.small)),
        _situation(case),
    ]
    text = "satisfaction_small" if traits.small else "satisfaction"
    most = _MOST_SOURCES if case.information else _MOST_EVIDENCE
    request = evaluation_request(
        "SatisfactionEvaluation", traits, text, about, case.request, case.evidence, most
    )
    if not traits.small:
        return request
    return replace(request, answer_schema=small_verdict_schema(case))


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


def evaluation_request(
    output: str,
    traits: ModelTraits,
    text: str,
    about: Sequence[str],
    request: str,
    evidence: Sequence[Evidence] = (),
    most: int = _MOST_EVIDENCE,
) -> ModelRequest:
    """Build a request from the template called `text`, the evidence that fits, the request and `about`.

    The request appears once, and in full unless it is very long.
    """
    system, asked = template(text), "\n\n".join([asked_text(request, traits), *about])
    answer = SMALL_ANSWER if traits.small else min(traits.window // _ANSWER_SHARE, _ANSWER)
    left = min(traits.window - answer - estimate_tokens(system + asked), traits.window // 2, most)
    seen = [show_evidence(evidence, min(left, SMALL_EVIDENCE) if traits.small else left)] if evidence else []
    return ModelRequest(
        output=output,
        messages=question_messages(output, system, "\n\n".join([*seen, asked])),
        max_tokens=answer,
        temperature=0.0 if traits.small else None,
    )


def asked_text(request: str, traits: ModelTraits) -> str:
    """Return the user's request as a prompt section, shortened if it is very long."""
    return f"The request:\n{head_and_tail(request.strip(), traits.window // _REQUEST_SHARE * _TOKEN)}"


def _numbered(case: EvaluationCase, *, with_priority: bool) -> Iterable[str]:
    """Yield the requirements as numbered lines. One that equals the request does not repeat it."""
    for place, one in enumerate(case.requirements, start=1):
        wanted = (
            "the request as a whole" if one.requirement == whole_request(case.request) else one.requirement
        )
        yield f"{place}. {wanted}" + (f" (priority {one.priority})" if with_priority else "")


def _situation(case: EvaluationCase) -> str:
    if case.information:
        told = (
            "Nothing was changed and nothing was run: judge the reply itself. Its sources are the evidence."
        )
    else:
        done = "Files were changed" if case.changed else "Commands were run, and no file was changed"
        told = f"{done}: judge the evidence. The reply is only a claim."
    lines = [told]
    if case.verification == "failed":
        lines.append("A check that has to succeed has failed.")
    failed = [one for one in case.checks if one.state == "failed"]
    if new := [one.name for one in failed if not one.before]:
        lines.append(f"Run, and failed: {cut(', '.join(new), _LINE)}")
    if old := [one.name for one in failed if one.before]:
        lines.append(
            "Failed in the same way before the request, so it counts only if it was to be mended: "
            + cut(", ".join(old), _LINE)
        )
    if case.unwanted:
        lines.append("The user did not want this done, which lowers no score:")
        lines += [f"- {cut(one, _LINE)}" for one in case.unwanted]
    if case.failing:
        lines.append(f"Failed and not made good since: {cut(', '.join(case.failing), _LINE)}")
    return "\n".join(lines)


def whole_request(request: str) -> str:
    """Return the request as a one-line requirement, for use as the only one."""
    return one_line(request, _WHOLE)


def spoken_text(summary: str) -> list[str]:
    """Return a prompt section about the conversation before the request, or nothing if it is empty."""
    return [f"What was spoken of before:\n{cut(summary, _SPOKEN)}"] if summary.strip() else []


def listed(title: str, texts: Iterable[str]) -> list[str]:
    """Return the texts as a list under a title, or nothing if there are none."""
    lines = [f"- {cut(' '.join(text.split()), _LINE)}" for text in texts if text.strip()]
    return ["\n".join([title, *lines])] if lines else []
