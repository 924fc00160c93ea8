"""The project's rules files. The model sees them, but they are trusted no more than other files (L3)."""

from collections.abc import Sequence

from duckflow.domain.errors import ToolError, UserError
from duckflow.domain.events import ErrorReported
from duckflow.domain.frozen import Frozen
from duckflow.domain.model import ModelClient
from duckflow.domain.state import RulesUse
from duckflow.llm.tokens import TokenCounter
from duckflow.safety.files.workspace import Workspace

_MOST = 10_000_000

_WINDOW_SHARE = 4
"""The rules may take up one part in this many of the model's context window."""


class RulesTooLong(UserError):
    """The project's rules are too long. Only the user may decide to cut or omit them."""


class Rules(Frozen):
    """Rules that could be read, and notices about files that could not."""

    text: str = ""
    short: str = ""
    """The rules with each file cut to its limit."""
    too_long: tuple[str, ...] = ()
    limit: int = 0
    problems: tuple[ErrorReported, ...] = ()

    async def fit(self, client: ModelClient, use: RulesUse) -> str:
        """Return the rules for a model. Raise RulesTooLong if they are too long and the user must decide."""
        if use == "none":
            return ""
        counter, window = TokenCounter(client), client.traits.window
        if use == "cut":
            rules = self.short
            while (tokens := await counter.count(rules)) > window // _WINDOW_SHARE:
                rules = rules[: int(len(rules) * window / _WINDOW_SHARE / tokens * 0.95)]
            return rules
        if self.too_long:
            raise RulesTooLong("rules.file_too_long", files=", ".join(self.too_long), limit=self.limit)
        tokens = await counter.count(self.text)
        if tokens > window // _WINDOW_SHARE:
            raise RulesTooLong("prompt.rules_too_long", tokens=tokens, window=window)
        return self.text


def read_rules(workspace: Workspace, names: Sequence[str], max_bytes: int) -> Rules:
    """Read the rules files that exist, each under its name."""
    found: dict[str, str] = {}
    problems: list[ErrorReported] = []
    for name in names:
        try:
            found[name] = workspace.read_rules(name, cap=_MOST).strip()
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
