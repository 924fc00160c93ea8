"""Token budgets of the parts of a prompt, and the order in which parts are dropped (F3)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from duckflow.domain.frozen import Frozen
from duckflow.domain.model import ModelTraits
from duckflow.domain.state import AgentState
from duckflow.prompts.layers import (
    SHOWS_MAIN,
    SHOWS_PROCEDURE,
    Droppable,
    main_text,
    procedure_text,
    summaries_text,
)
from duckflow.prompts.sections import SectionName
from duckflow.prompts.tokens import TokenCounter

DROP_ORDER: tuple[Droppable, ...] = ("summaries", "open_questions", "plan_brief")
"""Parts to drop, in this order, once no more evidence can be dropped."""

_ANSWER_SHARE = 4
"""A quarter of the window stays free before the prompt is trimmed."""

_LONGEST_ANSWER = 8192
_GUESS = 2
"""Factor by which a guessed window may really be larger. Parts that are never dropped may use that."""


class PromptRoom(NamedTuple):
    """Shares of a large model's window, in tokens."""

    most: int
    """Size from which the prompt is trimmed."""
    limit: int
    """Hard limit for the parts that are never dropped: the last loops, the request and the rules."""
    answer: int
    """Limit of the answer."""


def share_window(traits: ModelTraits) -> PromptRoom:
    """Share a window. Parts of the prompt that can't be dropped may use all but the answer's share."""
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
    """Tokens for the procedure of a step; it is left out if it does not fit."""


class PromptFrame(Frozen):
    """Parts that all prompts of a session share."""

    rules: str = ""
    sandbox: str = ""
    """Description of how commands run (`layers.sandbox_text`)."""
    sizes: LayerSizes = LayerSizes()


class Layers(Frozen):
    """Layers of a prompt that change with every call, with their token counts."""

    texts: Mapping[SectionName, str]
    tokens: Mapping[SectionName, int]

    @property
    def text(self) -> str:
        """All layers as one text."""
        return "".join(self.texts.values())

    @property
    def total(self) -> int:
        """Tokens of all layers together."""
        return sum(self.tokens.values())


class LayerBudget:
    """Writes the layers of one model's prompts, each within its budget."""

    def __init__(self, sizes: LayerSizes, counter: TokenCounter) -> None:
        self._sizes = sizes
        self._counter = counter

    async def layers(
        self, state: AgentState, earlier: Sequence[str], base: int, dropped: Sequence[Droppable]
    ) -> Layers:
        """Return the current pattern's layers without the dropped ones. `base` is the fixed text's size."""
        procedure = procedure_text(state.step) if state.pattern in SHOWS_PROCEDURE else ""
        if await self._counter.count(procedure) > self._sizes.specialized:
            procedure = ""
        left = self._sizes.base - base
        texts: dict[SectionName, str] = {
            "summaries": "" if "summaries" in dropped else await self._summaries(earlier, left),
            "main": await self._main(state, dropped) if state.pattern in SHOWS_MAIN or not procedure else "",
            "specialized": procedure,
        }
        tokens: dict[SectionName, int] = {
            name: await self._counter.count(text) for name, text in texts.items()
        }
        return Layers(texts=texts, tokens=tokens)

    async def _summaries(self, lines: Sequence[str], room: int) -> str:
        for start in range(len(lines)):
            text = summaries_text(lines[start:])
            if await self._counter.count(text) <= room:
                return text
        return ""

    async def _main(self, state: AgentState, dropped: Sequence[Droppable]) -> str:
        """Return the main layer. If it is too long, drop the open questions, then the brief plan."""
        text = main_text(state, dropped)
        for name in DROP_ORDER[1:]:
            if await self._counter.count(text) <= self._sizes.main:
                break
            dropped = (*dropped, name)
            text = main_text(state, dropped)
        return text
