"""The project's rules files. The model sees them, but they are trusted no more than other files (L3)."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from duckflow.config.toml_file import read_text
from duckflow.domain.errors import ToolError, UserError
from duckflow.domain.events import ErrorReported
from duckflow.domain.frozen import Frozen
from duckflow.domain.model import ModelClient
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.state import RulesUse
from duckflow.llm.tokens import TokenCounter
from duckflow.safety.files.workspace import Workspace

OTHERS = "CLAUDE.md"
"""Rules file of another agent, read in folders that have no other rules file."""
_MOST = 10_000_000
_MOST_MENTIONED = 20
_MENTION = lazy_regex(r"(?<![\w`@])@([\w./-]*\w)")
_CODE = lazy_regex(
    r"(?ms)^[ >\t]*(?P<fence>```+|~~~+).*?(^[ >\t]*(?P=fence)[`~]*[ \t]*$|\Z)"
    r"|(?P<ticks>`+)[^\n]*?(?<!`)(?P=ticks)(?!`)"
)
"""Code blocks and code in a line, where an @ mentions no file."""

_WINDOW_SHARE = 4
"""Divisor of the model's context window; the rules may take up the result."""


class RulesTooLong(UserError):
    """The project's rules are too long. Only the user may decide to cut or omit them."""


class Rules(Frozen):
    """Rules that could be read, and notices about files that could not."""

    text: str = ""
    short: str = ""
    """The rules with each file cut to its limit."""
    files: tuple[str, ...] = ()
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


class RulesFiles:
    """Rules files of the user, of the repository down to the workspace, and of the folders in use.

    The nearest come last. Files that they mention as `@file` follow them. Blocking.
    """

    def __init__(
        self,
        workspace: Workspace,
        names: Sequence[str],
        max_bytes: int,
        others: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        """`others` are files outside the project, by the name under which the model reads them."""
        self._workspace = workspace
        self._names = names
        self._limit = max_bytes
        self._found: dict[str, str] = {}
        self._problems: list[ErrorReported] = []
        self._folders = {"."}
        for name, path in others.items():
            if said := self._read(path.name, lambda path=path: read_text(path) or ""):
                self._found[name] = said
        for folder in _above(workspace.root):
            with closing(Workspace(folder, denied=map(Path, workspace.denied))) as outer:
                self._look(outer, ".", f"{os.path.relpath(folder, workspace.root)}/")
        self._look(workspace, ".", "")
        self.now = self._listed()

    def follow(self, paths: Iterable[str]) -> None:
        """Read the rules of all folders on the way to these files, unless they are read already."""
        folders = {str(folder) for path in paths for folder in PurePosixPath(path).parents} - self._folders
        for folder in sorted(folders):
            self._folders.add(folder)
            if not folder.startswith(("/", "..")):
                self._look(self._workspace, folder, "")
        if folders:
            self.now = self._listed()

    def _look(self, workspace: Workspace, folder: str, above: str) -> None:
        """Read the rules files of one folder, and the files that they mention."""
        names = [name for name in self._names if folder == "." or "/" not in name]
        for name in (*names, OTHERS):
            waiting = [os.path.normpath(f"{folder}/{name}")]
            if name == OTHERS and any(
                f"{above}{os.path.normpath(f'{folder}/{one}')}" in self._found for one in names
            ):
                return
            for path in waiting:  # grows while it is read
                said = self._read(above + path, lambda path=path: workspace.read_rules(path, cap=_MOST))
                if not said or above + path in self._found or len(waiting) > _MOST_MENTIONED:
                    continue
                self._found[above + path] = said
                near = PurePosixPath(path).parent
                mentioned = (
                    os.path.normpath(near / found[1]) for found in _MENTION.finditer(_CODE.sub(" ", said))
                )
                waiting += [one for one in mentioned if not one.startswith("..")]

    def _read(self, name: str, read: Callable[[], str]) -> str:
        try:
            return read().strip()
        except (ToolError, UserError) as error:
            if not isinstance(error.__cause__, FileNotFoundError | NotADirectoryError | IsADirectoryError):
                values = {"name": name, "reason": str(error)}
                self._problems.append(ErrorReported(key="rules.unreadable", values={**values}))
            return ""

    def _listed(self) -> Rules:
        short = {
            name: said.encode()[: self._limit].decode("utf-8", "ignore") for name, said in self._found.items()
        }
        return Rules(
            text=_joined(self._found),
            short=_joined(short),
            files=tuple(self._found),
            too_long=tuple(name for name, said in self._found.items() if short[name] != said),
            limit=self._limit,
            problems=tuple(self._problems),
        )


def _above(root: Path) -> list[Path]:
    """Return the folders above the workspace that belong to its repository, the outermost first."""
    folders = [root, *root.parents]
    top = next((at for at, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    return folders[top:0:-1]


def _joined(files: Mapping[str, str]) -> str:
    return "\n\n".join(f"[{name}]\n{said}" for name, said in files.items() if said)
