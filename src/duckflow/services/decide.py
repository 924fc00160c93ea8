"""What to do next: the one question asked in every loop, in full or in the compact form small models need."""

from collections.abc import Callable, Iterable, Sequence

from duckflow.domain.decision import Decision, Operation
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.live_updates import LiveUpdate
from duckflow.domain.model import ChatMessage, ModelClient, Usage
from duckflow.domain.state import AgentState
from duckflow.llm.answers.structured import ask
from duckflow.prompts.budget import PromptFrame
from duckflow.prompts.decision import DecisionPrompt
from duckflow.prompts.sections import RenderedPrompt
from duckflow.prompts.tokens import TokenCounter

OnUpdate = Callable[[LiveUpdate], None]
Check = Callable[[Decision], Iterable[str]]


class ModelCall(Frozen):
    """One model call that was made: what for, and what it used."""

    output: str
    tokens: Usage


class DecisionResult(Frozen):
    """A decision, the words it was made in, and the calls it took."""

    decision: Decision
    exchange: tuple[ChatMessage, ...]
    calls: tuple[ModelCall, ...]
    unused: tuple[str, ...] = ()
    """Names of the blocks of the answer that nothing named, and that were left out."""


class FullDecider:
    """For models with room and sense: the whole Decision in one answer."""

    def __init__(
        self, client: ModelClient, operations: Sequence[Operation], frame: PromptFrame, check: Check
    ) -> None:
        self._client = client
        self._prompt = DecisionPrompt(client.traits, operations, frame, TokenCounter(client))
        self._check = check

    async def decide(self, state: AgentState, on_update: OnUpdate) -> DecisionResult:
        """The next decision in this state."""
        prompt = await self._prompt.assemble(state)
        answer = await ask(self._client, prompt.request, Decision, on_update, self._check)
        said = ChatMessage(role="assistant", text=answer.text)
        notes = (ChatMessage(role="user", text="\n".join(answer.notes)),) if answer.notes else ()
        return DecisionResult(
            decision=answer.value,
            exchange=(said, *notes),
            calls=(ModelCall(output="Decision", tokens=answer.usage),),
            unused=answer.unused,
        )

    async def preview(self, state: AgentState) -> RenderedPrompt:
        """What the model would be asked in this state."""
        return replace(await self._prompt.assemble(state), dropped=self._prompt.dropped)
