"""Plugins: Python packages that add operations, providers and checks (L7, docs/plugins.md).

A package's entry point in the group `duckflow.plugins` is a `Plugin` or a function that returns one.
"""

import json
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from duckflow.domain.errors import ProviderError, ToolError
from duckflow.domain.events import ErrorReported
from duckflow.domain.extensions import PluginFacts
from duckflow.domain.frozen import Frozen
from duckflow.domain.model import (
    ModelClient,
    ModelPiece,
    ModelRequest,
    ModelTraits,
    StreamEnd,
    TextPiece,
    Usage,
)
from duckflow.evaluation.diagnostics import Checker
from duckflow.llm.endpoints import KNOWN_NAMES
from duckflow.llm.providers import OpenModel
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import Workspace
from duckflow.tools.catalogue import Proposal, Tool, ToolResult, propose_nothing

__all__ = [
    "Access",
    "Checker",
    "Field",
    "Frozen",
    "ModelClient",
    "ModelPiece",
    "ModelRequest",
    "ModelTraits",
    "Plugin",
    "Proposal",
    "ProviderError",
    "StreamEnd",
    "TextPiece",
    "Tool",
    "ToolError",
    "ToolResult",
    "Usage",
    "Workspace",
]

GROUP = "duckflow.plugins"
_GROUP_BYTES = GROUP.encode()


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """Contributions of a package."""

    operations: Sequence[Tool[Any]] = ()
    """Operations, named after the plugin: `words.count`. They need the same permissions as all others."""
    providers: Mapping[str, OpenModel] = field(default_factory=dict[str, OpenModel])
    """Functions that open a model, by the part of a model's name before the colon."""
    checks: Sequence[Checker] = ()
    """Tools that check files after an edit or before a verdict, in the sandbox."""


class Plugins(NamedTuple):
    """All plugins that could be loaded, merged into one, and facts about each."""

    together: Plugin = Plugin()
    facts: tuple[PluginFacts, ...] = ()

    @property
    def problems(self) -> tuple[ErrorReported, ...]:
        """One error for each plugin that could not be loaded."""
        failed = (one for one in self.facts if one.error)
        return tuple(
            ErrorReported(key="plugins.failed", values={"name": one.name, "reason": one.error})
            for one in failed
        )


def load_plugins(workspace: Path, disabled: Collection[str] = ()) -> Plugins:
    """Load the installed plugins, except from the workspace, which the user has not trusted (SAFETY 6)."""
    folders = [
        folder for folder in sys.path if folder and not Path(folder).resolve().is_relative_to(workspace)
    ]
    if not any(_brings_plugins(folder) for folder in folders):
        return Plugins()
    loaded: list[Plugin] = []
    facts: list[PluginFacts] = []
    for name, version, load in _entry_points(folders):
        if name in disabled or any(one.name == name for one in facts):
            continue
        try:
            plugin = _checked(name, load())
        except (Exception, SystemExit) as exc:  # noqa: BLE001 - a broken plugin must not stop the program
            facts.append(PluginFacts(name=name, version=version, error=f"{type(exc).__name__}: {exc}"))
            continue
        loaded.append(plugin)
        facts.append(PluginFacts(name=name, version=version, brings=tuple(_brought(plugin))))
    together = Plugin(
        operations=[tool for plugin in loaded for tool in plugin.operations],
        providers={name: opens for plugin in loaded for name, opens in plugin.providers.items()},
        checks=[checker for plugin in loaded for checker in plugin.checks],
    )
    return Plugins(together, tuple(facts))


def _brings_plugins(folder: str) -> bool:
    """Search the entry point files for our group, because reading package metadata is slower."""
    try:
        names = [entry.path for entry in os.scandir(folder) if entry.name.endswith(".dist-info")]
    except OSError:
        return False
    return any(_names_group(f"{name}/entry_points.txt") for name in names)


def _names_group(file: str) -> bool:
    try:
        with open(file, "rb") as read:  # noqa: PTH123 - for every package, at every start: a Path costs more
            return _GROUP_BYTES in read.read()
    except OSError:
        return False


def _entry_points(folders: list[str]) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    from importlib.metadata import distributions  # noqa: PLC0415 - only if there is a plugin

    for distribution in distributions(path=folders):
        for point in distribution.entry_points:
            if point.group == GROUP:
                yield point.name, distribution.version, point.load


def _checked(name: str, found: object) -> Plugin:
    plugin = found() if callable(found) else found
    if not isinstance(plugin, Plugin):
        raise TypeError("it is no Plugin")
    for tool in plugin.operations:
        if not tool.operation.startswith(f"{name}."):
            raise ValueError(f"the operation {tool.operation} does not begin with {name}.")
        if tool.effect == "execute":
            raise ValueError(f"{tool.operation} has the effect execute, which is for the sandbox alone")
    for provider in plugin.providers:
        if provider in KNOWN_NAMES:
            raise ValueError(f"the provider {provider} is there already")
    return replace(plugin, operations=[_shown(tool) for tool in plugin.operations])


def _shown(tool: Tool[Any]) -> Tool[Any]:
    if tool.effect == "read" or tool.propose is not propose_nothing:
        return tool

    async def propose(args: Frozen, _workspace: Workspace) -> Proposal:
        return Proposal(json.dumps(args.model_dump(mode="json"), ensure_ascii=False, indent=2))

    return replace(tool, propose=propose, by_program=False)


def _brought(plugin: Plugin) -> Iterator[str]:
    yield from (tool.operation for tool in plugin.operations)
    yield from (f"{name}:" for name in plugin.providers)
    yield from (checker.name for checker in plugin.checks)
