"""Why something failed and what to do about it, for the evaluator tier (SPEC K1)."""

from collections.abc import Callable, Sequence

from duckflow.domain.frozen import Frozen
from duckflow.domain.model import ModelRequest, ModelTraits
from duckflow.domain.text import one_line
from duckflow.domain.work.objective import Evidence
from duckflow.prompts.evaluation import failure_request, opinion_request
from duckflow.services.questions import Question, QuestionKind

MOST_FIXES = 4

_CAUSE, _FIX = 1_000, 300


class FailureAnalysis(Frozen):
    """The cause of a failure, and what to do about it, most promising first."""

    cause: str
    fixes: tuple[str, ...] = ()


AnalysisQuestion = Question[FailureAnalysis, FailureAnalysis | None]


def analyze_execution_failure(
    request: str, failures: Sequence[str], evidence: Sequence[Evidence]
) -> AnalysisQuestion:
    """Why these things failed, None if no model can tell."""
    return _question("failure", lambda traits: failure_request(traits, request, failures, evidence))


def give_second_opinion(
    request: str, troubles: Sequence[str], evidence: Sequence[Evidence]
) -> AnalysisQuestion:
    """How a model that did not do the work sees it, None if no model can tell."""
    return _question("opinion", lambda traits: opinion_request(traits, request, troubles, evidence))


def _question(kind: QuestionKind, prompt: Callable[[ModelTraits], ModelRequest]) -> AnalysisQuestion:
    return Question(
        kind=kind, prompt=prompt, shape=FailureAnalysis, check=_problem, read=_tidy, otherwise=lambda: None
    )


def _problem(analysis: FailureAnalysis) -> str | None:
    return None if analysis.cause.strip() else "`cause` is empty"


def _tidy(analysis: FailureAnalysis) -> FailureAnalysis:
    fixes = [one_line(fix, _FIX) for fix in analysis.fixes if fix.strip()]
    cause = one_line(analysis.cause, _CAUSE)
    return FailureAnalysis(cause=cause, fixes=tuple(fixes[:MOST_FIXES]))
