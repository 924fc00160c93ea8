"""A verdict from facts alone, for small models, where the facts settle it (SPEC J2).

A small model judging its own work says yes to anything, and takes as long over it as over the work. So where
what changed can be seen, the program decides: a file that is broken is not done, and work that shows all that
the request names is as done as can be told. Everything else, and every request for information, is judged by
the model.
"""

from collections.abc import Collection, Sequence

from duckflow.domain.objective import (
    Cap,
    EvaluationCase,
    EvaluationRules,
    RequirementItem,
    RequirementScore,
    SatisfactionEvaluation,
)
from duckflow.evaluation.facts import Fact, FactState
from duckflow.evaluation.verdict import MOST_ASPECTS, below, weighted_mean

_VAGUE: Collection[FactState] = ("empty", "unread")
"""Not wrong, but no sign that anything was done."""


def judge_by_facts(
    case: EvaluationCase, facts: Sequence[Fact], rules: EvaluationRules | None = None
) -> SatisfactionEvaluation | None:
    """The verdict, or None where a model has to look. The facts are the last checks among the evidence."""
    rules = rules or EvaluationRules()
    if case.information or not facts or not case.requirements:
        return None
    checks = [one.evidence_id for one in case.evidence if one.kind == "check"][-len(facts) :]
    bad = [fact for fact in facts if not fact.good]
    if bad and case.verification == "failed":
        cited = [one for fact, one in zip(facts, checks, strict=False) if not fact.good]
        return _not_done(case, bad, cited, rules)
    doubtful = case.failing or case.unseen or case.verification == "failed"
    if doubtful or not all(fact.good and fact.state not in _VAGUE and not fact.stubs for fact in facts):
        return None
    return _verdict(case.requirements, checks, rules.done_at, rules)


def _not_done(
    case: EvaluationCase, bad: Sequence[Fact], cited: Collection[str], rules: EvaluationRules
) -> SatisfactionEvaluation:
    score = min(rules.unproven_at_most, below(rules))
    verdict = _verdict(case.requirements, cited, score, rules, ("failing_verification",))
    missing = tuple(f"{fact.path}: {fact.detail}" for fact in bad[:MOST_ASPECTS])
    return verdict.model_copy(update={"missing_aspects": missing})


def _verdict(
    requirements: Sequence[RequirementItem],
    evidence: Collection[str],
    score: float,
    rules: EvaluationRules,
    caps: tuple[Cap, ...] = (),
) -> SatisfactionEvaluation:
    """The same score for every part: facts tell of the whole."""
    scores = tuple(
        RequirementScore(
            requirement=one.requirement, priority=one.priority, score=score, evidence=tuple(evidence)
        )
        for one in requirements
    )
    overall = weighted_mean(scores, rules.weights)
    done = overall >= rules.done_at
    return SatisfactionEvaluation(
        overall_score=overall,
        done=done,
        requirement_scores=scores,
        completion_recommendation=done,
        caps=caps,
        by="program",
    )
