"""How effects are told: build and ignored folders as a whole, a file that was moved as one effect."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from duckflow.domain.files.effects import BulkEffect, DroppedEffect, Effect, Effects
from duckflow.domain.frozen import replace
from duckflow.safety.policy.effects import told_apart
from duckflow.safety.policy.protected import protection_of

BUILD_FOLDERS = frozenset(
    (
        *("node_modules", "bower_components", ".pnpm-store", ".yarn", ".venv", "venv", ".tox", ".nox"),
        *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints"),
        *("target", "dist", "build", "out", ".gradle", ".next", ".nuxt", ".svelte-kit", ".turbo", ".cache"),
        *("coverage", "htmlcov", ".nyc_output", ".eggs", "_build", "deps", ".dart_tool", "DerivedData"),
        ".parcel-cache",
    )
)
"""Folders that tools make for themselves; `*.egg-info` too."""

UNDOABLE_FILES = 2_000
UNDOABLE_BYTES = 32_000_000
"""A build folder with more than this is taken over without being kept for undo."""

IsIgnored = Callable[[list[str]], frozenset[str]]
"""Which of these folders, relative to the workspace, the project says to ignore."""


class FoundEffects(NamedTuple):
    """What was found: the effects as told, and for each build folder all that they stand for."""

    effects: Effects
    bulk: dict[str, tuple[Effect, ...]]

    def joined(self, more: "FoundEffects") -> "FoundEffects":
        """With what was found in another layer; nothing in there is told as a whole."""
        here, there = self.effects, more.effects
        effects = Effects(
            effects=here.effects + there.effects,
            bulk=here.bulk,
            dropped=here.dropped + there.dropped,
            conflicts=here.conflicts + there.conflicts,
            touched=here.touched + there.touched,
        )
        return FoundEffects(effects, self.bulk)


def told(
    found: Sequence[Effect],
    is_ignored: IsIgnored,
    *,
    dropped: Iterable[DroppedEffect],
    conflicts: Iterable[str],
    touched: Iterable[str],
) -> FoundEffects:
    """All that was found, as it is told."""
    ignored = is_ignored(_ignorable(found)) if found else frozenset[str]()
    single: list[Effect] = []
    bulk: dict[str, list[Effect]] = {}
    for effect in found:
        above = _bulk_of(effect, ignored)
        (single if above is None else bulk.setdefault(above, [])).append(effect)
    effects = Effects(
        effects=tuple(_pair_moves(single)),
        bulk=tuple(_tell(path, within) for path, within in bulk.items()),
        dropped=tuple(dropped),
        conflicts=tuple(conflicts),
        touched=tuple(touched),
    )
    return FoundEffects(effects, {path: tuple(within) for path, within in bulk.items()})


def _is_build_folder(name: str) -> bool:
    return name in BUILD_FOLDERS or name.endswith(".egg-info")


def _ignorable(found: Iterable[Effect]) -> list[str]:
    """The folders that something changed in and that are no build folder by their name."""
    folders: set[str] = set()
    for effect in found:
        names = effect.path.split("/")
        above = names if effect.type == "folder" else names[:-1]
        if ".git" in names or any(map(_is_build_folder, above)):
            continue
        folders.update("/".join(above[: end + 1]) for end in range(len(above)))
    return sorted(folders)


def _bulk_of(effect: Effect, ignored: frozenset[str]) -> str | None:
    """The build or ignored folder that tells of it; None if it is told by itself, as protected names are."""
    names = effect.path.split("/")
    last = len(names) if effect.type == "folder" else len(names) - 1
    for end in range(last):
        folder = "/".join(names[: end + 1])
        built = _is_build_folder(names[end])
        if built or folder in ignored:
            apart = told_apart(effect.path) or (not built and protection_of(effect.path) != "none")
            return None if apart else folder
    return None


def _tell(path: str, within: list[Effect]) -> BulkEffect:
    files = [effect for effect in within if effect.type != "folder"]
    size = sum(effect.size for effect in files)
    return BulkEffect(
        path=path,
        files=len(files),
        size=size,
        deleted=sum(effect.kind == "deleted" for effect in files),
        undoable=len(files) <= UNDOABLE_FILES and size <= UNDOABLE_BYTES,
    )


def _pair_moves(found: list[Effect]) -> Iterable[Effect]:
    """Tell a file that was removed and one that was made with the same content as one that was moved."""
    gone: dict[str, list[Effect]] = {}
    for effect in found:
        if effect.kind == "deleted" and effect.type == "file" and effect.before:
            gone.setdefault(effect.before, []).append(effect)
    moves: dict[str, Effect] = {}
    taken: set[str] = set()
    for effect in found:
        if effect.kind != "created" or effect.type != "file" or not gone.get(effect.after or ""):
            continue
        sources = gone[effect.after or ""]
        name = os.path.basename(effect.path)
        same_name = [one for one in sources if os.path.basename(one.path) == name]
        if not same_name and not effect.size:
            continue  # all empty files have the same content
        source = (same_name or sources)[0]
        sources.remove(source)
        taken.add(source.path)
        moves[effect.path] = replace(
            effect, kind="moved", moved_from=source.path, before=source.before, mode_before=source.mode_before
        )
    for effect in sorted(found, key=lambda one: (one.path, one.kind != "deleted")):
        if effect.kind == "deleted" and effect.path in taken:
            continue
        yield moves.get(effect.path, effect) if effect.kind == "created" else effect
