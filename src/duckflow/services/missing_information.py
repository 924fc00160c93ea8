"""What is lacking after a verdict that did not satisfy (SPEC J4)."""

from collections.abc import Iterable

from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.text import one_line
from duckflow.domain.work.objective import EvaluationCase, Priority, SatisfactionEvaluation
from duckflow.prompts.evaluation import missing_request
from duckflow.services.questions import Question

MOST_MISSING, MOST_LINES = 8, 5

_LINE = 300


class MissingItem(Frozen):
    """One thing that is lacking."""

    what: str
    priority: Priority = 1


class MissingInfoAnalysis(Frozen):
    """What is lacking, what was found to hold, and what else could be tried."""

    missing: tuple[MissingItem, ...] = ()
    constraints: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()


def extract_missing_information(
    case: EvaluationCase, evaluation: SatisfactionEvaluation
) -> Question[MissingInfoAnalysis, MissingInfoAnalysis]:
    """What is lacking; from the verdict alone if no model can tell."""

    def read(answer: MissingInfoAnalysis) -> MissingInfoAnalysis:
        found = _tidy(answer)
        return found if found.missing else replace(found, missing=plain_missing(evaluation).missing)

    return Question(
        kind="missing",
        prompt=lambda traits: missing_request(traits, case, evaluation),
        shape=MissingInfoAnalysis,
        read=read,
        otherwise=lambda: plain_missing(evaluation),
    )


def plain_missing(evaluation: SatisfactionEvaluation) -> MissingInfoAnalysis:
    """What the verdict itself says is lacking."""
    aspects = [MissingItem(what=text) for text in evaluation.missing_aspects]
    unmet = [
        MissingItem(what=one.requirement, priority=one.priority)
        for one in evaluation.requirement_scores
        if one.score < 1 and not aspects
    ]
    return _tidy(MissingInfoAnalysis(missing=(*aspects, *unmet)))


def _tidy(found: MissingInfoAnalysis) -> MissingInfoAnalysis:
    """Most important first, in a line each, and not too many."""
    missing = [replace(one, what=_line(one.what)) for one in found.missing if one.what.strip()]
    return MissingInfoAnalysis(
        missing=tuple(sorted(missing, key=lambda one: one.priority)[:MOST_MISSING]),
        constraints=_lines(found.constraints),
        alternatives=_lines(found.alternatives),
    )


def _lines(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_line(text) for text in texts if text.strip()))[:MOST_LINES]


def _line(text: str) -> str:
    return one_line(text, _LINE)
