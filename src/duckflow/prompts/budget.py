"""Token budgets of the parts of a prompt, and the order in which parts are dropped (F3)."""

from typing import NamedTuple

from duckflow.domain.frozen import Frozen
from duckflow.domain.model import ModelTraits
from duckflow.prompts.layers import Droppable

DROP_ORDER: tuple[Droppable, ...] = ("summaries", "open_questions", "plan_brief")
"""Parts to drop, in this order, once no more evidence can be dropped."""

_ANSWER_SHARE = 4
"""The prompt is trimmed once less than a quarter of the window is free."""

_LONGEST_ANSWER = 8192
_GUESS = 2
"""A guessed window may really be this many times larger; parts that are never dropped may use that size."""


class PromptRoom(NamedTuple):
    """Shares of a large model's window, in tokens."""

    most: int
    """Size above which the prompt is trimmed."""
    limit: int
    """Hard limit of a prompt whose droppable parts are gone: recent loops, the request and the rules."""
    answer: int
    """Limit of the answer."""


def share_window(traits: ModelTraits) -> PromptRoom:
    """Divide a window. Parts of the prompt that are never dropped may use all but the answer's share."""
    answer = min(traits.window // _ANSWER_SHARE, _LONGEST_ANSWER)
    largest = traits.window * _GUESS if traits.window_from == "guess" else traits.window
    return PromptRoom(traits.window - traits.window // _ANSWER_SHARE, largest - answer, answer)


class LayerSizes(NamedTuple):
    """Maximum tokens of each layer of a prompt (F3)."""

    base: int = 500
    """Tokens for Duckflow's role, the facts of the session and earlier topics."""
    main: int = 800
    """Tokens for the current work: step, task, goal, constraints, plan."""
    specialized: int = 1200
    """Tokens for the procedure of a step, which is left out if it is longer."""


class PromptFrame(Frozen):
    """Parts that all prompts of a session share."""

    rules: str = ""
    sandbox: str = ""
    """Description of how commands run (`layers.sandbox_text`)."""
    sizes: LayerSizes = LayerSizes()
