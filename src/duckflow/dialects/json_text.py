"""JSON text: the model writes one JSON object, followed by raw blocks for long texts (A6, A7, N)."""

import json
from collections.abc import Sequence

from duckflow.dialects.dialect import Check, DecisionResult, ModelCall, OnUpdate
from duckflow.dialects.prompt import DecisionPrompt, PromptForm, PromptFrame
from duckflow.domain.decision import Decision, Operation
from duckflow.domain.frozen import replace
from duckflow.domain.model import ChatMessage, Effort, ModelClient, ModelTraits
from duckflow.domain.state import AgentState
from duckflow.llm.answers.structured import ask
from duckflow.llm.tokens import TokenCounter
from duckflow.prompts.conversation.lines import PromptLine
from duckflow.prompts.sections import RenderedPrompt
from duckflow.prompts.templates import template


class JsonText:
    """Dialect for large models without native tools: the whole Decision in one answer."""

    def __init__(
        self, client: ModelClient, operations: Sequence[Operation], frame: PromptFrame, check: Check
    ) -> None:
        self._client = client
        self._prompt = json_prompt(client.traits, operations, frame, TokenCounter(client))
        self._check = check

    async def decide(
        self, state: AgentState, on_update: OnUpdate, effort: Effort | None = None
    ) -> DecisionResult:
        """Return the next decision for this state."""
        prompt = await self._prompt.assemble(state, effort)
        answer = await ask(self._client, prompt.request, Decision, on_update, self._check)
        said = ChatMessage(role="assistant", text=answer.text, thoughts=answer.thoughts)
        notes = (ChatMessage(role="user", text="\n".join(answer.notes)),) if answer.notes else ()
        return DecisionResult(
            decision=answer.value,
            exchange=(said, *notes),
            calls=(ModelCall(output="Decision", tokens=answer.usage),),
            unused=answer.unused,
        )

    async def preview(self, state: AgentState) -> RenderedPrompt:
        """Return the prompt that `decide` would send for this state."""
        return await self._prompt.assemble(state)


def json_prompt(
    traits: ModelTraits, operations: Sequence[Operation], frame: PromptFrame, counter: TokenCounter
) -> DecisionPrompt:
    """Build the prompt that asks for a Decision as JSON text."""
    form = PromptForm(
        output=template("decision"),
        operations="".join(["Operations\n", *(f"- {operation.line}\n" for operation in operations)]),
        tools=(),
        heading="",
        ending="Output: Decision",
        render=as_text,
    )
    return DecisionPrompt(traits, form, frame, counter)


def as_text(lines: Sequence[PromptLine]) -> list[ChatMessage]:
    """Convert the conversation to plain messages, writing out native calls that another model made."""
    return [_plain(line.message) for line in lines]


def _plain(message: ChatMessage) -> ChatMessage:
    if not message.calls and not message.result_of:
        return message
    calls = [{"operation": call.name, "args": call.arguments} for call in message.calls]
    written = [json.dumps(call, ensure_ascii=False) for call in calls]
    text = "\n".join(part for part in (message.text, *written) if part)
    return replace(message, text=text, calls=(), result_of="", failed=False)
