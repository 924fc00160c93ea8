"""Interface of the dialects, each of which asks a kind of model for decisions in a suitable format."""

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
    """Purpose of one model call, and the tokens that it used."""

    output: str
    tokens: Usage


class DecisionResult(Frozen):
    """A decision, the messages that led to it, and the model calls that it took."""

    decision: Decision
    exchange: tuple[ChatMessage, ...]
    calls: tuple[ModelCall, ...]
    unused: tuple[str, ...] = ()
    """Names of raw text blocks in the answer that were ignored because no action refers to them."""
    requirements: tuple[str, ...] = ()
    """The user's requirements according to the model, if it stated them with the decision."""
    closing: str = ""
    """Reply that ends the turn if all actions succeed."""


class Dialect(Protocol):
    """Format for asking a model for decisions."""

    async def decide(
        self, state: AgentState, on_update: OnUpdate, effort: Effort | None = None
    ) -> DecisionResult:
        """Return the next decision for this state."""
        ...

    async def preview(self, state: AgentState) -> RenderedPrompt:
        """Return the prompt that `decide` would send for this state."""
        ...
