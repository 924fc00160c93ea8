"""How far a request is met, as an evaluator sees it from the evidence; the program does the sum (SPEC J2)."""

from pydantic import Field, field_validator

from duckflow.domain.errors import BadAnswer
from duckflow.domain.frozen import Frozen
from duckflow.domain.work.objective import EvaluationCase, Share
from duckflow.prompts.evaluation import satisfaction_request
from duckflow.services.questions import Question


class ScoreDraft(Frozen):
    """The score of one requirement as an evaluator writes it."""

    requirement: str
    score: Share
    evidence: tuple[str, ...] = ()

    @field_validator("requirement", mode="before")
    @classmethod
    def _by_number(cls, value: object) -> object:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @field_validator("evidence", mode="before")
    @classmethod
    def _one_or_none(cls, value: object) -> object:
        if value is None:
            return ()
        return (value,) if isinstance(value, str) else value


class VerdictDraft(Frozen):
    """A verdict as an evaluator writes it; its shape is that of SatisfactionEvaluation in the prompts."""

    requirement_scores: tuple[ScoreDraft, ...] = Field(max_length=100)
    missing_aspects: tuple[str, ...] = ()
    quality_assessment: str = ""
    completion_recommendation: bool = False


def evaluate_task_satisfaction(case: EvaluationCase) -> Question[VerdictDraft, VerdictDraft | None]:
    """What an evaluator finds, None if its verdict can't be read."""
    return Question(
        kind="verdict",
        prompt=lambda traits: satisfaction_request(traits, case),
        shape=VerdictDraft,
        read=lambda draft: draft,
        otherwise=lambda: None,
        covers=BadAnswer,
    )
