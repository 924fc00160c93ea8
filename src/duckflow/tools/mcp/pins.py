"""Pins: what each tool of each server said of itself when it was accepted, so that a change is noticed.

A server that was harmless when it was added may describe its tools otherwise one day, and a description is
read by the model. Kept in the user's state directory, by hash; the text with it is for the difference.
"""

import hashlib
import json

from duckflow.config.mcp import McpServer
from duckflow.config.saved_answers import SavedAnswers
from duckflow.domain.text import cut
from duckflow.tools.mcp.remote import RemoteTool

PINS_FILE = "mcp_pins.json"
_LONGEST = 12_000


class Pins:
    """The accepted descriptions, by server and tool. A server is its name and what it runs or where it is."""

    def __init__(self) -> None:
        self._saved = SavedAnswers(PINS_FILE)

    def changed(self, identity: str, tools: tuple[RemoteTool, ...]) -> dict[str, str]:
        """The tools that are not what they were, each with its old text; those never seen are pinned."""
        known = self._saved.load()
        changed: dict[str, str] = {}
        new: dict[str, str] = {}
        for tool in tools:
            key = f"{identity}.{tool.name}"
            if key not in known:
                new[key] = _pin(tool)
            elif not known[key].startswith(_digest(tool)):
                changed[tool.name] = known[key].partition("\n")[2]
        if new:
            self._saved.save({**known, **new})
        return changed

    def accept(self, identity: str, tool: RemoteTool) -> None:
        """From now on it is what it says now."""
        self._saved.save({**self._saved.load(), f"{identity}.{tool.name}": _pin(tool)})

    def forget(self, server: str) -> None:
        """Nothing of a server is known any more."""
        known = self._saved.load()
        kept = {key: value for key, value in known.items() if not key.startswith(f"{server}#")}
        if kept != known:
            self._saved.save(kept)


def identity_of(name: str, server: McpServer) -> str:
    """What a server is known by: one of the same name that runs something else is another."""
    what = json.dumps([server.command, server.url])
    return f"{name}#{hashlib.sha256(what.encode()).hexdigest()[:12]}"


def _digest(tool: RemoteTool) -> str:
    said = json.dumps([tool.description, tool.parameters], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


def _pin(tool: RemoteTool) -> str:
    return f"{_digest(tool)}\n{cut(tool.text, _LONGEST)}"
