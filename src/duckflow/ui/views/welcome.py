"""The first lines of a session: what was found, what will be asked about, and one line to try."""

from typing import NamedTuple

from duckflow.domain.state import AgentState
from duckflow.i18n.catalogue import text


class FolderFacts(NamedTuple):
    """What was found in the folder at the start."""

    first_time: bool = False
    """Whether nobody has worked here with Duckflow before."""
    rules: tuple[str, ...] = ()
    tests: str = ""
    sandbox: str | None = None
    example: str = ""
    """A file worth asking about."""


def start_text(state: AgentState, found: FolderFacts) -> str:
    """A few lines for someone new to this folder; one for those who know it."""
    if not found.first_time:
        return text("chat.hint")
    lines = [
        text("start.rules", files=", ".join(found.rules)) if found.rules else text("start.no_rules"),
        text("start.tests", command=found.tests) if found.tests else text("start.no_tests"),
    ]
    if found.sandbox is not None:
        none = found.sandbox == "none"
        lines.append(text("start.no_sandbox") if none else text("start.sandbox", name=found.sandbox))
    lines.append(text(f"start.asks.{state.mode}"))
    lines.append(text("start.try_file", file=found.example) if found.example else text("start.try"))
    return "\n".join(["", *(f"  {line}" for line in lines), "", text("chat.hint")])
