"""A verdict from what the program saw for itself, for small models (SPEC J2, J11).

A small model judging its own work says yes to anything, and takes as long over it as over the work. So for
changed files the program's checks decide: something failed, and the request is not done; nothing failed, and
it is as done as can be told. Words of the request that do not occur in a file mean nothing. Requests for
information are judged by the model.
"""

from collections.abc import Collection, Sequence

from duckflow.domain.work.objective import (
    Cap,
    EvaluationCase,
    EvaluationRules,
    RequirementItem,
    RequirementScore,
    SatisfactionEvaluation,
)
from duckflow.evaluation.facts import Fact
from duckflow.evaluation.verdict import MOST_ASPECTS, below, weighted_mean


def judge_by_facts(
    case: EvaluationCase, facts: Sequence[Fact], rules: EvaluationRules | None = None
) -> SatisfactionEvaluation | None:
    """The verdict, or None if a model has to look. Facts, then what was run, are the last evidence."""
    rules = rules or EvaluationRules()
    if case.wants_change and not case.changed and not any(one.supports == "change" for one in case.evidence):
        missing = "No file was changed."
        return _verdict(case.requirements, (), 0.0, rules, ("no_evidence",), (missing,))
    if case.information or not facts or not case.requirements:
        return None
    looked_at = len(facts) + len(case.checks)
    checks = [one.evidence_id for one in case.evidence if one.kind == "check"][-looked_at:]
    bad = [(fact, one) for fact, one in zip(facts, checks, strict=False) if not fact.good]
    missing = (
        # A command that passed outweighs a file we can't parse (see `verification_of`).
        *(f"{fact.path}: {fact.detail}" for fact, _ in bad if case.verification != "passed"),
        *(f"{what}: failed, and was not made good" for what in case.failing),
    )
    if not missing and case.verification != "failed":
        return _verdict(case.requirements, checks, rules.done_at, rules)
    score = min(rules.unproven_at_most, below(rules))
    cited = [one for _, one in bad] or checks
    return _verdict(case.requirements, cited, score, rules, ("failing_verification",), missing[:MOST_ASPECTS])


def _verdict(
    requirements: Sequence[RequirementItem],
    evidence: Collection[str],
    score: float,
    rules: EvaluationRules,
    caps: tuple[Cap, ...] = (),
    missing: tuple[str, ...] = (),
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
        missing_aspects=missing,
        completion_recommendation=done,
        caps=caps,
        by="program",
    )
