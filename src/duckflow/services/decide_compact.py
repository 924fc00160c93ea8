"""The same Decision from a small model: one operation under a narrow schema, then each file's content."""

import json
from typing import Any, Protocol, cast

from pydantic import model_validator

from duckflow.domain.decision import Decision, TaskProfile
from duckflow.domain.errors import BadAnswer
from duckflow.domain.model import ChatMessage, ModelRequest
from duckflow.domain.ports import ModelClient
from duckflow.domain.state import AgentState
from duckflow.llm.answers.response import collect
from duckflow.llm.answers.structured import ask
from duckflow.prompts.compact import (
    Choices,
    CompactPrompt,
    ContentPrompt,
    Wish,
    compact_system,
    content_prompt,
)
from duckflow.prompts.sections import RenderedPrompt
from duckflow.prompts.tokens import TokenCounter
from duckflow.services.decide import Check, Decided, ModelCall, OnGlimpse

LOOKING = ("file_ops.read_file", "file_ops.search")
PROFILES: dict[Wish, TaskProfile] = {"answer": "simple_question", "change": "file_operation"}
"""What a small model's word for the user's wish means as a profile."""

_WRITE = "file_ops.write_file"


class CompactDecision(Decision):
    """A Decision that may also be written flat: what the user wants, and one operation with its arguments."""

    @model_validator(mode="before")
    @classmethod
    def _unfold(cls, data: object) -> object:
        if not isinstance(data, dict) or "operation" not in data or "actions" in data:
            return cast("object", data)
        flat = cast("dict[str, Any]", data).copy()
        operation, reply = flat.pop("operation"), flat.pop("reply", "")
        profile = PROFILES.get(cast("Wish", flat.pop("wants", "")))
        paths = flat.pop("paths", None)
        calls = [flat] if paths is None else [{**flat, "path": path} for path in dict.fromkeys(paths)]
        actions = [] if operation == "reply" else [{"operation": operation, "args": args} for args in calls]
        return {
            "reply": reply,
            "actions": actions,
            "next_step": "continue" if operation in LOOKING else "done",
            "task_profile": profile,
        }


class Look(Protocol):
    """What there is in the workspace, for a model that must not have to guess."""

    async def choices(self, state: AgentState) -> Choices:
        """What makes sense now."""
        ...

    async def content(self, path: str) -> str | None:
        """What a file holds, None where there is none that can be shown."""
        ...


class CompactDecider:
    """For small models. `look` tells what there is to choose from at this moment."""

    def __init__(self, client: ModelClient, look: Look, rules: str, check: Check) -> None:
        self._client = client
        self._look = look
        self._prompt = CompactPrompt(client.traits, rules, TokenCounter(client))
        self._check = check

    async def decide(self, state: AgentState, on_glimpse: OnGlimpse) -> Decided:
        """The next decision in this state, file contents included."""
        choices = await self._look.choices(state)
        request = (await self._prompt.assemble(state, choices)).request
        answer = await ask(self._client, request, CompactDecision, on_glimpse, self._check)
        said = ChatMessage(role="assistant", text=_without_promise(answer.text))
        decided = Decided(
            decision=Decision.model_validate(answer.value.model_dump()),
            exchange=(said,),
            calls=(ModelCall(output="Decision", tokens=answer.usage),),
        )
        for place, action in enumerate(decided.decision.actions):
            if action.operation == _WRITE and "content" not in action.args:
                decided = await self._with_content(state, request, decided, place, choices)
        return decided

    async def preview(self, state: AgentState) -> RenderedPrompt:
        """What the model would be asked in this state."""
        return await self._prompt.assemble(state, await self._look.choices(state))

    async def _with_content(
        self, state: AgentState, request: ModelRequest, decided: Decided, place: int, choices: Choices
    ) -> Decided:
        """The decision with the content of the file that its action at `place` writes."""
        action = decided.decision.actions[place]
        path = str(action.args.get("path", ""))
        current = await self._look.content(path)
        asked = state.request.text if state.request else ""
        prompt = content_prompt(
            asked, path, exists=current is not None, unseen=current if path in choices.hidden else None
        )
        question = ChatMessage(role="user", text=prompt.question)
        opening = ChatMessage(role="assistant", text=prompt.opening)
        heard = await collect(
            self._client,
            ModelRequest(
                output="Content",
                messages=(*request.messages, *decided.exchange, question, opening),
                stop=(prompt.closing,),
                max_tokens=self._client.traits.window // 3,
                temperature=0.0,
            ),
            lambda _: None,
            has_reply=False,
        )
        if heard.stop != "end":
            error = BadAnswer("llm.content_cut", path=path)
            error.usage = sum((call.tokens for call in decided.calls), heard.usage)
            raise error
        content = inside_fence(heard.text, prompt)
        answered = ChatMessage(role="assistant", text=f"{prompt.opening}{content.rstrip()}{prompt.closing}")
        return Decided(
            decision=_with_argument(decided.decision, place, content),
            exchange=(*decided.exchange, question, answered),
            calls=(*decided.calls, ModelCall(output="Content", tokens=heard.usage)),
        )


async def read_ahead(client: ModelClient, rules: str) -> None:
    """Let the model read the beginning of every prompt to come; what it says is of no interest."""
    await collect(
        client,
        ModelRequest(output="Nothing", messages=(compact_system(rules),), max_tokens=1, temperature=0.0),
        lambda _: None,
        has_reply=False,
    )


def inside_fence(text: str, prompt: ContentPrompt) -> str:
    """The content itself, whether or not the model repeated the opening it was given."""
    fence = prompt.closing.strip()
    stripped = text.lstrip("\n")
    if stripped.startswith(fence):
        stripped = stripped.partition("\n")[2]
    body = stripped.partition(prompt.closing)[0] if not stripped.startswith(fence) else ""
    return f"{body.rstrip()}\n" if body.strip() else ""


def _without_promise(text: str) -> str:
    """A write without what was said of it: a small model keeps to its word, even to broken code."""
    try:
        flat: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    named = cast("dict[str, object]", flat) if isinstance(flat, dict) else {}
    if named.get("operation") != _WRITE:
        return text
    return json.dumps({**named, "reply": "…"}, ensure_ascii=False, separators=(",", ":"))


def _with_argument(decision: Decision, place: int, content: str) -> Decision:
    actions = list(decision.actions)
    action = actions[place]
    actions[place] = action.model_copy(update={"args": {**action.args, "content": content}})
    return decision.model_copy(update={"actions": tuple(actions)})
