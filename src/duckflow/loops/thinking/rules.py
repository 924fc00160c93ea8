"""The project's rules: text for the model, always read, no more trusted than any other file (SPEC L3)."""

from collections.abc import Sequence

from duckflow.domain.errors import ToolError
from duckflow.domain.events import ErrorReported
from duckflow.domain.frozen import Frozen
from duckflow.safety.files.workspace import Workspace


class Rules(Frozen):
    """The rules that could be read, and what is wrong with those that could not."""

    text: str = ""
    problems: tuple[ErrorReported, ...] = ()


def read_rules(workspace: Workspace, names: Sequence[str], max_bytes: int) -> Rules:
    """The rules files that are there, one after the other, each under its name."""
    parts: list[str] = []
    problems: list[ErrorReported] = []
    for name in names:
        try:
            text = workspace.read_text(name, cap=max_bytes).strip()
        except ToolError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                values = {"name": name, "reason": str(error)}
                problems.append(ErrorReported(key="rules.unreadable", values={**values}))
            continue
        if text:
            parts.append(f"[{name}]\n{text}")
    return Rules(text="\n\n".join(parts), problems=tuple(problems))
