"""The prompts around satisfaction: what is wanted, whether it is met, what is lacking, and the next plan.

The fixed text comes first and repeats from call to call; what it is about this time follows. Small models
read slowly: they get less to read and fewer words to say.
"""

from collections.abc import Iterable, Sequence

from duckflow.domain.frozen import replace
from duckflow.domain.model import ChatMessage, JsonSchema, ModelRequest, ModelTraits
from duckflow.domain.text import cut, head_and_tail
from duckflow.domain.work.objective import (
    REPLY,
    EvaluationCase,
    Evidence,
    RequirementItem,
    SatisfactionEvaluation,
)
from duckflow.prompts.evidence import harmless, show_evidence
from duckflow.prompts.templates import template
from duckflow.prompts.tokens import estimate_tokens

SMALL_ANSWER = 300
SMALL_EVIDENCE = 400
"""Tokens for what a small model says, and for what it has to read before."""

_ANSWER, _ANSWER_SHARE = 2048, 4
_REQUEST = 4_000
_REPLY, _SMALL_REPLY = 12_000, 1_200
_LINE = 300


def requirements_request(traits: ModelTraits, request: str, summary: str) -> ModelRequest:
    """Ask what must be true for the request to be met."""
    before = [f"What was spoken of before:\n{cut(summary, _REQUEST)}"] if summary.strip() else []
    return _request("RequirementList", traits, "requirements", [*before, _asked(request)], ())


def satisfaction_request(traits: ModelTraits, case: EvaluationCase) -> ModelRequest:
    """Ask how far each requirement is met, from the evidence."""
    reply = harmless(head_and_tail(case.reply.strip(), _SMALL_REPLY if traits.small else _REPLY))
    about = [
        f"[{REPLY}] What the user was told:\n{reply or '(nothing)'}",
        _asked(case.request),
        "Requirements\n" + "\n".join(_numbered(case.requirements, with_priority=not traits.small)),
        _situation(case),
    ]
    text = "satisfaction_small" if traits.small else "satisfaction"
    request = _request("SatisfactionEvaluation", traits, text, about, case.evidence)
    if not traits.small:
        return request
    return replace(request, answer_schema=small_verdict_schema(case))


def missing_request(
    traits: ModelTraits, case: EvaluationCase, evaluation: SatisfactionEvaluation
) -> ModelRequest:
    """Ask what is lacking after a verdict."""
    scores = [
        f"{place}. {one.requirement}: {one.score:.2f}"
        for place, one in enumerate(evaluation.requirement_scores, start=1)
    ]
    about = [
        _asked(case.request),
        "Requirements and how far each is met\n" + "\n".join(scores),
        *_listed("Found missing", evaluation.missing_aspects),
    ]
    return _request("MissingInfoAnalysis", traits, "missing", about, case.evidence)


def failure_request(
    traits: ModelTraits, request: str, failures: Iterable[str], evidence: Sequence[Evidence]
) -> ModelRequest:
    """Ask why something failed."""
    about = [_asked(request), *_listed("What failed, oldest first", failures)]
    return _request("FailureAnalysis", traits, "failure", about, evidence)


def opinion_request(
    traits: ModelTraits, request: str, troubles: Iterable[str], evidence: Sequence[Evidence]
) -> ModelRequest:
    """Ask a model that did not do the work how it sees it."""
    about = [_asked(request), *_listed("What did not work or is missing, oldest first", troubles)]
    return _request("FailureAnalysis", traits, "second_opinion", about, evidence)


def execution_plan_request(
    traits: ModelTraits, request: str, known: str, evidence: Sequence[Evidence]
) -> ModelRequest:
    """Ask for the plan of an attempt; `known` is what it must take into account."""
    about = [*([known.strip()] if known.strip() else []), _asked(request)]
    return _request("PlanDraft", traits, "execution_plan", about, evidence)


def small_verdict_schema(case: EvaluationCase) -> JsonSchema:
    """A verdict in few words: what is missing first, then a score of three for each requirement."""
    count = max(len(case.requirements), 1)
    ids = [one.evidence_id for one in case.evidence if one.current and one.supports != "nothing"]
    ids = [*ids, REPLY] if case.information or not ids else ids
    score = _object(
        requirement={"enum": [str(place) for place in range(1, count + 1)]},
        evidence={"type": "array", "items": {"enum": ids}, "maxItems": 2},
        score={"enum": [0, 0.5, 1]},
    )
    return _object(
        missing_aspects={"type": "array", "items": {"type": "string"}, "maxItems": 2},
        requirement_scores={"type": "array", "items": score, "minItems": count, "maxItems": count},
        quality_assessment={"enum": ["good", "fair", "poor"]},
        completion_recommendation={"type": "boolean"},
    )


def _request(
    output: str, traits: ModelTraits, text: str, about: Sequence[str], evidence: Sequence[Evidence]
) -> ModelRequest:
    system, asked = template(text), "\n\n".join(about)
    answer = SMALL_ANSWER if traits.small else min(traits.window // _ANSWER_SHARE, _ANSWER)
    left = min(traits.window - answer - estimate_tokens(system + asked), traits.window // 2)
    seen = [show_evidence(evidence, min(left, SMALL_EVIDENCE) if traits.small else left)] if evidence else []
    shown = "\n\n".join([*seen, asked])
    return ModelRequest(
        output=output,
        messages=(
            ChatMessage(role="system", text=system, stable=True),
            ChatMessage(role="user", text=f"{shown}\n\nOutput: {output}"),
        ),
        max_tokens=answer,
        temperature=0.0 if traits.small else None,
    )


def _object(**properties: JsonSchema) -> JsonSchema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _asked(request: str) -> str:
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


def _listed(title: str, texts: Iterable[str]) -> list[str]:
    lines = [f"- {cut(' '.join(text.split()), _LINE)}" for text in texts if text.strip()]
    return ["\n".join([title, *lines])] if lines else []
