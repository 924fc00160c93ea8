"""Decisions from small models: one operation under a narrow schema, then the content of each file.

If a long message can only mean one file, the program decides to write it without asking the model. If the
model knows nothing else, it gets a plain prompt, because Duckflow's instructions would lower the quality.
"""

import json
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Protocol, cast

from pydantic import model_validator

from duckflow.dialects.compact_answer import answer_plainly
from duckflow.dialects.compact_program import PROFILES, decide_by_words, saying
from duckflow.dialects.compact_prompt import (
    LONG_MESSAGE,
    Choices,
    CompactPrompt,
    ContentPrompt,
    Wish,
    answer_ending,
    compact_system,
    content_prompt,
    lasting_beginning,
    plain_prompt,
)
from duckflow.dialects.dialect import Check, DecisionResult, ModelCall, OnUpdate
from duckflow.dialects.drafts import DraftCheck, DraftLimits, draft, inside_fence
from duckflow.domain.decision import Action, Decision
from duckflow.domain.errors import BadAnswer
from duckflow.domain.frozen import replace
from duckflow.domain.live_updates import ReplyPiece
from duckflow.domain.model import ChatMessage, Effort, ModelClient, ModelRequest
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.questions.approval import STOPPED
from duckflow.domain.state import AgentState
from duckflow.domain.text import is_japanese
from duckflow.i18n.answers import is_go_on
from duckflow.i18n.catalogue import Language, text_in
from duckflow.llm.answers.response import collect
from duckflow.llm.answers.structured import ask
from duckflow.llm.tokens import TokenCounter
from duckflow.prompts.sections import RenderedPrompt

LOOKING = ("file_ops.read_file", "file_ops.search")
MAKING = ("file_ops.write_file", "file_ops.move_file")
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

_JUST_ASKED = 3
"""Number of messages in the shortest prompt: the system text, one user message and the closing question."""
_STUB = 2_000
"""Maximum size in characters of a file that may appear in the prompt twice."""
_SHORTEST = 3
"""Characters of a message that may belong to any language."""
_TO_FOLLOW = "…"
"""Stands for the reply of a decision to answer, which the model writes afterwards."""
_IN_MANY_FOLDERS = ("__init__.py", "README.md", "index.html", "conftest.py", "Makefile", "main.py")
"""Names of files that often stand in several folders."""
_LANGUAGES = {
    "rb": lazy_regex(r"\bruby\b|\.rb\b"),
    "js": lazy_regex(
        r"javascript|\bjs\b|node|\bweb|browser|html|\bpage|react|ブラウザ|ページ|サイト|ボタン|画面"
    ),
    "ts": lazy_regex(
        r"typescript|\bts\b|node|\bweb|browser|html|\bpage|react|ブラウザ|ページ|サイト|ボタン|画面"
    ),
    "go": lazy_regex(r"\bgo\b|golang"),
    "rs": lazy_regex(r"\brust\b"),
    "c": lazy_regex(r"\bc\b|c言語"),
    "cpp": lazy_regex(r"c\+\+|cpp"),
    "java": lazy_regex(r"\bjava\b"),
    "php": lazy_regex(r"\bphp\b"),
}
"""Words that speak for a language, by its suffix."""
_MAY_BE_EMPTY = ("__init__.py", "py.typed", ".gitkeep")
"""Names of files that are often meant to be empty. An empty draft of any other file is a mistake."""


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
            "reply": reply or (_TO_FOLLOW if operation == "reply" else ""),
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

    async def reads(self, paths: Sequence[str]) -> tuple[Action, ...]:
        """Return actions to read these files, as much of them as a small model can read in good time."""
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
        language = _language(state)
        decided = decide_by_words(choices, language)
        if decided is not None:
            return decided
        if self._plain and choices.told and not choices.files and _nothing_else_known(state, "", None):
            decided = _announced(_told(choices.told, language), on_update)
            return await self._with_content(state, (), decided, 0, choices, on_update)
        request = replace((await self._prompt.assemble(state, choices)).request, effort=effort)
        if choices.answers_now:
            return await self._answer(state, request, language, on_update)
        if choices.writes:
            decided = _announced(_told(choices.writes, language), on_update)
            return await self._with_content(state, request.messages, decided, 0, choices, on_update)
        answer = await ask(self._client, request, CompactDecision, lambda _: None, self._check)
        decision = Decision.model_validate(answer.value.model_dump())
        decision = _in_words(await self._measured(_placed(decision, choices.files, _asked(state))), language)
        decided = DecisionResult(
            decision=await self._bounded(decision),
            exchange=(ChatMessage(role="assistant", text=answer.text),),
            calls=(ModelCall(output="Decision", tokens=answer.usage),),
        )
        if decision.reply == _TO_FOLLOW:
            return await self._answer(state, request, language, on_update, decided)
        _announced(decided, on_update)
        for place, action in enumerate(decided.decision.actions):
            if action.operation == _WRITE and "content" not in action.args:
                decided = await self._with_content(
                    state, request.messages, decided, place, choices, on_update
                )
        return decided

    async def preview(self, state: AgentState) -> RenderedPrompt:
        """Return the prompt that `decide` would send for this state."""
        return await self._prompt.assemble(state, await self._look.choices(state))

    async def _answer(
        self,
        state: AgentState,
        request: ModelRequest,
        language: Language,
        on_update: OnUpdate,
        decided: DecisionResult | None = None,
    ) -> DecisionResult:
        """Ask for the answer in plain words, right away or after the model has `decided` to give one."""
        said = next((entry.text for entry in reversed(state.transcript) if entry.said), "")
        said = said.partition("\n\n")[0]  # without notes of the program
        asked = ChatMessage(role="user", text=answer_ending(said, language))
        before = request.messages[:-1] if decided is None else (*request.messages, *decided.exchange)
        found = await answer_plainly(
            self._client, replace(request, messages=(*before, asked)), language, on_update
        )
        calls = (*(decided.calls if decided else ()), ModelCall(output="Answer", tokens=found.usage))
        reply = found.reply or text_in(language, "small.no_answer")
        return saying(reply, calls)

    async def _bounded(self, decision: Decision) -> Decision:
        """Replace reads of more than a small model can read in good time by fewer and shorter ones."""
        if not decision.actions or decision.actions[0].operation != LOOKING[0]:
            return decision
        paths = [str(action.args.get("path")) for action in decision.actions]
        return replace(decision, actions=await self._look.reads(paths))

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
        on_update: OnUpdate,
    ) -> DecisionResult:
        from duckflow.domain.files.effective_code import same_code, wants_text_only  # noqa: PLC0415 - imports ast

        path = str(decided.decision.actions[place].args.get("path", ""))
        current = await self._look.content(path)
        if current is None and path in choices.files:
            return saying(text_in(_language(state), "small.too_large", path=path), decided.calls)
        repeated = _asked(state) if len(asked) > _JUST_ASKED else ""
        hidden = current if path in choices.hidden else None
        beginning = lasting_beginning(_asked(state), current)
        prompt = content_prompt(
            repeated, path, exists=current is not None, unseen=hidden, beginning=beginning
        )
        question = ChatMessage(role="user", text=prompt.question)
        before = (*asked, *decided.exchange, question)
        if self._plain and _nothing_else_known(state, path, current):
            before = (ChatMessage(role="user", text=plain_prompt(_asked(state), path, current)),)
        wanted = ModelRequest(
            output="Content",
            messages=(*before, ChatMessage(role="assistant", text=prompt.opening + prompt.beginning)),
            stop=(prompt.closing,),
            max_tokens=self._client.traits.window // 3,
            temperature=0.0,
        )

        objective = state.request.objective if state.request else None
        refused = _refused(state, path, prompt)
        alone = len(decided.decision.actions) == 1
        text_only = wants_text_only(_asked(state))

        def is_unchanged(content: str) -> bool:
            """Return whether a draft would change nothing that the user can have meant."""
            return content == current or (
                current is not None and not text_only and same_code(path, current, content)
            )

        content, usage = await draft(
            self._client,
            wanted,
            prompt,
            partial(self._look.check, state, path),
            self._limits,
            failed_attempts=(len(objective.failed_attempts) if objective else 0) + len(refused),
            current=current,
            must_change=alone,
            is_unchanged=is_unchanged,
            may_be_empty=path.endswith(_MAY_BE_EMPTY),
            avoided=refused,
            on_update=on_update,
            path=path,
        )
        if content is None and refused:
            return saying(text_in(_language(state), "small.no_other", path=path), decided.calls)
        if content is not None and alone and is_unchanged(content):
            return saying(text_in(_language(state), "small.no_change", path=path), decided.calls)
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


def _announced(decided: DecisionResult, on_update: OnUpdate) -> DecisionResult:
    """Show the reply of a decision right away, because writing a file takes long."""
    on_update(ReplyPiece(text=f"{decided.decision.reply}\n"))
    return decided


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


def _in_usual_language(path: str, files: Sequence[str], asked: str) -> str:
    """Return the path with the suffix of Python, unless the request or the folder speaks for its language.

    Asked for "a program", a small model picks a language at random, which a beginner can't run.
    """
    stem, dot, suffix = path.rpartition(".")
    words = _LANGUAGES.get(suffix)
    named = path.rpartition("/")[2] in asked or (words is not None and words.search(asked.casefold()))
    if words is None or named or any(one.endswith(f"{dot}{suffix}") for one in files):
        return path
    return f"{stem}.py"


def _placed(decision: Decision, files: Sequence[str], asked: str) -> Decision:
    """Return the decision with the paths of existing files of which it gives only the name.

    A small model also invents folders: it writes src/calc.py beside calc.py. One that the user named stays.
    """

    def placed(action: Action) -> Action:
        path = _in_usual_language(str(action.args.get("path", "")), files, asked)
        action = replace(action, args={**action.args, "path": path}) if path else action
        name = path.rpartition("/")[2]
        found = [one for one in files if one.rpartition("/")[2] == name]
        if path in files or len(found) != 1 or name in _IN_MANY_FOLDERS or (path != name and path in asked):
            return action
        return replace(action, args={**action.args, "path": found[0]})

    return replace(decision, actions=tuple(placed(action) for action in decision.actions))


def _language(state: AgentState) -> Language:
    """Return the language of the user's last message (F8), except for one as short as "ok"."""
    texts = [entry.text for entry in state.transcript if entry.said]
    said = next((text for text in reversed(texts) if len(text) > _SHORTEST), texts[-1] if texts else "")
    return "ja" if is_japanese(said) else "en"


def _refused(state: AgentState, path: str, prompt: ContentPrompt) -> frozenset[str]:
    """Return the contents for this file that the user has not allowed to be written, by a no or a stop.

    After "go on", a draft that was only put off may be shown again.
    """
    said = next((entry.text for entry in reversed(state.transcript) if entry.said), "")
    refused: set[str] = set()
    drafted = ""
    for asked, entry in pairwise(state.transcript):
        if entry.role == "assistant" and entry.text.startswith(prompt.opening) and path in asked.text:
            drafted = inside_fence(entry.text.removeprefix(prompt.opening), prompt)
        elif drafted and entry.operation == _WRITE and entry.path == path:
            put_off = STOPPED in entry.text and is_go_on(said)
            refused |= {drafted} if entry.failed and not put_off else set()
            drafted = ""
    return frozenset(refused)


def _in_words(decision: Decision, language: Language) -> Decision:
    """Return the decision with a reply: the model's own, else a description of the actions."""
    if not decision.actions or decision.reply.strip() or decision.actions[0].operation not in _WORDS:
        return decision
    names = [str(action.args.get("path") or action.args.get("pattern", "")) for action in decision.actions]
    what = ("、" if language == "ja" else ", ").join(names)
    return replace(decision, reply=text_in(language, _WORDS[decision.actions[0].operation], what=what))
