"""Prompt for a Decision: fixed text, then the growing conversation, then the part that changes (F5)."""

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from duckflow.domain.frozen import Frozen
from duckflow.domain.model import ChatMessage, Effort, ModelRequest, ModelTraits, NativeTool
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.state import AgentState
from duckflow.llm.tokens import TokenCounter
from duckflow.prompts.conversation.history import PromptHistory
from duckflow.prompts.conversation.lines import PromptLine
from duckflow.prompts.layers import (
    SHOWS_MAIN,
    SHOWS_PROCEDURE,
    Droppable,
    main_text,
    procedure_text,
    session_text,
)
from duckflow.prompts.sections import RenderedPrompt, SectionName
from duckflow.prompts.templates import fill, template

DROP_ORDER: tuple[Droppable, ...] = ("summaries", "open_questions", "plan_brief")
"""Parts to drop, in this order, once no more evidence can be dropped."""

_ANSWER_SHARE = 4
"""The prompt is trimmed once less than a quarter of the window is free."""

_LONGEST_ANSWER = 8192
_GUESS = 2
"""A guessed window may really be this many times larger; parts that are never dropped may use that size."""

_NEWEST_SHARE = 2
"""Layers are dropped to make room for recent results, up to half of the window."""

_GAP = lazy_regex(r"\n{3,}")


class PromptRoom(NamedTuple):
    """Shares of a large model's window, in tokens."""

    most: int
    """Size above which the prompt is trimmed."""
    limit: int
    """Hard limit of a prompt whose droppable parts are gone: recent loops, the request and the rules."""
    answer: int
    """Limit of the answer."""


def share_window(traits: ModelTraits) -> PromptRoom:
    """Divide a window. Parts of the prompt that are never dropped may use all but the answer's share."""
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
    """Tokens for the procedure of a step, which is left out if it is longer."""


class PromptFrame(Frozen):
    """Parts that all prompts of a session share."""

    rules: str = ""
    sandbox: str = ""
    """Description of how commands run (`layers.sandbox_text`)."""
    sizes: LayerSizes = LayerSizes()


class PromptForm(NamedTuple):
    """Parts of a decision prompt that depend on the dialect."""

    output: str
    """Instructions for the answer's form."""
    operations: str
    """The operations, if the text lists them."""
    tools: tuple[NativeTool, ...]
    """The operations, if the provider receives them as tools."""
    heading: str
    """First line of the part that changes with every prompt; may be empty."""
    ending: str
    """Last line of every prompt; may be empty."""
    render: Callable[[Sequence[PromptLine]], list[ChatMessage]]
    """Converts the lines of the conversation to messages."""


class Layers(NamedTuple):
    """Texts about the current work that change with every prompt ("layers"), with their token counts."""

    texts: dict[SectionName, str]
    tokens: dict[SectionName, int]

    @property
    def total(self) -> int:
        """Tokens of all layers together."""
        return sum(self.tokens.values())


class DecisionPrompt:
    """Prompts that ask one large model for the decisions of a session."""

    def __init__(
        self, traits: ModelTraits, form: PromptForm, frame: PromptFrame, counter: TokenCounter
    ) -> None:
        self._traits = traits
        self._form = form
        self._sandbox = frame.sandbox
        self._room = share_window(traits)
        self._counter = counter
        self._conversation = PromptHistory(counter)
        self._sizes = frame.sizes
        self._parts: dict[SectionName, str] = {
            "base": template("base"),
            "output": form.output,
            "operations": form.operations,
            "rules": f"Rules of this project\n{frame.rules}\n" if frame.rules else "",
        }
        self._fixed: dict[SectionName, int] = {}

    async def assemble(self, state: AgentState, effort: Effort | None = None) -> RenderedPrompt:
        """Build the prompt for this state."""
        system = await self._beginning(session_text(state, self._sandbox))
        await self._conversation.read(state)
        fixed = sum(self._fixed.values())
        layers = await self._layers(state, self._room.limit - fixed)
        taken = fixed + layers.total
        if await self._conversation.trim(self._room.most - taken, self._room.limit - taken):
            layers = await self._layers(state, self._room.limit - fixed)
        messages = [system, *self._form.render(self._conversation.marked())]
        ending = "".join([self._form.heading, *layers.texts.values(), self._form.ending])
        if ending.strip():
            messages.append(ChatMessage(role="user", text=ending))
        request = ModelRequest(
            output="Decision",
            messages=tuple(messages),
            tools=self._form.tools,
            max_tokens=self._room.answer,
            effort=effort,
            cache_key=state.session_id,
        )
        return RenderedPrompt(
            model=self._traits.name,
            window=self._traits.window,
            window_from=self._traits.window_from,
            request=request,
            tokens={**self._fixed, **self._conversation.tokens, **layers.tokens},
            left_out=self._left_out(state, layers),
            dropped=tuple(self._conversation.dropped),
            recap=self._conversation.recap,
        )

    def _left_out(self, state: AgentState, layers: Layers) -> dict[str, int]:
        evidence, words = self._conversation.left_out
        main = layers.texts["main"]
        items = state.items
        return {
            "evidence": evidence,
            "words": words,
            "summaries": sum(line not in layers.texts["summaries"] for line in self._earlier(state)),
            "open_questions": sum(bool(main) and one not in main for one in items.open_questions),
            "plan_brief": sum(bool(main) and one not in main for one in items.plan_brief),
        }

    async def _beginning(self, session: str) -> ChatMessage:
        """Return the system message, which changes rarely, for example with the mode."""
        if self._parts.get("session") != session:
            self._parts["session"] = session
            self._fixed = {name: await self._counter.count(text) for name, text in self._parts.items()}
            tools = (json.dumps(tool.model_dump(), ensure_ascii=False) for tool in self._form.tools)
            self._fixed["operations"] += await self._counter.count("\n".join(tools))
        text = _GAP.sub("\n\n", fill("system", **self._parts).strip())
        return ChatMessage(role="system", text=text, stable=True)

    async def _layers(self, state: AgentState, room: int) -> Layers:
        """Return the layers, dropping parts until the needed part of the conversation fits too."""
        needed = self._conversation.least(self._traits.window // _NEWEST_SHARE)
        judged = state.request is not None and state.request.objective.evaluation is not None
        # The conversation contains the requirements until it is trimmed, but never their scores.
        dropped: tuple[Droppable, ...] = () if judged or self._conversation.recap else ("requirements",)
        layers = await self._write_layers(state, dropped)
        for name in DROP_ORDER:
            if layers.total + needed <= room:
                break
            dropped = (*dropped, name)
            layers = await self._write_layers(state, dropped)
        return layers

    async def _write_layers(self, state: AgentState, dropped: Sequence[Droppable]) -> Layers:
        """Return the layers that the state's prompt pattern includes, each within its budget."""
        procedure = procedure_text(state.step) if state.pattern in SHOWS_PROCEDURE else ""
        if await self._counter.count(procedure) > self._sizes.specialized:
            procedure = ""
        texts: dict[SectionName, str] = {
            "summaries": "" if "summaries" in dropped else await self._summaries(state),
            "main": await self._main(state, dropped) if state.pattern in SHOWS_MAIN or not procedure else "",
            "specialized": procedure,
        }
        return Layers(texts, {name: await self._counter.count(text) for name, text in texts.items()})

    async def _summaries(self, state: AgentState) -> str:
        """Return as many of the newest summaries as fit."""
        room = self._sizes.base - self._fixed["base"] - self._fixed["session"]
        lines = [f"- {line}" for line in self._earlier(state)]
        for start in range(len(lines)):
            text = fill("summaries", lines="\n".join(lines[start:]))
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

    def _earlier(self, state: AgentState) -> list[str]:
        """Return the summaries of requests that the conversation no longer shows."""
        openings = ((line, line.partition(" → ")[0].removesuffix("…")) for line in state.summaries)
        return [line for line, opening in openings if not self._conversation.shows(opening)]
