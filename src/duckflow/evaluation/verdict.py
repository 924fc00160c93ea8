"""Computes the verdict on a case from the evaluator's scores, or from checks alone (J2, J3). Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Literal

from duckflow.domain.decision import TALK, TaskProfile
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.state import Request
from duckflow.domain.text import letters_of, one_line
from duckflow.domain.work.checks import CheckResult
from duckflow.domain.work.objective import (
    REPLY,
    AsksFor,
    Cap,
    EvaluationCase,
    Evidence,
    Priority,
    RequirementItem,
    RequirementScore,
    SatisfactionEvaluation,
)
from duckflow.evaluation.facts import Fact, claimed_files, verification_of
from duckflow.services.evaluation import ScoreDraft, VerdictDraft, plain_requirements

DONE_AT = 0.8
"""Score from which on a request counts as done."""

BELOW_DONE = DONE_AT - 0.01
"""Highest score of a request that is not done."""

UNPROVEN_AT_MOST = 0.5
"""Highest score of a requirement for which no evidence is cited."""

WEIGHTS: Mapping[Priority, int] = {1: 3, 2: 2, 3: 1}
"""Weights of requirements by priority."""

MOST_ASPECTS = 8

_NUMBER = lazy_regex(r"\s*#?(\d{1,3})(?:[.):](?=\s|$)|\s*$)")
_PRIORITY = lazy_regex(r"\(priority [123]\)\s*$")
_BETWEEN_IDS = lazy_regex(r"[\s,;()\[\]]+")
_ID = lazy_regex(rf"e\d+|{REPLY}")
_MOST_IDS = 40
_NEAR = 0.8
_COMPARED = 500
_ASPECT, _QUALITY = 300, 1_000


def compute_verdict(case: EvaluationCase, draft: VerdictDraft | None) -> SatisfactionEvaluation:
    """Compute the verdict on a case. `draft` is None if an evaluator gave no readable answer."""
    if draft is None:
        return _without_judge(case)
    scores = tuple(_scores(case, draft))
    overall = _weighted_mean(scores)
    against = list(_reasons_against(case, draft, scores, overall))
    if against:
        overall = min(overall, BELOW_DONE)
    return SatisfactionEvaluation(
        overall_score=overall,
        done=overall >= DONE_AT,
        requirement_scores=scores,
        missing_aspects=_aspects(draft.missing_aspects),
        quality_assessment=one_line(draft.quality_assessment, _QUALITY),
        completion_recommendation=draft.completion_recommendation is not False,
        caps=tuple(dict.fromkeys((*against, *(one.cap for one in scores if one.cap)))),
    )


def _weighted_mean(scores: Iterable[RequirementScore]) -> float:
    weighed = [(WEIGHTS[one.priority], one.score) for one in scores]
    total = sum(weight for weight, _ in weighed)
    # Rounded, because otherwise scores of exactly 0.8 would have a mean slightly below 0.8.
    return round(sum(weight * score for weight, score in weighed) / total, 6) if total else 0.0


def _reasons_against(
    case: EvaluationCase, draft: VerdictDraft, scores: Sequence[RequirementScore], overall: float
) -> Iterable[Cap]:
    if not scores:
        yield "no_requirements"
        return
    if overall >= DONE_AT and any(one.priority == 1 and one.score < DONE_AT for one in scores):
        yield "must_not_met"
    if draft.completion_recommendation is False:
        yield "not_recommended"
    if case.verification == "failed":
        yield "failing_verification"
    if case.information and not case.reply.strip():
        yield "no_reply"


def _scores(case: EvaluationCase, draft: VerdictDraft) -> Iterable[RequirementScore]:
    said = defaultdict[int | None, list[ScoreDraft]](list)
    for one in draft.requirement_scores:
        said[_place(one.requirement, case.requirements)].append(one)
    for place, item in enumerate(case.requirements):
        forgotten = RequirementScore(
            requirement=item.requirement, priority=item.priority, score=0.0, cap="forgotten"
        )
        counted = (_counted(item, one, case) for one in said[place])
        # If an evaluator scores a requirement more than once, the lowest score counts.
        yield min(counted, key=lambda one: one.score, default=forgotten)


def _counted(item: RequirementItem, said: ScoreDraft, case: EvaluationCase) -> RequirementScore:
    cited, citable = tuple(_cited(said)), _citable(case, item, said.asks_for)
    evidence = tuple(one for one in cited if one in citable)
    uncounted = tuple(one for one in cited if one not in citable and _ID.fullmatch(one))
    unproven = not evidence and said.score > UNPROVEN_AT_MOST
    return RequirementScore(
        requirement=item.requirement,
        priority=item.priority,
        score=UNPROVEN_AT_MOST if unproven else said.score,
        claimed=said.score,
        evidence=evidence,
        cap=_reason_unproven(case, uncounted) if unproven else None,
        uncounted=uncounted,
    )


def _reason_unproven(case: EvaluationCase, uncounted: Iterable[str]) -> Cap:
    known = {REPLY, *(one.evidence_id for one in case.evidence)}
    match [one in known for one in uncounted]:
        case []:
            return "no_evidence"
        case exists:
            return "weak_evidence" if any(exists) else "unknown_evidence"


def objections(case: EvaluationCase, draft: VerdictDraft) -> tuple[str, ...]:
    """Return everything in a verdict that lowers its scores and that the evaluator can correct."""
    evaluation = compute_verdict(case, draft)
    found = [
        f"requirement {place}: {_objection(case, item, one)}"
        for place, (item, one) in enumerate(
            zip(case.requirements, evaluation.requirement_scores, strict=True), start=1
        )
        if one.cap
    ]
    silent = not evaluation.missing_aspects and not evaluation.quality_assessment
    unexplained = not found and not evaluation.done and case.verification != "failed" and silent
    return (*found, *(("missing_aspects: say what is missing",) if unexplained else ()))


def _objection(case: EvaluationCase, item: RequirementItem, score: RequirementScore) -> str:
    if score.cap == "forgotten":
        return "it has no score"
    named = ", ".join(score.uncounted)
    reasons: dict[Cap | None, str] = {
        "no_evidence": "its score cites no evidence",
        "unknown_evidence": f"{named} does not exist",
    }
    wrong = reasons.get(score.cap, f"{named} does not prove it: it failed, or it only read something")
    if REPLY in score.uncounted and item.asks_for is None and len(case.requirements) > 1:
        wrong = f'{named} counts only if it asks to be told something: then say "asks_for": "information"'
    usable = sorted(_citable(case, item), key=lambda one: (len(one), one))[-_MOST_IDS:]
    return f"{wrong}. " + (f"These ids can prove it: {', '.join(usable)}" if usable else "Nothing proves it")


def _cited(said: ScoreDraft) -> Iterable[str]:
    words = _BETWEEN_IDS.split(" ".join(said.evidence).casefold())
    return dict.fromkeys(word.strip(".:\"'") for word in words)


def _citable(case: EvaluationCase, item: RequirementItem, said: AsksFor | None = None) -> set[str]:
    """Return ids of the evidence that can support a requirement.

    For a request for information, the reply counts if it had no sources. In other requests it is the work for
    each requirement that asks for information, as it says itself or, among several, the evaluator does.
    """
    said = said if len(case.requirements) > 1 else None
    asks_for = item.asks_for or ("information" if case.information else said or "change")
    # A refused change is not wanted any more, so words may be enough, unless they claim that it was made.
    claims = bool(case.unwanted and claimed_files(case.reply))
    settled = case.unwanted and not claims
    refused = {REPLY, *(line.partition(" ")[0] for line in case.unwanted)} if settled else set[str]()
    if asks_for == "change":
        return refused | {one.evidence_id for one in case.evidence if one.supports == "change"}
    if not case.reply.strip():
        return set()
    sources = {one.evidence_id for one in case.evidence if one.supports != "nothing"}
    only_sources = claims or (case.information and sources and case.looked_up)
    return refused | (sources if only_sources else {REPLY, *sources})


def _place(said: str, requirements: Sequence[RequirementItem]) -> int | None:
    """Return the index of the requirement an evaluator means, by its words, number or similarity."""
    known = [letters_of(item.requirement) for item in requirements]
    bare = _PRIORITY.sub("", said[:_COMPARED])
    number = _NUMBER.match(bare)
    for form in (bare, _NUMBER.sub("", bare, count=1)):
        plain = letters_of(form)
        if plain and plain in known:
            return known.index(plain)
    if number:
        place = int(number[1]) - 1
        return place if 0 <= place < len(requirements) else None
    near = get_close_matches(letters_of(bare), known, n=1, cutoff=_NEAR)
    return known.index(near[0]) if near else None


def _without_judge(case: EvaluationCase) -> SatisfactionEvaluation:
    """Judge by the verifying command, tests and examples alone. Without any of these, there is no verdict."""
    if case.verification == "none" or not case.requirements:
        return _same_for_all(case, 0.0, caps=("unreadable",), by="nobody")
    ran = [one.evidence_id for one in case.checks if one.good]
    missing = _aspects(one.text for one in case.checks if one.state == "failed")
    if case.verification == "passed":
        return _same_for_all(case, DONE_AT, ran, missing)
    return _same_for_all(case, UNPROVEN_AT_MOST, ran, missing, ("failing_verification",))


def judge_by_facts(case: EvaluationCase, facts: Sequence[Fact]) -> SatisfactionEvaluation | None:
    """Judge by the program's own checks, for small models. None if a model has to judge (J11).

    A small model agrees with anything, and judging takes it as long as the work. So a request that changed
    files is done unless a check failed. The facts and check results are the last items of the evidence.
    """
    if not case.changed and not any(one.supports == "change" for one in case.evidence):
        if case.wants_change:
            return _same_for_all(case, 0.0, caps=("nothing_changed",))
        if case.unwanted or case.failing:  # small models call everything done
            return _same_for_all(case, 0.0, caps=("nothing_changed",), by="nobody")
    if case.information or not facts or not case.requirements:
        return None
    unmet: tuple[Cap, ...] = (("only_comments",) if case.only_comments else ()) + (
        ("missed_file",) if case.missed else ()
    )
    looked_at = len(facts) + len(case.checks)
    checks = [one.evidence_id for one in case.evidence if one.kind == "check"][-looked_at:]
    bad = [(fact, one) for fact, one in zip(facts, checks, strict=False) if not fact.good]
    missing = (
        # If the verifying command passed, a file that does not parse counts as intended.
        *(f"{fact.path}: {fact.detail}" for fact, _ in bad if case.verification != "passed"),
        *(f"{what}: failed, with no success since" for what in case.failing),
    )
    failed = bool(missing) or case.verification == "failed"
    if not failed and not unmet:
        return _same_for_all(case, DONE_AT, checks)
    cited, shown = [one for _, one in bad] or checks, (*missing, *case.missed)[:MOST_ASPECTS]
    caps: tuple[Cap, ...] = (*(("failing_verification",) if failed else ()), *unmet)
    return _same_for_all(case, UNPROVEN_AT_MOST, cited, shown, caps)


def _same_for_all(
    case: EvaluationCase,
    score: float,
    evidence: Iterable[str] = (),
    missing: tuple[str, ...] = (),
    caps: tuple[Cap, ...] = (),
    by: Literal["program", "nobody"] = "program",
) -> SatisfactionEvaluation:
    """Return a verdict that gives every requirement the same score."""
    cited, done = tuple(evidence), score >= DONE_AT
    return SatisfactionEvaluation(
        overall_score=score,
        done=done,
        requirement_scores=tuple(
            RequirementScore(requirement=one.requirement, priority=one.priority, score=score, evidence=cited)
            for one in case.requirements
        ),
        missing_aspects=missing,
        completion_recommendation=done,
        caps=caps,
        by=by,
    )


def _aspects(texts: Iterable[str]) -> tuple[str, ...]:
    lines = (one_line(text, _ASPECT) for text in texts)
    return tuple(dict.fromkeys(line for line in lines if line))[:MOST_ASPECTS]


def build_case(
    request: Request,
    reply: str,
    evidence: Iterable[Evidence],
    facts: Iterable[Fact],
    results: Iterable[CheckResult] = (),
    *,
    ran: bool = False,
    passed: bool | None = None,
    only_comments: bool = False,
    missed: tuple[str, ...] = (),
) -> EvaluationCase:
    """Build the case for an evaluator. `evidence` ends with the facts, followed by the results.

    `ran` is True if a command ran; `passed` is the result of the verifying command, None without one.
    """
    objective, results = request.objective, tuple(results)
    declined = (line for one in (*objective.attempts, objective.current) for line in one.declined)
    return EvaluationCase(
        request=objective.request,
        requirements=objective.requirements or plain_requirements(objective.request),
        evidence=tuple(evidence),
        reply=reply,
        information=not (request.changed or ran),
        changed=bool(request.changed),
        wants_change=request.profile == "file_operation",
        looked_up=bool(objective.results),
        verification=verification_of(facts, passed, results),
        checks=results,
        failing=request.failing,
        unwanted=tuple(declined),
        only_comments=only_comments,
        missed=missed,
    )


def needs_evaluation(profile: TaskProfile | None, *, changed_anything: bool, ran_anything: bool) -> bool:
    """Return whether a request must be judged before it is done: all except talk without actions."""
    return changed_anything or ran_anything or profile not in TALK
