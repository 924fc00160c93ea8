"""Dialect: asks one model for the next Decision in the form that this model speaks best."""

from collections.abc import Callable, Iterable
from typing import Protocol

from duckflow.domain.decision import Decision
from duckflow.domain.frozen import Frozen
from duckflow.domain.live_updates import LiveUpdate
from duckflow.domain.model import ChatMessage, Effort, Usage
from duckflow.domain.state import AgentState
from duckflow.prompts.sections import RenderedPrompt

OnUpdate = Callable[[LiveUpdate], None]
Check = Callable[[Decision], Iterable[str]]


class ModelCall(Frozen):
    """One model call: its purpose and its tokens."""

    output: str
    tokens: Usage


class DecisionResult(Frozen):
    """A decision, the messages in which it was made, and the calls it took."""

    decision: Decision
    exchange: tuple[ChatMessage, ...]
    calls: tuple[ModelCall, ...]
    unused: tuple[str, ...] = ()
    """Names of the blocks of the answer that were left out, since nothing names them."""
    requirements: tuple[str, ...] = ()
    """What the user wants according to the model, if it said so with the decision."""
    closing: str = ""
    """The reply that ends the turn if all actions succeed."""


class Dialect(Protocol):
    """One way of asking a model for decisions."""

    async def decide(
        self, state: AgentState, on_update: OnUpdate, effort: Effort | None = None
    ) -> DecisionResult:
        """Return the next decision in this state."""
        ...

    async def preview(self, state: AgentState) -> RenderedPrompt:
        """Return the prompt of this state without sending it."""
        ...
