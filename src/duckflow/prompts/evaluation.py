"""The prompts around satisfaction: what is wanted, whether it is met, what is lacking, and the next plan.

The fixed text comes first and repeats from call to call; what it is about this time follows. Small models
read slowly: they get less to read and fewer words to say.
"""

from collections.abc import Iterable, Sequence

from duckflow.domain.frozen import replace
from duckflow.domain.model import JsonSchema, ModelRequest, ModelTraits
from duckflow.domain.text import cut, head_and_tail
from duckflow.domain.work.objective import (
    REPLY,
    EvaluationCase,
    Evidence,
    RequirementItem,
)
from duckflow.prompts.evidence import harmless, show_evidence
from duckflow.prompts.sections import object_schema, question_messages
from duckflow.prompts.templates import template
from duckflow.prompts.tokens import estimate_tokens

SMALL_ANSWER = 300
SMALL_EVIDENCE = 400
"""Tokens for what a small model says, and for what it has to read before."""

_ANSWER, _ANSWER_SHARE = 2048, 4
_REQUEST = 4_000
_REPLY, _SMALL_REPLY = 12_000, 1_200
_LINE = 300


def satisfaction_request(traits: ModelTraits, case: EvaluationCase) -> ModelRequest:
    """Ask how far each requirement is met, from the evidence."""
    reply = harmless(head_and_tail(case.reply.strip(), _SMALL_REPLY if traits.small else _REPLY))
    about = [
        f"[{REPLY}] What the user was told:\n{reply or '(nothing)'}",
        asked_text(case.request),
        "Requirements\n" + "\n".join(_numbered(case.requirements, with_priority=not traits.small)),
        _situation(case),
    ]
    text = "satisfaction_small" if traits.small else "satisfaction"
    request = evaluation_request("SatisfactionEvaluation", traits, text, about, case.evidence)
    if not traits.small:
        return request
    return replace(request, answer_schema=small_verdict_schema(case))


def small_verdict_schema(case: EvaluationCase) -> JsonSchema:
    """A verdict in few words: what is missing first, then a score of three for each requirement."""
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
    output: str, traits: ModelTraits, text: str, about: Sequence[str], evidence: Sequence[Evidence] = ()
) -> ModelRequest:
    """One question: the template called `text`, what it is `about` this time, and the evidence that fits."""
    system, asked = template(text), "\n\n".join(about)
    answer = SMALL_ANSWER if traits.small else min(traits.window // _ANSWER_SHARE, _ANSWER)
    left = min(traits.window - answer - estimate_tokens(system + asked), traits.window // 2)
    seen = [show_evidence(evidence, min(left, SMALL_EVIDENCE) if traits.small else left)] if evidence else []
    return ModelRequest(
        output=output,
        messages=question_messages(output, system, "\n\n".join([*seen, asked])),
        max_tokens=answer,
        temperature=0.0 if traits.small else None,
    )


def asked_text(request: str) -> str:
    """What the user wants, in a prompt's words."""
    return f"The request:\n{head_and_tail(request.strip(), _REQUEST)}"


def _numbered(requirements: Iterable[RequirementItem], *, with_priority: bool) -> Iterable[str]:
    for place, one in enumerate(requirements, start=1):
        yield f"{place}. {one.requirement}" + (f" (priority {one.priority})" if with_priority else "")


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
    if failed := [one.name for one in case.checks if one.state == "failed"]:
        lines.append(f"Run, and failed: {cut(', '.join(failed), _LINE)}")
    if case.failing:
        lines.append(f"Failed and not made good since: {cut(', '.join(case.failing), _LINE)}")
    return "\n".join(lines)


def spoken_text(summary: str) -> list[str]:
    """What came before the request, if anything did."""
    return [f"What was spoken of before:\n{cut(summary, _REQUEST)}"] if summary.strip() else []


def listed(title: str, texts: Iterable[str]) -> list[str]:
    """The texts below a title, a line each; nothing if there are none."""
    lines = [f"- {cut(' '.join(text.split()), _LINE)}" for text in texts if text.strip()]
    return ["\n".join([title, *lines])] if lines else []
