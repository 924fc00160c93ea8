"""The whole from the parts: what the evaluator's scores count, and whether that is enough (SPEC J3). Pure."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from duckflow.domain.objective import (
    REPLY,
    Cap,
    EvaluationCase,
    EvaluationRules,
    RequirementItem,
    RequirementScore,
    SatisfactionEvaluation,
)
from duckflow.domain.text import cut
from duckflow.services.satisfaction import ScoreDraft, VerdictDraft

MOST_ASPECTS = 8

_NUMBER = re.compile(r"\s*#?(\d{1,3})(?:[.):](?=\s|$)|\s*$)")
_PRIORITY = re.compile(r"\(priority [123]\)\s*$")
_BETWEEN_IDS = re.compile(r"[\s,;()\[\]]+")
_NEAR = 0.8
_COMPARED = 500
_ASPECT, _QUALITY = 300, 1_000


def compute_verdict(
    case: EvaluationCase, draft: VerdictDraft | None, rules: EvaluationRules | None = None
) -> SatisfactionEvaluation:
    """The verdict on a case; `draft` is None where what the evaluator said can't be read."""
    rules = rules or EvaluationRules()
    if draft is None:
        return _unreadable(case.requirements)
    scores = tuple(_scores(case, draft, rules))
    missing = _aspects(draft.missing_aspects)
    overall, caps = _whole(case, scores, rules)
    return SatisfactionEvaluation(
        overall_score=overall,
        done=overall >= rules.done_at,
        requirement_scores=scores,
        missing_aspects=missing,
        quality_assessment=cut(" ".join(draft.quality_assessment.split()), _QUALITY),
        completion_recommendation=draft.completion_recommendation,
        caps=caps,
    )


def weighted_mean(scores: Iterable[RequirementScore], weights: Sequence[int]) -> float:
    """The scores as one, each weighing as its priority says; nothing to weigh is nothing met."""
    weighed = [(weights[one.priority - 1], one.score) for one in scores]
    total = sum(weight for weight, _ in weighed)
    # Without rounding, four fifths of everything would fall short of 0.8 by a bit.
    return round(sum(weight * score for weight, score in weighed) / total, 6) if total else 0.0


def below(rules: EvaluationRules) -> float:
    """The most the whole can be when it may not be done."""
    return round(rules.done_at - 0.01, 6)


def _whole(
    case: EvaluationCase, scores: Sequence[RequirementScore], rules: EvaluationRules
) -> tuple[float, tuple[Cap, ...]]:
    """The whole, and all that kept it, or a part of it, down."""
    kept_down = tuple(_reasons_against(case)) if scores else ("no_requirements",)
    overall = weighted_mean(scores, rules.weights)
    if kept_down:
        overall = min(overall, below(rules))
    return overall, tuple(dict.fromkeys((*kept_down, *(one.cap for one in scores if one.cap))))


def _reasons_against(case: EvaluationCase) -> Iterable[Cap]:
    """What keeps a request from being done, however good its scores are."""
    if case.verification == "failed":
        yield "failing_verification"
    if case.information and not case.reply.strip():
        yield "no_reply"


def _scores(case: EvaluationCase, draft: VerdictDraft, rules: EvaluationRules) -> Iterable[RequirementScore]:
    said: dict[int, list[ScoreDraft]] = {}
    for one in draft.requirement_scores:
        place = _place(one.requirement, case.requirements)
        if place is not None:
            said.setdefault(place, []).append(one)
    for place, item in enumerate(case.requirements):
        counted = [_counted(item, one, case, rules) for one in said.get(place, ())]
        forgotten = RequirementScore(
            requirement=item.requirement, priority=item.priority, score=0.0, cap="forgotten"
        )
        # Who contradicts himself is taken at the lower word.
        yield min(counted, key=lambda one: one.score, default=forgotten)


def _counted(
    item: RequirementItem, said: ScoreDraft, case: EvaluationCase, rules: EvaluationRules
) -> RequirementScore:
    evidence = tuple(one for one in _cited(said) if one in _citable(case))
    unproven = not evidence and said.score > rules.unproven_at_most
    return RequirementScore(
        requirement=item.requirement,
        priority=item.priority,
        score=rules.unproven_at_most if unproven else said.score,
        claimed=said.score,
        evidence=evidence,
        cap="no_evidence" if unproven else None,
    )


def _cited(said: ScoreDraft) -> Iterable[str]:
    words = _BETWEEN_IDS.split(" ".join(said.evidence).casefold())
    return dict.fromkeys(word.strip(".:\"'") for word in words)


def _citable(case: EvaluationCase) -> set[str]:
    """The ids that exist. The reply is a claim; it can be cited only where it alone is judged."""
    ids = {one.evidence_id for one in case.evidence}
    if not ids and case.information and case.reply.strip():
        return {REPLY}
    return ids


def _place(said: str, requirements: Sequence[RequirementItem]) -> int | None:
    """Which requirement an evaluator means: by its words, by its number, or by nearly its words."""
    known = [_plain(item.requirement) for item in requirements]
    bare = _PRIORITY.sub("", said[:_COMPARED])
    number = _NUMBER.match(bare)
    for form in (bare, _NUMBER.sub("", bare, count=1)):
        plain = _plain(form)
        if plain and plain in known:
            return known.index(plain)
    if number:
        place = int(number[1]) - 1
        return place if 0 <= place < len(requirements) else None
    near = get_close_matches(_plain(bare), known, n=1, cutoff=_NEAR)
    return known.index(near[0]) if near else None


def _unreadable(requirements: Sequence[RequirementItem]) -> SatisfactionEvaluation:
    scores = tuple(
        RequirementScore(requirement=one.requirement, priority=one.priority, score=0.0, cap="unreadable")
        for one in requirements
    )
    return SatisfactionEvaluation(
        overall_score=0.0, done=False, requirement_scores=scores, caps=("unreadable",)
    )


def _aspects(texts: Iterable[str]) -> tuple[str, ...]:
    lines = (cut(" ".join(text.split()), _ASPECT) for text in texts)
    return tuple(dict.fromkeys(line for line in lines if line))[:MOST_ASPECTS]


def _plain(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())
