"""Side question: which of several attempts at one task to keep, if their checks are equally good (O2)."""

from collections.abc import Iterable, Sequence

from duckflow.domain.frozen import Frozen
from duckflow.domain.model import ModelRequest, ModelTraits
from duckflow.domain.text import head_and_tail
from duckflow.prompts.questions import question_request
from duckflow.prompts.templates import template
from duckflow.services.questions import AskedModel, Question

_ATTEMPT = 12_000


class AttemptChoice(Frozen):
    """The choice as a model writes it; attempts are numbered from 1."""

    best: int
    reason: str = ""


def choose_attempt(task: str, attempts: Sequence[str]) -> Question[AttemptChoice, int]:
    """Ask for the place of the best attempt in the list. Each is given as its reply and its differences."""
    shown = [
        f"Attempt {place}:\n{head_and_tail(one, _ATTEMPT)}" for place, one in enumerate(attempts, start=1)
    ]

    def ask(traits: ModelTraits) -> ModelRequest:
        return question_request("AttemptChoice", traits, template("attempts"), [f"The task:\n{task}", *shown])

    def check(choice: AttemptChoice) -> Iterable[str]:
        if not 1 <= choice.best <= len(attempts):
            yield f"best is a number from 1 to {len(attempts)}"

    return Question(
        asked=AskedModel(tier="evaluator", output="AttemptChoice", effort="medium"),
        prompt=ask,
        shape=AttemptChoice,
        check=check,
        read=lambda choice: choice.best - 1,
        otherwise=lambda: 0,
    )
