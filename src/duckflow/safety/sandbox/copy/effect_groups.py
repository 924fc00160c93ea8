"""Grouping of effects: a build or ignored folder is reported as one entry, and a moved file as one effect."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from duckflow.domain.files.caches import CACHES, is_cache
from duckflow.domain.files.effects import BulkEffect, Effect, Effects
from duckflow.domain.frozen import replace
from duckflow.safety.policy.effects import told_apart
from duckflow.safety.policy.git_config import LedTo
from duckflow.safety.policy.git_internals import folders_above
from duckflow.safety.policy.protected import protection_of
from duckflow.safety.sandbox.copy.copy_reader import CopyReader
from duckflow.safety.sandbox.view.git_settings import ignored_by_commit, tracked_files

_BUILD_FOLDERS = CACHES | {
    *(".yarn", "venv", "target", "dist", "build", "out"),
    *("coverage", "htmlcov", "_build", "deps", "DerivedData"),
}
"""Folders that tools create for themselves. `*.egg-info` counts, too."""

_MOST_LOST = 1_000
_UNDOABLE_FILES = 2_000
_UNDOABLE_BYTES = 32_000_000
"""Effects on a build folder above these limits are applied without being kept for undo."""


class CopyReading(NamedTuple):
    """Effects as reported to the user, and all single effects behind the entry of each build folder."""

    effects: Effects
    bulk: Mapping[str, Sequence[Effect]]


def group_effects(
    reader: CopyReader, root: str, commit: str, led_to: Callable[[Collection[str]], LedTo]
) -> CopyReading:
    """Group the effects that were found. Git's rules are those of a commit in the workspace `root`.

    `led_to` returns the files to which git's settings lead from these folders, which are reported one by one.
    """
    found = reader.found
    ignored = ignored_by_commit(root, commit, _ignorable(found))
    folders = frozenset(path.rstrip("/") for path in ignored if path.endswith("/"))
    above = [_bulk_of(effect, folders) for effect in found]
    led = led_to({path for path in above if path is not None})
    above = [None if led.covers(effect.path) else one for one, effect in zip(above, found, strict=True)]
    built = sorted({path for path in above if path is not None and not is_cache(path)})
    tracked = tracked_files(root, built, commit)
    projects = frozenset(above for path in tracked for above in folders_above(path)).intersection(built)
    single: list[Effect] = []
    bulk: dict[str, list[Effect]] = {}
    for effect, folder in zip(found, above, strict=True):
        named = f"{effect.path}/" if effect.type == "folder" else effect.path
        out = effect.path not in tracked if folder in folders else named in ignored
        known = replace(effect, ignored=True) if out or is_cache(effect.path) else effect
        own = folder in projects and not known.ignored  # the project keeps sources under such a name
        (single if folder is None or own else bulk.setdefault(folder, [])).append(known)
    effects = Effects(
        effects=tuple(_pair_moves(single)),
        bulk=tuple(_bulk_effect(path, within, folders) for path, within in bulk.items()),
        dropped=tuple(reader.dropped),
        conflicts=tuple(dict.fromkeys(reader.conflicts)),
        touched=tuple(reader.touched),
    )
    return CopyReading(effects, bulk)


def _ignorable(found: Iterable[Effect]) -> list[str]:
    """Return the paths to ask git about: changed paths and the folders above them, except caches."""
    folders: set[str] = set()
    files: list[str] = []
    for effect in found:
        names = effect.path.split("/")
        if ".git" in names or is_cache(effect.path):
            continue
        above = names if effect.type == "folder" else names[:-1]
        files += [effect.path] if effect.type != "folder" else []
        folders.update("/".join(above[: end + 1]) + "/" for end in range(len(above)))
    return [*sorted(folders), *files]


def _bulk_of(effect: Effect, ignored: frozenset[str]) -> str | None:
    """Return the build or ignored folder that covers an effect. None if the effect is reported separately."""
    names = effect.path.split("/")
    last = len(names) if effect.type == "folder" else len(names) - 1
    for end in range(last):
        folder = "/".join(names[: end + 1])
        built = _is_built(names[end])
        if built or folder in ignored:
            apart = told_apart(effect.path) or (not built and protection_of(effect.path) != "none")
            return None if apart else folder
    return None


def _is_built(name: str) -> bool:
    return name in _BUILD_FOLDERS or name.endswith(".egg-info")


def loses_content(effect: Effect, folder: str) -> bool:
    """Return whether an effect in a build or ignored folder loses content that no tool can recreate."""
    replaced = effect.kind == "changed" and not _is_built(os.path.basename(folder))
    return (effect.kind == "deleted" or replaced) and not is_cache(effect.path)


def _bulk_effect(path: str, within: list[Effect], ignored: frozenset[str]) -> BulkEffect:
    files = sorted((one for one in within if one.type != "folder"), key=lambda one: one.path)
    size = sum(effect.size for effect in files)
    lost = [effect for effect in files if loses_content(effect, path)]
    few = len(files) <= _UNDOABLE_FILES and max(size, _size_before(files)) <= _UNDOABLE_BYTES
    return BulkEffect(
        path=path,
        files=len(files),
        size=size,
        deleted=sum(effect.kind == "deleted" for effect in files),
        lost=tuple(one.path for one in lost if one.kind == "deleted" and not one.ignored)[:_MOST_LOST],
        kept=few or (len(lost) <= _UNDOABLE_FILES and _size_before(lost) <= _UNDOABLE_BYTES),
        undoable=few,
        ignored=path in ignored or is_cache(path),
    )


def _size_before(effects: Iterable[Effect]) -> int:
    return sum(effect.size_before for effect in effects)


def _pair_moves(found: list[Effect]) -> Iterable[Effect]:
    """Replace a removed file and a new file with the same content by one moved file."""
    gone: dict[tuple[str, bool], list[Effect]] = {}
    for effect in found:
        if effect.kind == "deleted" and effect.type == "file" and effect.before:
            gone.setdefault((effect.before, effect.ignored), []).append(effect)
    moves: dict[str, Effect] = {}
    taken: set[str] = set()
    for effect in found:
        sources = gone.get((effect.after or "", effect.ignored))
        if effect.kind != "created" or effect.type != "file" or not sources:
            continue
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
