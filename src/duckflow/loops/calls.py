"""A resolved call: an action with its tool and arguments, and what the user may make of it before it runs."""

import json
from typing import Literal, NamedTuple

from duckflow.domain.decision import Action
from duckflow.domain.frozen import Frozen
from duckflow.tools.catalogue import Tool
from duckflow.tools.memory import REMEMBER

HANDS_OVER = "task_loop.run"
"""It changes nothing by itself, but a decision that doubts itself may not start it unasked (SPEC A5)."""


class ResolvedCall(NamedTuple):
    """An action, its tool, and its arguments as the tool takes them."""

    action: Action
    tool: Tool
    args: Frozen


def command_of(call: ResolvedCall) -> str | None:
    """The command it would run, if it is one."""
    command = getattr(call.args, "command", None)
    return command if call.tool.effect == "execute" and isinstance(command, str) else None


def uses_network(call: ResolvedCall) -> bool:
    """Whether it asks for the network."""
    return bool(getattr(call.args, "network", False))


def secrets_of(call: ResolvedCall) -> tuple[str, ...]:
    """The files with secrets that a command asks to see."""
    return tuple(getattr(call.args, "secrets", ()))


def hands_over(call: ResolvedCall) -> bool:
    """Whether it sets something going in the background."""
    return call.tool.operation == HANDS_OVER


def handed_over(call: ResolvedCall) -> str:
    """The tasks themselves, if nothing differs but they would be started."""
    return json.dumps(call.action.args, ensure_ascii=False, indent=2) if hands_over(call) else ""


def remembers(call: ResolvedCall) -> Literal["", "here", "everywhere"]:
    """Where it would have something known in later sessions."""
    if call.tool.operation != REMEMBER:
        return ""
    return "everywhere" if getattr(call.args, "everywhere", False) else "here"


def edited_action(call: ResolvedCall, text: str) -> Action:
    """The action with what the user made of what it would write or run."""
    args = call.action.args
    if command_of(call) is not None:
        return Action(
            operation=call.action.operation,
            args={**args, "command": text},
            reasoning=call.action.reasoning,
        )
    return Action(
        operation="file_ops.write_file",
        args={"path": args["path"], "content": text},
        reasoning=call.action.reasoning,
    )
