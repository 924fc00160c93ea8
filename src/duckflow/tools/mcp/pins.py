"""Pins: descriptions of tools at the time they were accepted, so that changes are noticed.

A server that was harmless when it was added may later describe its tools differently, and the model reads the
descriptions. Pins are stored in the user's state directory, by hash; the text is kept to show the difference.
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
    """Accepted descriptions of one server. The same name with another command is another server."""

    def __init__(self, name: str, server: McpServer) -> None:
        what = json.dumps([server.command, server.url])
        self._prefix = f"{name}#{hashlib.sha256(what.encode()).hexdigest()[:12]}."
        self._saved = SavedAnswers(PINS_FILE)

    def changed(self, tools: Sequence[RemoteTool]) -> dict[str, str]:
        """Return the changed tools, each with its old text. Tools seen for the first time are pinned."""
        known = self._saved.load()
        pins = {**{f"{self._prefix}{tool.name}": _pin(tool) for tool in tools}, **known}
        if len(pins) > len(known):
            self._saved.save(pins)
        pinned = ((tool, pins[f"{self._prefix}{tool.name}"]) for tool in tools)
        return {
            tool.name: pin.partition("\n")[2] for tool, pin in pinned if not pin.startswith(_digest(tool))
        }

    def accept(self, tool: RemoteTool) -> None:
        """Accept the tool's current description."""
        self._saved.save({**self._saved.load(), f"{self._prefix}{tool.name}": _pin(tool)})


def forget_pins(server: str) -> None:
    """Forget all pins of a server, whatever it runs."""
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
