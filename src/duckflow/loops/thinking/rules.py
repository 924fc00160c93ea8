"""The project's rules files, shown to the model and trusted no more than any other file (L3)."""

from collections.abc import Sequence

from duckflow.domain.errors import ToolError
from duckflow.domain.events import ErrorReported
from duckflow.domain.frozen import Frozen
from duckflow.domain.model import ModelClient
from duckflow.domain.state import RulesUse
from duckflow.prompts.budget import RulesTooLong, check_rules, cut_rules
from duckflow.prompts.tokens import TokenCounter
from duckflow.safety.files.workspace import Workspace

_MOST = 10_000_000
"""Most bytes to read of a file."""


class Rules(Frozen):
    """Rules that could be read, and notices about those that could not."""

    text: str = ""
    short: str = ""
    """The rules with each file cut to its limit."""
    too_long: tuple[str, ...] = ()
    limit: int = 0
    problems: tuple[ErrorReported, ...] = ()

    async def fit(self, client: ModelClient, use: RulesUse) -> str:
        """Return the rules for a model. Raise RulesTooLong until the user has decided what to do."""
        counter = TokenCounter(client)
        match use:
            case "none":
                return ""
            case "cut":
                return await cut_rules(self.short, client.traits, counter)
            case "whole":
                if self.too_long:
                    files = ", ".join(self.too_long)
                    raise RulesTooLong("rules.file_too_long", files=files, limit=self.limit)
                await check_rules(self.text, client.traits, counter)
                return self.text


def read_rules(workspace: Workspace, names: Sequence[str], max_bytes: int) -> Rules:
    """Read the rules files that exist, each under its name."""
    found: dict[str, str] = {}
    problems: list[ErrorReported] = []
    for name in names:
        try:
            found[name] = workspace.read_text(name, cap=_MOST).strip()
        except ToolError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                values = {"name": name, "reason": str(error)}
                problems.append(ErrorReported(key="rules.unreadable", values={**values}))
    short = {name: text.encode()[:max_bytes].decode("utf-8", "ignore") for name, text in found.items()}
    return Rules(
        text=_listed(found),
        short=_listed(short),
        too_long=tuple(name for name, text in found.items() if short[name] != text),
        limit=max_bytes,
        problems=tuple(problems),
    )


def _listed(files: dict[str, str]) -> str:
    return "\n\n".join(f"[{name}]\n{text}" for name, text in files.items() if text)
