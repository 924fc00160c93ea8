"""Decisions from small models: one operation under a narrow schema, then the content of each file.

If a long message can only mean one file, the program decides to write it without asking the model. If the
model knows nothing else, it gets a plain prompt, because Duckflow's instructions would lower the quality.
"""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol, cast

from pydantic import model_validator

from duckflow.dialects.compact_prompt import (
    LONG_MESSAGE,
    Choices,
    CompactPrompt,
    Wish,
    compact_system,
    content_prompt,
    plain_prompt,
)
from duckflow.dialects.dialect import Check, DecisionResult, ModelCall, OnUpdate
from duckflow.dialects.drafts import DraftCheck, DraftLimits, draft
from duckflow.domain.decision import Decision, TaskProfile
from duckflow.domain.errors import BadAnswer
from duckflow.domain.frozen import replace
from duckflow.domain.live_updates import ReplyVoid
from duckflow.domain.model import ChatMessage, Effort, ModelClient, ModelRequest
from duckflow.domain.state import AgentState
from duckflow.domain.text import is_japanese
from duckflow.i18n.catalogue import Language, text_in
from duckflow.llm.answers.response import collect
from duckflow.llm.answers.structured import StructuredAnswer, ask
from duckflow.llm.tokens import TokenCounter
from duckflow.prompts.sections import RenderedPrompt

LOOKING = ("file_ops.read_file", "file_ops.search")
MAKING = ("file_ops.write_file", "file_ops.move_file")
PROFILES: dict[Wish, TaskProfile] = {"answer": "simple_question", "change": "file_operation"}
"""Task profile for each wish of the user that a small model distinguishes."""

_WRITE = "file_ops.write_file"
_TABLE = (
    ("read", "file_ops.read_file", "small.reads"),
    ("search", "file_ops.search", "small.searches"),
    ("write", _WRITE, "small.writes"),
    ("move", "file_ops.move_file", "small.moves"),
    ("delete", "file_ops.delete_file", "small.deletes"),
)
"""Rows of (short name, operation, key of the text for the user). Short names save tokens, and so time."""
_OPERATIONS = {short: operation for short, operation, _ in _TABLE}
_WORDS = {operation: key for _, operation, key in _TABLE}

_QUOTED = 0.3
"""Largest share of Japanese characters in a reply that counts as English."""

_JUST_ASKED = 3
"""Number of messages in the shortest prompt: the system text, one user message and the closing question."""
_STUB = 2_000
"""Maximum size in characters of a file that may appear in the prompt twice."""
_IN_ENGLISH = "Answer in English.\n\nOutput: Decision"
_IN_JAPANESE = "ユーザーの文章を日本語に訳してください。訳文だけを答えてください。"


class CompactDecision(Decision):
    """Decision that may be written as one flat object: the user's wish, one operation, its arguments."""

    @model_validator(mode="before")
    @classmethod
    def _unfold(cls, data: object) -> object:
        if not isinstance(data, dict) or "operation" not in data or "actions" in data:
            return cast("object", data)
        flat = cast("dict[str, Any]", data).copy()
        operation, reply = flat.pop("operation"), flat.pop("reply", "")
        operation = _OPERATIONS.get(operation, operation)
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
    """Facts about the workspace, so that a small model need not guess."""

    async def choices(self, state: AgentState) -> Choices:
        """Return the operations and files that make sense in this state."""
        ...

    async def content(self, path: str) -> str | None:
        """Return the content of a file, None if it does not exist or can't be shown."""
        ...

    async def check(self, state: AgentState, path: str, content: str) -> DraftCheck:
        """Run the program's checks on a file as if it had this content, without writing it."""
        ...

    async def failing_tests(self, paths: Sequence[str]) -> frozenset[str]:
        """Return the failing tests of the code files among `paths`; none unless `paths` has tests too."""
        ...


class Compact:
    """Dialect for small models. `look` tells which operations and files make sense at the moment."""

    def __init__(
        self, client: ModelClient, look: Look, rules: str, check: Check, limits: DraftLimits
    ) -> None:
        self._client = client
        self._look = look
        self._prompt = CompactPrompt(client.traits, rules, TokenCounter(client))
        self._check = check
        self._limits = limits
        self._plain = not rules

    async def decide(
        self, state: AgentState, on_update: OnUpdate, effort: Effort | None = None
    ) -> DecisionResult:
        """Return the next decision for this state, with the content of the files to write."""
        choices = await self._look.choices(state)
        if self._plain and choices.told and not choices.files and _nothing_else_known(state, "", None):
            decided = _told(choices.told, _language(state))
            return await self._with_content(state, (), decided, 0, choices)
        request = replace((await self._prompt.assemble(state, choices)).request, effort=effort)
        language = _language(state)
        answer = await self._ask(request, on_update, language)
        decision = Decision.model_validate(answer.value.model_dump())
        decision = _in_words(await self._measured(decision), language)
        decided = DecisionResult(
            decision=decision,
            exchange=(ChatMessage(role="assistant", text=answer.text),),
            calls=(ModelCall(output="Decision", tokens=answer.usage),),
        )
        for place, action in enumerate(decided.decision.actions):
            if action.operation == _WRITE and "content" not in action.args:
                decided = await self._with_content(state, request.messages, decided, place, choices)
        return decided

    async def preview(self, state: AgentState) -> RenderedPrompt:
        """Return the prompt that `decide` would send for this state."""
        return await self._prompt.assemble(state, await self._look.choices(state))

    async def _ask(
        self, request: ModelRequest, on_update: OnUpdate, language: Language
    ) -> StructuredAnswer[CompactDecision]:
        """Ask for the decision. A reply in the wrong language is translated or requested again."""
        show: OnUpdate = on_update if language == "en" else lambda _: None
        answer = await ask(self._client, request, CompactDecision, show, self._check)
        reply = answer.value.reply
        if answer.value.actions or not reply.strip() or _speaks(reply, request, language):
            return answer
        if language == "ja":
            return await self._in_japanese(request, answer)
        show(ReplyVoid())
        said = ChatMessage(role="assistant", text=answer.text)
        again = ChatMessage(role="user", text=_IN_ENGLISH)
        asked = replace(request, messages=(*request.messages, said, again))
        second = await ask(self._client, asked, CompactDecision, show, self._check)
        usage = answer.usage + second.usage
        return StructuredAnswer(second.value, second.text, usage)

    async def _in_japanese(
        self, request: ModelRequest, answer: StructuredAnswer[CompactDecision]
    ) -> StructuredAnswer[CompactDecision]:
        """Translate the reply in a separate call. In a conversation, a small model echoes the instruction."""
        wish = ChatMessage(role="system", text=_IN_JAPANESE)
        reply = ChatMessage(role="user", text=answer.value.reply)
        alone = replace(request, messages=(wish, reply), answer_schema=None)
        response = await collect(self._client, alone)
        said, value, text = response.text.strip(), answer.value, answer.text
        if response.stop == "end" and is_japanese(said) and said not in _IN_JAPANESE:
            value = replace(value, reply=said)  # otherwise keep the reply, although its language is wrong
            text = json.dumps({"wants": "answer", "operation": "reply", "reply": said}, ensure_ascii=False)
        return StructuredAnswer(value, text, answer.usage + response.usage)

    async def _measured(self, decision: Decision) -> Decision:
        """Remove writes to tests that fail now if the decision also writes the code under test."""
        writes = [str(action.args.get("path")) for action in decision.actions if action.operation == _WRITE]
        failing = await self._look.failing_tests(writes) if len(writes) > 1 else ()
        kept = tuple(action for action in decision.actions if action.args.get("path") not in failing)
        return replace(decision, actions=kept) if kept else decision

    async def _with_content(
        self,
        state: AgentState,
        asked: Sequence[ChatMessage],
        decided: DecisionResult,
        place: int,
        choices: Choices,
    ) -> DecisionResult:
        path = str(decided.decision.actions[place].args.get("path", ""))
        current = await self._look.content(path)
        repeated = _asked(state) if len(asked) > _JUST_ASKED else ""
        hidden = current if path in choices.hidden else None
        prompt = content_prompt(repeated, path, exists=current is not None, unseen=hidden)
        question = ChatMessage(role="user", text=prompt.question)
        before = (*asked, *decided.exchange, question)
        if self._plain and _nothing_else_known(state, path, current):
            before = (ChatMessage(role="user", text=plain_prompt(_asked(state), path, current)),)
        wanted = ModelRequest(
            output="Content",
            messages=(*before, ChatMessage(role="assistant", text=prompt.opening)),
            stop=(prompt.closing,),
            max_tokens=self._client.traits.window // 3,
            temperature=0.0,
        )

        objective = state.request.objective if state.request else None
        content, usage = await draft(
            self._client,
            wanted,
            prompt,
            partial(self._look.check, state, path),
            self._limits,
            failed_attempts=len(objective.failed_attempts) if objective else 0,
            current=current,
            must_change=len(decided.decision.actions) == 1,
        )
        if content is None:
            spent = sum((call.tokens for call in decided.calls), usage)
            raise BadAnswer("llm.content_cut", path=path).with_usage(spent)
        actions = list(decided.decision.actions)
        actions[place] = replace(actions[place], args={**actions[place].args, "content": content})
        answered = ChatMessage(role="assistant", text=f"{prompt.opening}{content.rstrip()}{prompt.closing}")
        return DecisionResult(
            decision=replace(decided.decision, actions=tuple(actions)),
            exchange=(*decided.exchange, question, answered),
            calls=(*decided.calls, ModelCall(output="Content", tokens=usage)),
        )


async def read_ahead(client: ModelClient, rules: str) -> None:
    """Let the model process in advance the text with which all prompts begin. Its answer is ignored."""
    beginning = compact_system(rules)
    await collect(
        client, ModelRequest(output="Nothing", messages=(beginning,), max_tokens=1, temperature=0.0)
    )


def _asked(state: AgentState) -> str:
    return state.request.objective.request if state.request else ""


def _told(path: str, language: Language) -> DecisionResult:
    """Return the decision, as a model would write it, to write the only file that a message can mean."""
    flat = {"wants": "change", "operation": "write", "paths": [path]}
    said = ChatMessage(role="assistant", text=json.dumps(flat, separators=(",", ":"), ensure_ascii=False))
    decision = Decision.model_validate(CompactDecision.model_validate(flat).model_dump())
    return DecisionResult(decision=_in_words(decision, language), exchange=(said,), calls=())


def _nothing_else_known(state: AgentState, path: str, current: str | None) -> bool:
    """Return True if the state has only a long first message and perhaps the short file it is about."""
    said, *found = state.transcript or (None,)
    return (
        said is not None
        and len(_asked(state)) >= LONG_MESSAGE
        and len(current or "") <= _STUB
        and all(entry.evidence_id and entry.path == path for entry in found)
    )


def _language(state: AgentState) -> Language:
    """Return the language of the user's last message (F8)."""
    said = next((entry.text for entry in reversed(state.transcript) if entry.said), "")
    return "ja" if is_japanese(said) else "en"


def _speaks(reply: str, request: ModelRequest, language: Language) -> bool:
    """Return True if a reply is in the user's language. English may contain some Japanese."""
    if language == "ja":
        return is_japanese(reply)
    asked = any("japanese" in one.text.casefold() for one in request.messages if one.role == "user")
    return asked or sum(map(is_japanese, reply)) <= len(reply) * _QUOTED


def _in_words(decision: Decision, language: Language) -> Decision:
    """Return the decision with a reply: the model's own, else a description of the actions."""
    if not decision.actions or decision.reply.strip() or decision.actions[0].operation not in _WORDS:
        return decision
    names = [str(action.args.get("path") or action.args.get("pattern", "")) for action in decision.actions]
    what = ("、" if language == "ja" else ", ").join(names)
    return replace(decision, reply=text_in(language, _WORDS[decision.actions[0].operation], what=what))
