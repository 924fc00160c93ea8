"""The project's rules: text for the model, always read, no more trusted than any other file (SPEC L3)."""

from collections.abc import Sequence

from duckflow.domain.errors import ToolError
from duckflow.safety.workspace import Workspace


def read_rules(workspace: Workspace, names: Sequence[str], max_bytes: int) -> str:
    """The rules files that are there, one after the other, each under its name."""
    parts: list[str] = []
    for name in names:
        try:
            text = workspace.read_text(name, cap=max_bytes).strip()
        except ToolError:
            continue
        if text:
            parts.append(f"[{name}]\n{text}")
    return "\n\n".join(parts)
