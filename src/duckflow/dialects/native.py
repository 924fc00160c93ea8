"""Native tool calls: the model uses its provider's own tool protocol, and plain text for the reply (A8).

Later prompts repeat calls exactly as the model made them, and results carry the calls' ids. After an answer
with unusable calls or with nothing but notes, the model is asked again before anything runs.
"""

from collections.abc import Sequence

from duckflow.dialects.dialect import Check, DecisionResult, ModelCall, OnUpdate
from duckflow.dialects.native_answer import NativeAnswer, UnusableCalls, join_notes, read_calls
from duckflow.dialects.native_messages import as_native, result_of
from duckflow.dialects.native_tools import native_tools
from duckflow.dialects.prompt import DecisionPrompt, PromptForm, PromptFrame
from duckflow.domain.decision import Decision, Operation
from duckflow.domain.frozen import replace
from duckflow.domain.live_updates import ReplyVoid
from duckflow.domain.model import ChatMessage, Effort, ModelClient, ModelRequest, StopReason, ToolCall, Usage
from duckflow.domain.state import AgentState
from duckflow.domain.text import cut
from duckflow.llm.answers.continuing import collect_whole
from duckflow.llm.answers.response import CollectedResponse
from duckflow.llm.answers.strict_json import JsonObject, UnusableAnswer
from duckflow.llm.answers.structured import check_whole, unusable_answer
from duckflow.llm.tokens import TokenCounter
from duckflow.prompts.sections import RenderedPrompt
from duckflow.prompts.templates import template

MAX_REPAIRS = 3
"""Number of times the model is asked again after unusable answers."""

MAX_NOTES = 3
"""Number of answers with only notes or questions about operations that one decision may take."""

_PROBLEM = 2_000
_OTHERS_NOT_RUN = "None of these calls ran, because one of them is invalid. Send all calls again."


class Native:
    """Dialect for large models: operations are tools, and an answer without calls is the reply."""

    def __init__(
        self, client: ModelClient, operations: Sequence[Operation], frame: PromptFrame, check: Check
    ) -> None:
        self._client = client
        form = PromptForm(
            output=template("native"),
            operations="",
            tools=native_tools(operations),
            heading="State of the work, told by the program\n",
            ending="",
            render=as_native,
        )
        self._operations = {operation.name: operation for operation in operations}
        self._prompt = DecisionPrompt(client.traits, form, frame, TokenCounter(client))
        self._check = check

    async def preview(self, state: AgentState) -> RenderedPrompt:
        """Return the prompt that `decide` would send for this state."""
        return await self._prompt.assemble(state)

    async def decide(
        self, state: AgentState, on_update: OnUpdate, effort: Effort | None = None
    ) -> DecisionResult:
        """Return the next decision for this state."""
        request = (await self._prompt.assemble(state, effort)).request
        exchange: list[ChatMessage] = []
        spent, noted, fault = Usage(), JsonObject(), ""
        repairs = notes = 0
        stop: StopReason | None = None
        while repairs <= MAX_REPAIRS and notes <= MAX_NOTES:
            asked = replace(request, messages=(*request.messages, *exchange))
            response = await collect_whole(
                self._client, asked, on_update, spent, has_reply=True, is_usable=lambda _: False
            )
            spent, stop = spent + response.usage, response.stop
            said = _said(response, f"{state.seq}_{len(exchange)}")
            try:
                answer = self._understand(response, said, request)
            except UnusableAnswer as unusable:
                on_update(ReplyVoid())
                exchange += _repair(said, unusable)
                if unusable.problem == fault:
                    break
                repairs, fault = repairs + 1, unusable.problem
                continue
            calls = (ModelCall(output="Decision", tokens=spent),)
            if isinstance(answer, Decision):
                return DecisionResult(decision=answer, exchange=(*exchange, said), calls=calls)
            known = [call for call in said.calls if answer.ask_again or call.id in answer.told]
            exchange += [said, *(result_of(call, answer.told.get(call.id, "")) for call in known)]
            noted = join_notes(noted, answer.fields)
            if not answer.ask_again:
                decision, requirements = answer.result(noted)
                return DecisionResult(
                    decision=decision,
                    exchange=tuple(exchange),
                    calls=calls,
                    requirements=requirements,
                    closing=(answer.closing or "") if answer.actions else "",
                )
            notes += 1
        problem = fault or "notes and nothing else"
        raise unusable_answer(stop, request, problem).with_usage(spent)

    def _understand(
        self, response: CollectedResponse, said: ChatMessage, request: ModelRequest
    ) -> NativeAnswer | Decision:
        check_whole(response)
        if response.stop == "length":
            limit = f"the answer was cut at the limit of {request.max_tokens} tokens"
            raise UnusableAnswer(f"{limit}: say it shorter, and write a long file in several calls")
        return read_calls(response.text, said.calls, self._check, self._operations)


def _said(response: CollectedResponse, unique: str) -> ChatMessage:
    """Convert the answer to a message. A call whose id is missing or a duplicate gets a new id."""
    calls: list[ToolCall] = []
    taken: set[str] = set()
    for place, call in enumerate(response.calls):
        named = call if call.id and call.id not in taken else replace(call, id=f"call_{unique}_{place}")
        taken.add(named.id)
        calls.append(named)
    return ChatMessage(
        role="assistant", text=response.text.strip(), calls=tuple(calls), thoughts=tuple(response.thoughts)
    )


def _repair(said: ChatMessage, unusable: UnusableAnswer) -> list[ChatMessage]:
    problem = cut(unusable.problem.encode("utf-8", "replace").decode(), _PROBLEM)
    if said.calls:
        faults = unusable.by_call if isinstance(unusable, UnusableCalls) else {said.calls[0].id: problem}
        told = (
            result_of(call, cut(faults.get(call.id, _OTHERS_NOT_RUN), _PROBLEM), failed=True)
            for call in said.calls
        )
        return [said, *told]
    text = f"That answer can't be used: {problem}. Call tools, or reply in plain text."
    asked = ChatMessage(role="user", text=text)
    return [said, asked] if said.text else [asked]
