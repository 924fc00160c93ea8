"""Prompt for a Decision: first the fixed text, then the growing part, then the changing part (F5)."""

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from duckflow.domain.model import ChatMessage, Effort, ModelRequest, ModelTraits, NativeTool
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.state import AgentState
from duckflow.prompts.budget import DROP_ORDER, LayerBudget, Layers, PromptFrame, share_window
from duckflow.prompts.conversation.history import PromptHistory
from duckflow.prompts.conversation.lines import PromptLine
from duckflow.prompts.layers import Droppable, session_text
from duckflow.prompts.sections import RenderedPrompt, SectionName
from duckflow.prompts.templates import fill, template
from duckflow.prompts.tokens import TokenCounter

_NEWEST_SHARE = 2
"""Layers are dropped to make room for recent results, but for at most half of the window."""


_GAP = lazy_regex(r"\n{3,}")


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
        self._budget = LayerBudget(frame.sizes, counter)
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
        request = ModelRequest(
            output="Decision",
            messages=(system, *self._messages(self._form.heading + layers.text + self._form.ending)),
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
            recap=self._conversation.recap,
        )

    def _messages(self, ending: str) -> list[ChatMessage]:
        messages = self._form.render(self._conversation.marked())
        return [*messages, ChatMessage(role="user", text=ending)] if ending.strip() else messages

    @property
    def dropped(self) -> tuple[str, ...]:
        """Results that the last prompt no longer showed."""
        return tuple(self._conversation.dropped)

    def _left_out(self, state: AgentState, layers: Layers) -> dict[str, int]:
        evidence, words = self._conversation.left_out
        main = layers.texts["main"]
        earlier = [line for line in state.summaries if not self._conversation.shows(_opening(line))]
        items = state.items
        return {
            "evidence": evidence,
            "words": words,
            "summaries": sum(line not in layers.texts["summaries"] for line in earlier),
            "open_questions": sum(bool(main) and one not in main for one in items.open_questions),
            "plan_brief": sum(bool(main) and one not in main for one in items.plan_brief),
        }

    async def _beginning(self, session: str) -> ChatMessage:
        """Return the common beginning of all prompts; it changes rarely, for example with the mode."""
        if self._parts.get("session") != session:
            self._parts["session"] = session
            self._fixed = {name: await self._counter.count(text) for name, text in self._parts.items()}
            self._fixed["operations"] += await self._counter.count(written_out(self._form.tools))
        text = _GAP.sub("\n\n", fill("system", **self._parts).strip())
        return ChatMessage(role="system", text=text, stable=True)

    async def _layers(self, state: AgentState, room: int) -> Layers:
        """Return the layers, dropping parts until there is room for what can't be left out."""
        # Requests that the conversation still shows need no summary.
        earlier = [line for line in state.summaries if not self._conversation.shows(_opening(line))]
        base = self._fixed["base"] + self._fixed["session"]
        needed = self._conversation.least(self._traits.window // _NEWEST_SHARE)
        known: tuple[Droppable, ...] = ("requirements",) if self._lists_requirements(state) else ()
        layers = await self._budget.layers(state, earlier, base, known)
        for count in range(1, len(DROP_ORDER) + 1):
            if layers.total + needed <= room:
                break
            layers = await self._budget.layers(state, earlier, base, (*known, *DROP_ORDER[:count]))
        return layers

    def _lists_requirements(self, state: AgentState) -> bool:
        """Return True if the conversation still shows the requirements and no verdict has scored them."""
        judged = state.request is not None and state.request.objective.evaluation is not None
        return not judged and not self._conversation.recap


def written_out(tools: Sequence[NativeTool]) -> str:
    """Return the tools as JSON text, to count their tokens."""
    return "\n".join(json.dumps(tool.model_dump(), ensure_ascii=False) for tool in tools)


def _opening(summary: str) -> str:
    """Return the (possibly cut) first words of the message that a summary describes."""
    return summary.partition(" → ")[0].removesuffix("…")
