"""The prompt for a Decision: fixed text, operations, rules; then what grows; then what changes (SPEC F5)."""

from collections.abc import Sequence

from duckflow.domain.decision import Operation
from duckflow.domain.model import ChatMessage, ModelRequest, ModelTraits, NativeTool
from duckflow.domain.state import AgentState
from duckflow.llm.answers.native_calls import native_name
from duckflow.prompts.budget import DROP_ORDER, LayerBudget, Layers, PromptFrame, share_window
from duckflow.prompts.conversation.history import PromptHistory
from duckflow.prompts.layers import session_text
from duckflow.prompts.sections import RenderedPrompt, SectionName
from duckflow.prompts.templates import fill, template
from duckflow.prompts.tokens import TokenCounter

ENDING = "Output: Decision"

_NEWEST_SHARE = 2
"""What was found lately has this part of the window before anything but evidence goes: one in so many."""


class DecisionPrompt:
    """Asks one model, with room and sense, for the decisions of one session."""

    def __init__(
        self, traits: ModelTraits, operations: Sequence[Operation], frame: PromptFrame, counter: TokenCounter
    ) -> None:
        self._traits = traits
        self._room = share_window(traits)
        self._counter = counter
        self._conversation = PromptHistory(counter)
        self._budget = LayerBudget(frame.budgets, counter)
        self._tools = native_tools(operations) if traits.native_tools else ()
        self._parts = fixed_parts(operations, frame.rules)
        self._fixed: dict[SectionName, int] = {}

    async def assemble(self, state: AgentState) -> RenderedPrompt:
        """What the model is asked in this state."""
        system = await self._beginning(session_text(state))
        await self._conversation.read(state)
        fixed = sum(self._fixed.values())
        layers = await self._layers(state, self._room.limit - fixed)
        taken = fixed + layers.total
        if await self._conversation.trim(self._room.most - taken, self._room.limit - taken):
            layers = await self._layers(state, self._room.limit - fixed)
        request = ModelRequest(
            output="Decision",
            messages=(system, *self._conversation.with_ending(layers.text + ENDING)),
            tools=self._tools,
            max_tokens=self._room.answer,
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

    @property
    def dropped(self) -> tuple[str, ...]:
        """The results that the last prompt did not show any more."""
        return tuple(self._conversation.dropped)

    def _left_out(self, state: AgentState, layers: Layers) -> dict[str, int]:
        """What the budgets kept out of the prompt."""
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
        """What all prompts begin with; it changes only when the user changes the mode."""
        if self._parts.get("session") != session:
            self._parts["session"] = session
            self._fixed = {name: await self._counter.count(text) for name, text in self._parts.items()}
        return ChatMessage(role="system", text=fill("system", **self._parts).strip(), stable=True)

    async def _layers(self, state: AgentState, room: int) -> Layers:
        """The layers, as much of them as leaves room for what can't be left out."""
        # What the conversation still shows needs no summary.
        earlier = [line for line in state.summaries if not self._conversation.shows(_opening(line))]
        base = self._fixed["base"] + self._fixed["session"]
        needed = self._conversation.least(self._traits.window // _NEWEST_SHARE)
        layers = await self._budget.layers(state, earlier, base, ())
        for count in range(1, len(DROP_ORDER) + 1):
            if layers.total + needed <= room:
                break
            layers = await self._budget.layers(state, earlier, base, DROP_ORDER[:count])
        return layers


def fixed_parts(operations: Sequence[Operation], rules: str) -> dict[SectionName, str]:
    """The beginning that never changes within a session, by part."""
    return {
        "base": template("base"),
        "output": template("decision"),
        "operations": "".join(["Operations\n", *(f"- {operation.line}\n" for operation in operations)]),
        "rules": f"Rules of this project\n{rules}\n" if rules else "",
    }


def native_tools(operations: Sequence[Operation]) -> tuple[NativeTool, ...]:
    """The same operations as tool calls of the provider's own kind."""
    return tuple(
        NativeTool(
            name=native_name(operation.name),
            description=operation.line,
            parameters=dict(operation.schema()),
        )
        for operation in operations
    )


def _opening(summary: str) -> str:
    """How the message began that a summary speaks of: the summary begins with it, cut."""
    return summary.partition(" → ")[0].removesuffix("…")
