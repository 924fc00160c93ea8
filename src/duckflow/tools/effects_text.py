"""File changes of commands, described to the model and to the user. Caches are left out.

The model reads how many git-ignored files changed; the user reads their names.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from duckflow.domain.files.caches import is_cache
from duckflow.domain.files.effects import BulkEffect, Effect, Effects
from duckflow.domain.lines import TextLine, line
from duckflow.domain.text import some_of
from duckflow.safety.paths import printable

EffectsFate = Literal["applied", "waiting", "discarded"]

_FATES: dict[EffectsFate, str] = {
    "applied": "It changed",
    "waiting": "Not yet real, the user is asked",
    "discarded": "Thrown away, the workspace is as it was",
}
_USER_NAMED = 6
_IGNORED_NAMED = 3
_KINDS = (("created", "new"), ("changed", "changed"), ("deleted", "deleted"), ("mode", "mode"))


def told_paths(effects: Effects) -> Iterator[str]:
    """Yield the paths of changed files, except files in .git and files that git ignores."""
    for effect in effects.effects:
        if effect.type != "folder" and not effect.ignored and not _of_git(effect):
            yield from filter(None, (effect.moved_from, effect.path))


def effects_line(fate: EffectsFate, effects: Effects, skip: Iterable[str] = ()) -> str:
    """Return a line about a command's file changes; empty if there is nothing to mention."""
    skipped = {".", *skip}
    shown = [one for one in effects.effects if one.path not in skipped]
    parts = [*_parts([one for one in shown if not one.ignored]), *_bulk_parts(effects.bulk)]
    if ignored := _ignored([one for one in shown if one.ignored], effects.bulk):
        parts.append(f"and {ignored}" if parts else ignored)
    return f"{_FATES[fate]}: {'; '.join(parts)}." if parts else ""


def as_kept(said: str) -> str:
    """Return a command's result as it is true once the user has kept its changes."""
    return said.replace(f"({_FATES['waiting']}: ", "(The user has kept this: ")


def effects_told(effects: Effects, skip: Iterable[str] = ()) -> tuple[TextLine, ...]:
    """Return the changes for the user: a line each for new, changed, moved and deleted files."""
    skipped = {".", *skip}
    found: dict[str, list[str]] = {"created": [], "changed": [], "moved": [], "deleted": []}
    shown = [one for one in effects.effects if one.path not in skipped and not is_cache(one.path)]
    files = [one for one in shown if not _of_git(one)]
    for one in files:
        named = f"{one.moved_from} → {one.path}" if one.kind == "moved" else one.path
        inside = one.type == "folder" and any(other.path.startswith(f"{one.path}/") for other in files)
        if not inside and not (one.type == "folder" and one.kind == "mode"):
            kind = "changed" if one.kind == "mode" else one.kind
            found[kind].append(f"{named}/" if one.type == "folder" else named)
    for bulk in effects.bulk:
        if not is_cache(bulk.path) and bulk.path not in skipped:
            kind = "deleted" if bulk.deleted == bulk.files else "changed"
            found[kind].append(f"{bulk.path}/ ({bulk.files})")
    return tuple(line(f"action.{kind}", paths=_some(paths)) for kind, paths in found.items() if paths)


def _some(paths: Sequence[str]) -> str:
    more = f" … +{len(paths) - _USER_NAMED}" if len(paths) > _USER_NAMED else ""
    return ", ".join(map(printable, paths[:_USER_NAMED])) + more


def dropped_line(effects: Effects) -> str:
    """Return a line about file changes that are never applied to the workspace; empty without any."""
    if not effects.dropped:
        return ""
    return "Never taken over: " + some_of(f"{printable(one.path)} ({one.reason})" for one in effects.dropped)


def _parts(shown: Sequence[Effect]) -> Iterator[str]:
    own = [one for one in shown if _of_git(one)]
    files = [one for one in shown if one.type != "folder" and one not in own]
    folders = [
        f"{printable(one.path)}/ ({one.kind})" for one in shown if one.type == "folder" and one not in own
    ]
    for kind, word in _KINDS:
        if paths := [printable(one.path) for one in files if one.kind == kind]:
            yield f"{word} {some_of(paths)}"
    if moved := [
        f"{printable(one.moved_from)} to {printable(one.path)}" for one in files if one.kind == "moved"
    ]:
        yield f"moved {some_of(moved)}"
    if folders and not files:
        yield f"folders {some_of(folders)}"
    if own:
        yield f"{len(own)} files of git"


def _bulk_parts(bulk: Iterable[BulkEffect]) -> Iterator[str]:
    yield from (f"{printable(one.path)}/ ({_files(one.files)})" for one in bulk if not one.ignored)


def _ignored(single: Sequence[Effect], bulk: Iterable[BulkEffect]) -> str:
    """Return the number of changed ignored files with a few names, empty if all are caches."""
    files = [one.path for one in single if one.type != "folder"]
    folders = [one for one in bulk if one.ignored]
    count = len(files) + sum(one.files for one in folders)
    telling = [
        path for path in (*files, *(f"{one.path}/" for one in folders)) if not is_cache(path.rstrip("/"))
    ]
    named = ", ".join(map(printable, telling[:_IGNORED_NAMED])) + (
        ", …" if len(telling) > _IGNORED_NAMED else ""
    )
    return f"{_files(count, 'ignored ')} ({named})" if named else ""


def _files(count: int, kind: str = "") -> str:
    return f"{count} {kind}file{'s' * (count != 1)}"


def _of_git(effect: Effect) -> bool:
    return ".git" in effect.path.split("/")
