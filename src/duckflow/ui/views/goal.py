"""Texts about goals, requirements and verdicts (J8, J9)."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from duckflow.domain.events import AttemptPlanned, Evaluated, RequirementsFound
from duckflow.domain.state import AgentState, Request
from duckflow.domain.text import percent
from duckflow.domain.work.checks import DOCTESTS, PARSING, CheckResult
from duckflow.domain.work.objective import (
    RequirementItem,
    RequirementScore,
    SatisfactionEvaluation,
    TaskObjective,
)
from duckflow.domain.work.outcomes import ENDED
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import on_one_line
from duckflow.ui.output.text_width import cut_to_width
from duckflow.ui.views.undo import first_lines

MET, PARTLY = 0.8, 0.3
"""Lowest score of a requirement that counts as met, and of one that counts as partly met."""

_LINE, _LONG = 100, 200
_DEDUCTIONS = ("forgotten", "no_evidence", "unknown_evidence", "weak_evidence")
"""Reasons that lower the score of one requirement. All other reasons lower the overall score."""

_MISSING, _NONE = 5, "–"


def goal_text(state: AgentState) -> str:
    """Return the text of /goal: for the open request, or else for the last one."""
    request = state.request or state.finished
    return "\n".join(_goal(request)) if request else text("goal.none")


def requirements_line(event: RequirementsFound) -> str:
    """Return a line with the number of requirements; empty for talk, which has none."""
    if not event.requirements:
        return ""
    if event.by == "program":
        return text("evaluation.requirements_program")
    return text("evaluation.requirements", count=len(event.requirements))


def attempt_text(event: AttemptPlanned) -> str:
    """Return the strategy of the next attempt."""
    if event.plan.plain:
        return text("evaluation.attempt_plain", number=event.number)
    return text("evaluation.attempt", number=event.number, strategy=_strategy(event.plan.strategy, _LONG))


def is_untested(event: Evaluated) -> bool:
    """Return whether a request counts as done although nothing ran that tests its result."""
    ran = any(one.state == "passed" and one.kind != "diagnostic" for one in event.results)
    return event.evaluation.done and event.evaluation.by == "program" and not ran


def evaluation_text(event: Evaluated) -> str:
    """Return the verdict on a request, and what is missing."""
    evaluation = event.evaluation
    said = "done" if evaluation.done else "not_done"
    unproven = is_untested(event)
    if unproven:
        verdict = text("evaluation.written")
    elif evaluation.by == "program":
        verdict = text(f"evaluation.{said}_by_checks")  # its score is no measurement
    else:
        verdict = text(f"evaluation.{said}")
    states = [one.state for one in event.results if not one.before]
    counted = {state: states.count(state) for state in ("passed", "failed", "not_run")}
    parts = [text(f"evaluation.counted.{state}", count=count) for state, count in counted.items() if count]
    checked = [text("evaluation.checked", counted=text("risk.and").join(parts))] if parts else []
    checked += _failures(event.results)
    if evaluation.by == "nobody":
        return "\n".join([text("evaluation.not_judged"), *_caps(evaluation), *checked])
    checked += [text("evaluation.only_read")] if unproven else []
    known = {one.aspect for one in event.results}
    aspects = [one for one in evaluation.missing_aspects if one not in known][:_MISSING]
    missing = [text("evaluation.missing", what=_short(one)) for one in aspects]
    deductions = _deductions(evaluation)
    explained = {"failing_verification"} if any(one.binding for one in _failed(event.results)) else set[str]()
    explained |= {"not_recommended"} if missing else set()
    lines = [verdict, *_caps(evaluation, explained), *deductions, *checked]
    return "\n".join([*lines, *(missing + _why(evaluation) if evaluation.overall_score < 1 else [])])


def _deductions(evaluation: SatisfactionEvaluation) -> Sequence[str]:
    """Return the requirements that are not met, each with the reason if the program lowered its score."""
    if evaluation.by != "model":
        return []  # then all requirements have the same score, for the reason that the verdict gives
    low = [one for one in evaluation.requirement_scores if one.score < MET]
    return first_lines([_with_reason(_scored(one), one) for one in low])


def _why(evaluation: SatisfactionEvaluation) -> list[str]:
    """Return the evaluator's opinion if nothing else explains why the score is not 100 %."""
    explained = evaluation.missing_aspects or evaluation.caps or evaluation.by != "model"
    opinion = evaluation.quality_assessment.strip()
    if explained or (evaluation.done and not opinion):
        return []
    return [text("goal.quality", quality=_short(opinion, _LONG)) if opinion else text("evaluation.no_reason")]


def _scored(score: RequirementScore) -> str:
    mark = "◐" if score.score >= PARTLY else "☐"
    what = _short(score.requirement)
    return text("evaluation.deducted", mark=mark, requirement=what)


def _failed(results: Iterable[CheckResult]) -> list[CheckResult]:
    return [one for one in results if one.state == "failed"]


def _failures(results: Iterable[CheckResult]) -> list[str]:
    """Return the checks that failed. Those that do not decide are left out below one that does."""
    failed = _failed(results)
    kinds = [(_kind_of_failure(one), check_name(one)) for one in failed]
    if any(one.binding for one in failed):
        kinds = [one for one in kinds if one[0] not in ("found", "not_compared")]
    deciding = [text("evaluation.failed", name=name) for kind, name in kinds if kind == "failed"]
    others = dict.fromkeys(kind for kind, _ in kinds if kind != "failed")
    named = {kind: ", ".join(name for of, name in kinds if of == kind) for kind in others}
    return [*deciding, *(text(f"evaluation.{kind}", name=names) for kind, names in named.items())]


def _kind_of_failure(result: CheckResult) -> str:
    if result.accepted:
        return "failed_accepted"
    if result.binding or result.compared:
        return "failed_before" if result.before else "failed" if result.binding else "found"
    return "not_compared"


def _caps(evaluation: SatisfactionEvaluation, explained: Collection[str] = ()) -> list[str]:
    """Return the reasons why the request counts as not done even if its scores are high (J3).

    Those that other lines explain are left out.
    """
    hidden = (*_DEDUCTIONS, *explained)
    return [text(f"goal.capped.{cap}") for cap in evaluation.caps if cap not in hidden]


def _goal(request: Request) -> Iterator[str]:
    objective = request.objective
    yield text("goal.request", request=_short(objective.request, _LONG))
    if not objective.requirements:
        yield text("goal.no_parts") if request.outcome in ENDED else text("goal.searching")
    scores = objective.evaluation.requirement_scores if objective.evaluation else ()
    scored = {one.requirement: one for one in scores}
    judged = objective.evaluation is not None and objective.evaluation.by != "nobody"
    yield from first_lines(
        [_requirement(one, scored.get(one.requirement), judged=judged) for one in objective.requirements]
    )
    if objective.requirements or objective.evaluation or request.outcome not in ENDED:
        yield from _verdict(objective)
    yield from first_lines([_check(one) for one in objective.checks])
    for attempt in objective.attempts:
        strategy = _strategy(attempt.strategy)
        score = percent(attempt.score) if judged or attempt != objective.attempts[-1] else _NONE
        yield text("goal.attempt", number=attempt.number, score=score, strategy=strategy)
    current = objective.current
    if current.strategy or current.tried:
        yield text("goal.current", number=current.number, strategy=_strategy(current.strategy))
    if objective.learned_constraints:
        yield text("goal.learned", what=_short("; ".join(objective.learned_constraints), _LONG))
    if request.outcome in ENDED:
        yield text(f"goal.outcome.{request.outcome}")


def _requirement(item: RequirementItem, score: RequirementScore | None, *, judged: bool) -> str:
    line = text(
        "goal.requirement",
        mark="☑" if item.satisfaction >= MET else "◐" if item.satisfaction >= PARTLY else "☐",
        score=f"{percent(item.satisfaction)}  " if judged else "",
        requirement=_short(item.requirement),
        priority=text(f"goal.priority_{item.priority}"),
    )
    return line if score is None else _with_reason(line, score)


def _with_reason(line: str, score: RequirementScore) -> str:
    """Add the reason why the program lowered a score."""
    if score.cap not in _DEDUCTIONS:
        return line
    claimed = _NONE if score.claimed is None else percent(score.claimed)
    reason = text(f"goal.cap.{score.cap}", claimed=claimed, score=percent(score.score))
    return f"{line}\n{reason}"


def _verdict(objective: TaskObjective) -> Iterator[str]:
    evaluation = objective.evaluation
    if evaluation is None or evaluation.by == "nobody":
        yield text("goal.not_judged") if evaluation is None else text("evaluation.not_judged")
        yield from _caps(evaluation) if evaluation else ()
        return
    yield text(
        "goal.verdict_done" if evaluation.done else "goal.verdict_open",
        score=percent(evaluation.overall_score),
    )
    yield from _caps(evaluation)
    if evaluation.quality_assessment.strip():
        yield text("goal.quality", quality=_short(evaluation.quality_assessment, _LONG))
    if evaluation.missing_aspects and not evaluation.done:
        yield text("goal.missing")
        yield from first_lines([f"    • {_short(one)}" for one in objective.missing])


def _check(result: CheckResult) -> str:
    if result.before:
        return text(f"evaluation.{_kind_of_failure(result)}", name=check_name(result))
    return text(
        f"goal.check.{result.state}",
        name=check_name(result),
        detail=f": {_short(result.detail)}" if result.detail and result.state != "passed" else "",
    )


def check_name(result: CheckResult) -> str:
    """Return the name of a check in the user's language."""
    for prefix, key in ((DOCTESTS, "doctests"), (PARSING, "parsing")):
        if result.name.startswith(prefix):
            return text(f"evaluation.check.{key}", path=_short(result.name.removeprefix(prefix)))
    return _short(result.name)


def _strategy(strategy: str, columns: int = _LINE) -> str:
    return _short(strategy, columns) or text("goal.no_strategy")


def _short(said: str, columns: int = _LINE) -> str:
    return cut_to_width(on_one_line(said), columns)
