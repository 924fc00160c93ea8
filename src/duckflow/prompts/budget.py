"""What each part of a prompt may take, and what goes where that is too much (F3)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from duckflow.config.settings import PromptSettings
from duckflow.domain.errors import UserError
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
"""What goes once no evidence is left that could."""

RULES_SHARE = 4
"""The project's rules may take one in so many tokens of the window."""

_ANSWER_SHARE = 4
"""The part of the window that a prompt leaves free before anything of it goes: one in so many."""

_LONGEST_ANSWER = 8192
_GUESS = 2
"""A window that is only guessed may be so many times larger. What never goes is not cut for a guess: if it is
too long, the provider's error tells the real size."""


class PromptRoom(NamedTuple):
    """The window of a large model, shared out, in tokens."""

    most: int
    """What a prompt may take before it is trimmed."""
    limit: int
    """What it may take if it has to: the last loops, the request, the rules."""
    answer: int
    """What the answer may take."""


def share_window(traits: ModelTraits) -> PromptRoom:
    """Three quarters of the window for the prompt; what never goes may take all but the answer's part."""
    answer = min(traits.window // _ANSWER_SHARE, _LONGEST_ANSWER)
    largest = traits.window * _GUESS if traits.window_from == "guess" else traits.window
    return PromptRoom(traits.window - traits.window // _ANSWER_SHARE, largest - answer, answer)


class PromptFrame(Frozen):
    """What holds for all prompts of a session: the project's rules, and what each part may take."""

    rules: str = ""
    sandbox: str = ""
    """What the model is told of the place where its commands run (`layers.sandbox_text`)."""
    budgets: PromptSettings = PromptSettings()


class RulesTooLong(UserError):
    """The project's rules are too long; they are cut or left out only if the user says so."""


async def check_rules(rules: str, traits: ModelTraits, counter: TokenCounter) -> None:
    """Raise RulesTooLong if the rules take more than their share of the model's window."""
    tokens = await counter.count(rules)
    if tokens > traits.window // RULES_SHARE:
        raise RulesTooLong("prompt.rules_too_long", tokens=tokens, window=traits.window)


async def cut_rules(rules: str, traits: ModelTraits, counter: TokenCounter) -> str:
    """As much of the beginning of the rules as their share of the window holds."""
    room = traits.window // RULES_SHARE
    while (tokens := await counter.count(rules)) > room:
        rules = rules[: int(len(rules) * room / tokens * 0.95)]
    return rules


class Layers(Frozen):
    """The part of a prompt that changes with every call, and what it takes."""

    texts: Mapping[SectionName, str]
    tokens: Mapping[SectionName, int]

    @property
    def text(self) -> str:
        """The layers one after the other."""
        return "".join(self.texts.values())

    @property
    def total(self) -> int:
        """Tokens of them all."""
        return sum(self.tokens.values())


class LayerBudget:
    """Writes the layers of one model's prompts so that each keeps to its budget."""

    def __init__(self, budgets: PromptSettings, counter: TokenCounter) -> None:
        self._budgets = budgets
        self._counter = counter

    async def layers(
        self, state: AgentState, earlier: Sequence[str], base: int, dropped: Sequence[Droppable]
    ) -> Layers:
        """The layers in the pattern the model chose, less what is dropped. `base` is what its text takes."""
        procedure = procedure_text(state.step) if state.pattern in SHOWS_PROCEDURE else ""
        if await self._counter.count(procedure) > self._budgets.specialized_tokens:
            procedure = ""
        left = self._budgets.base_tokens - base
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
        """The newest that fit."""
        for start in range(len(lines)):
            text = summaries_text(lines[start:])
            if await self._counter.count(text) <= room:
                return text
        return ""

    async def _main(self, state: AgentState, dropped: Sequence[Droppable]) -> str:
        """The main layer; if it is too long, open questions go first, then the brief plan."""
        text = main_text(state, dropped)
        for name in DROP_ORDER[1:]:
            if await self._counter.count(text) <= self._budgets.main_tokens:
                break
            dropped = (*dropped, name)
            text = main_text(state, dropped)
        return text
