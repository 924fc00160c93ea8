"""The prompt for a Decision: fixed text, operations and rules first, then what grows, then what changes."""

from collections.abc import Sequence

from duckflow.domain.decision import Operation
from duckflow.domain.model import ChatMessage, ModelRequest, ModelTraits, NativeTool
from duckflow.domain.state import AgentState, Items
from duckflow.llm.native_calls import native_name
from duckflow.prompts.conversation import conversation, estimate_tokens
from duckflow.prompts.templates import fill, template

_LABELS = {
    "goal": "Goal",
    "why_now": "Why now",
    "constraints": "Constraints",
    "plan_brief": "Plan",
    "open_questions": "Open questions",
    "last_delta": "Last change",
}
_ANSWER_SHARE = 4
"""The part of the window kept for the answer: one in so many."""


def decision_request(
    state: AgentState, traits: ModelTraits, operations: Sequence[Operation], rules: str
) -> ModelRequest:
    """What a model with room and sense is asked."""
    system = system_text(operations, rules)
    volatile = main_text(state)
    budget = traits.window - traits.window // _ANSWER_SHARE - estimate_tokens(system + volatile)
    messages = [ChatMessage(role="system", text=system, stable=True)]
    messages += with_ending(conversation(state.transcript, budget), volatile)
    return ModelRequest(
        output="Decision",
        messages=tuple(messages),
        tools=native_tools(operations) if traits.native_tools else (),
        max_tokens=min(traits.window // _ANSWER_SHARE, 8192),
    )


def system_text(operations: Sequence[Operation], rules: str) -> str:
    """The beginning that never changes within a session."""
    listed = "\n".join(f"- {operation.line}" for operation in operations)
    parts = [template("base"), template("decision"), f"Operations\n{listed}\n"]
    if rules:
        parts.append(f"Rules of this project\n{rules}\n")
    return "\n".join(parts)


def main_text(state: AgentState) -> str:
    """The short part that changes with every call."""
    return fill("main", step=state.step, status=state.status, items=items_text(state.items))


def items_text(items: Items) -> str:
    """The five items that are set, a line each."""
    lines: list[str] = []
    for name, label in _LABELS.items():
        value = getattr(items, name)
        if value:
            lines.append(f"{label}: {value if isinstance(value, str) else '; '.join(value)}\n")
    return "".join(lines)


def with_ending(messages: list[ChatMessage], ending: str) -> list[ChatMessage]:
    """The messages with a last word from our side; what stands before it is what the next prompt repeats."""
    if messages and messages[-1].role == "user":
        last = messages.pop()
        return [*messages, ChatMessage(role="user", text=f"{last.text}\n\n{ending}", stable=True)]
    return [*messages, ChatMessage(role="user", text=ending, stable=True)]


def native_tools(operations: Sequence[Operation]) -> tuple[NativeTool, ...]:
    """The same operations as tool calls of the provider's own kind."""
    return tuple(
        NativeTool(
            name=native_name(operation.name),
            description=operation.line,
            parameters=dict(operation.parameters),
        )
        for operation in operations
    )
