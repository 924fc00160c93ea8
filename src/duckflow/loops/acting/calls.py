"""A call: an action with its tool and arguments, and what the user may make of it before it runs."""

import json
import re
from typing import Literal, NamedTuple

from duckflow.domain.decision import Action
from duckflow.domain.frozen import Frozen
from duckflow.tools.catalogue import Tool
from duckflow.tools.memory import REMEMBER

HANDS_OVER = "task_loop.run"
"""It changes nothing by itself, but a decision that doubts itself may not start it unasked (SPEC A5)."""


_SCRIPT = re.compile(r"#!\s*/")


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


def hands_over(call: ResolvedCall) -> bool:
    """Whether it sets something going in the background."""
    return call.tool.operation == HANDS_OVER


def handed_over(call: ResolvedCall) -> str:
    """The tasks themselves, where nothing differs but they would be started."""
    return json.dumps(call.action.args, ensure_ascii=False, indent=2) if hands_over(call) else ""


def remembers(call: ResolvedCall) -> Literal["", "here", "everywhere"]:
    """Where it would have something known in later sessions."""
    if call.tool.operation != REMEMBER:
        return ""
    return "everywhere" if getattr(call.args, "everywhere", False) else "here"


def editable(call: ResolvedCall) -> bool:
    """Whether the user may change what will be written or run."""
    return call.tool.proposal is not None or command_of(call) is not None


async def proposal(call: ResolvedCall) -> str:
    """What will be written or run, for the user to change."""
    if call.tool.proposal is not None:
        return await call.tool.proposal(call.args)
    return command_of(call) or ""


async def is_script(call: ResolvedCall) -> bool:
    """Whether what will be written says at its beginning which program runs it."""
    if call.tool.proposal is None:
        return False
    return _SCRIPT.match(await call.tool.proposal(call.args)) is not None


def edited_action(call: ResolvedCall, text: str) -> Action:
    """The action with what the user made of it."""
    args = call.action.args
    if command_of(call) is not None:
        return call.action.model_copy(update={"args": {**args, "command": text}})
    return Action(
        operation="file_ops.write_file",
        args={"path": args["path"], "content": text},
        reasoning=call.action.reasoning,
    )
