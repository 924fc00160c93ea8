"""Resolved calls: an action with its tool and its valid arguments."""

from typing import Any, NamedTuple

from duckflow.domain.decision import Action
from duckflow.domain.frozen import Frozen, replace
from duckflow.tools.catalogue import Tool


class ResolvedCall(NamedTuple):
    """An action, its tool, and its validated arguments."""

    action: Action
    tool: Tool[Any]
    args: Frozen

    def edited(self, text: str) -> Action:
        """Return the action with its command, or its file content, replaced by the user's text."""
        args = self.action.args
        if self.tool.effect == "execute":
            return replace(self.action, args={**args, "command": text})
        written = {"path": args["path"], "content": text}
        return replace(self.action, operation="file_ops.write_file", args=written)
