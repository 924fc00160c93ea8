"""Pins: what each tool of each server said of itself when it was accepted, so that a change is noticed.

A server that was harmless when it was added may describe its tools otherwise one day, and a description is
read by the model. Kept in the user's state directory, by hash; the text with it is for the difference.
"""

import hashlib
import json
from collections.abc import Sequence

from duckflow.config.mcp import McpServer
from duckflow.config.saved_answers import SavedAnswers
from duckflow.domain.text import cut
from duckflow.tools.mcp.remote import RemoteTool

PINS_FILE = "mcp_pins.json"
_LONGEST = 12_000


class Pins:
    """The accepted descriptions of one server. One of the same name that runs something else is another."""

    def __init__(self, name: str, server: McpServer) -> None:
        what = json.dumps([server.command, server.url])
        self._prefix = f"{name}#{hashlib.sha256(what.encode()).hexdigest()[:12]}."
        self._saved = SavedAnswers(PINS_FILE)

    def changed(self, tools: Sequence[RemoteTool]) -> dict[str, str]:
        """The tools that are not what they were, each with its old text; those never seen are pinned."""
        known = self._saved.load()
        pins = {**{f"{self._prefix}{tool.name}": _pin(tool) for tool in tools}, **known}
        if len(pins) > len(known):
            self._saved.save(pins)
        pinned = ((tool, pins[f"{self._prefix}{tool.name}"]) for tool in tools)
        return {
            tool.name: pin.partition("\n")[2] for tool, pin in pinned if not pin.startswith(_digest(tool))
        }

    def accept(self, tool: RemoteTool) -> None:
        """From now on it is what it says now."""
        self._saved.save({**self._saved.load(), f"{self._prefix}{tool.name}": _pin(tool)})


def forget_pins(server: str) -> None:
    """Nothing of a server is known any more, whatever it runs."""
    saved = SavedAnswers(PINS_FILE)
    known = saved.load()
    kept = {key: value for key, value in known.items() if not key.startswith(f"{server}#")}
    if kept != known:
        saved.save(kept)


def _digest(tool: RemoteTool) -> str:
    said = json.dumps([tool.description, tool.parameters], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


def _pin(tool: RemoteTool) -> str:
    return f"{_digest(tool)}\n{cut(tool.text, _LONGEST)}"
