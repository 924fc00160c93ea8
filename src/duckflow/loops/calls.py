"""A resolved call: an action with its tool and arguments, and what the user may make of it before it runs."""

import json
from typing import Literal, NamedTuple

from duckflow.domain.decision import Action
from duckflow.domain.frozen import Frozen, replace
from duckflow.tools.catalogue import Tool
from duckflow.tools.memory import REMEMBER

HANDS_OVER = "task_loop.run"
"""It changes nothing by itself, but a decision that doubts itself may not start it unasked (A5)."""


class ResolvedCall(NamedTuple):
    """An action, its tool, and its arguments as the tool takes them."""

    action: Action
    tool: Tool
    args: Frozen

    @property
    def command(self) -> str | None:
        """The command it would run, if it is one."""
        command = getattr(self.args, "command", None)
        return command if self.tool.effect == "execute" and isinstance(command, str) else None

    @property
    def network(self) -> bool:
        """Whether it asks for the network."""
        return bool(getattr(self.args, "network", False))

    @property
    def secrets(self) -> tuple[str, ...]:
        """The files with secrets that a command asks to see."""
        return tuple(getattr(self.args, "secrets", ()))

    @property
    def handed_over(self) -> str:
        """The tasks that it would set going in the background; nothing else of it would differ."""
        hands_over = self.tool.operation == HANDS_OVER
        return json.dumps(self.action.args, ensure_ascii=False, indent=2) if hands_over else ""

    @property
    def remembers(self) -> Literal["", "here", "everywhere"]:
        """Where it would have something known in later sessions."""
        if self.tool.operation != REMEMBER:
            return ""
        return "everywhere" if getattr(self.args, "everywhere", False) else "here"

    def edited(self, text: str) -> Action:
        """The action with what the user made of what it would write or run."""
        args = self.action.args
        if self.command is not None:
            return replace(self.action, args={**args, "command": text})
        written = {"path": args["path"], "content": text}
        return replace(self.action, operation="file_ops.write_file", args=written)
