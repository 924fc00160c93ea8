"""Risk of applying a command's effects, by the same rules as for changes by a file tool (G2, G9)."""

import posixpath
from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import NamedTuple

from duckflow.config.settings import GateSettings
from duckflow.domain.files.effects import Effect, Effects
from duckflow.domain.frozen import replace
from duckflow.safety.paths import fold
from duckflow.safety.policy.git_internals import ReadFile, git_reason, led_to_by_git
from duckflow.safety.policy.homoglyphs import is_lookalike
from duckflow.safety.policy.protected import folded, is_environment_program, protection_of
from duckflow.safety.policy.risk import EXECUTABLE, Assessment, content_reasons, rate

TIMES_LARGE = 50
"""A command may write this many times more than a file tool, because lock files and test data are long."""

SOURCE_SUFFIXES = (
    *(".py", ".pyw", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua", ".r", ".jl", ".md"),
)
"""Suffixes of scripts started through their interpreter: a #! line matters only if they are executable."""

_COMPILED = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"PK\x03\x04")
_SET_ID, _EXECUTE, _WORLD_WRITE = 0o6000, 0o111, 0o002
_RUN_BY_TOOLS = {(".yarn", "releases"), (".yarn", "plugins"), (".gradle", "init.d")}
"""Folders inside build folders whose files a tool runs, while it only builds the others."""


class FileVersions(NamedTuple):
    """Two functions that read any file of the workspace: its content before and after the command."""

    before: ReadFile
    after: ReadFile


def assess_effects(
    effects: Effects, contents: FileVersions, limits: GateSettings, made: Collection[str] = ()
) -> Assessment:
    """Return the risk of applying effects. Deleting a path in `made` loses no data of the user."""
    rules = _EffectRules(contents, effects, frozenset(made))
    found = ["write" if effects.effects or effects.bulk else "looks"]
    by_path: dict[str, tuple[str, ...]] = {}
    size, large = 0, limits.large_bytes * TIMES_LARGE
    for effect in effects.effects:
        size += effect.size
        reasons = list(rules.reasons(effect, scan=size <= large))
        by_path[effect.path] = rate(reasons).reasons
        found += reasons
    others = [(one.path, "dropped") for one in effects.dropped]
    for path, reason in (*others, *((path, "conflict") for path in effects.conflicts)):
        by_path[path] = (*by_path.get(path, ()), reason)
        found.append(reason)
    if size > large:
        found.append("large")
    if rules.lost_files(effects) > limits.many_files:
        found.append("mass_deletion")
    return replace(rate(found), by_path={path: reasons for path, reasons in by_path.items() if reasons})


def told_apart(path: str) -> bool:
    """Return whether to list a path separately although its folder (.venv, node_modules) is one entry."""
    names = folded(path)
    tools = any(pair in _RUN_BY_TOOLS for pair in pairwise(names))
    return ".git" in names or names[-1:] == ("pyvenv.cfg",) or tools or is_environment_program(path)


class _EffectRules:
    def __init__(self, contents: FileVersions, effects: Effects, made: frozenset[str]) -> None:
        self._contents = contents
        self._made = made
        self._led_to = led_to_by_git(contents.before) if effects.effects else ()

    def reasons(self, effect: Effect, *, scan: bool) -> Iterator[str]:
        git = git_reason(effect, self._contents.before, self._contents.after)
        if git is not None:
            yield "write" if git == "ordinary" else git
            return
        yield "delete" if effect.kind == "deleted" and effect.path not in self._made else "write"
        for path in filter(None, (effect.path, effect.moved_from)):
            yield from self._by_place(path)
        yield from self._by_mode(effect)
        if effect.type == "link" and effect.kind != "deleted":
            yield from self._by_target(effect)
        if effect.kind != "deleted" and is_lookalike(effect.path):
            yield "lookalike"
        if scan and effect.type == "file" and effect.kind in ("created", "changed", "moved"):
            yield from self._by_content(effect)

    def lost_files(self, effects: Effects) -> int:
        return sum(
            one.type == "file"
            and one.path not in self._made
            and (one.kind == "deleted" or (one.kind == "changed" and one.size == 0))
            and ".git" not in one.path.split("/")
            for one in effects.effects
        )

    def _by_place(self, path: str) -> Iterator[str]:
        protection = protection_of(path)
        if protection == "denied":
            yield "own"
        elif protection != "none":
            yield "protected"
        if any(path == place or path.startswith(f"{place}/") for place in self._led_to):
            yield "git_program"

    def _by_mode(self, effect: Effect) -> Iterator[str]:
        before, after = effect.mode_before or 0, effect.mode_after or 0
        if effect.type != "link" and (after & _SET_ID & ~before or after & _WORLD_WRITE & ~before):
            yield "rights"
        if effect.type != "file":
            return
        if effect.kind == "deleted" and effect.path in self._made:
            return
        if effect.kind == "moved" and effect.before == effect.after and not after & _EXECUTE & ~before:
            return  # was executable before, under another name
        if effect.kind == "mode":
            runs = after & _EXECUTE and not before & _EXECUTE
        else:
            runs = (after if effect.kind != "deleted" else before) & _EXECUTE
            runs = runs or EXECUTABLE.fullmatch(fold(effect.path))
        if runs:
            yield "built" if self._is_compiled(effect) else "executable"

    def _is_compiled(self, effect: Effect) -> bool:
        """Return whether the file is compiler output that is new or replaces older compiler output."""
        new = self._contents.after(effect.path) if effect.kind in ("created", "changed") else None
        old = self._contents.before(effect.path) if effect.kind == "changed" else None
        return (new or b"").startswith(_COMPILED) and (old is None or old.startswith(_COMPILED))

    def _by_target(self, effect: Effect) -> Iterator[str]:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(effect.path), effect.link_target))
        if target.startswith(("/", "../")) or target == "..":
            yield "outside"
        elif protection_of(target) != "none":
            yield "protected"

    def _by_content(self, effect: Effect) -> Iterator[str]:
        new = self._contents.after(effect.path)
        if not new or b"\0" in new[:8000]:
            return
        old = self._contents.before(effect.moved_from or effect.path) if effect.before else None
        known = set((old or b"").split(b"\n"))
        added = b"\n".join(line for line in new.split(b"\n") if line not in known).decode("utf-8", "replace")
        runs = bool((effect.mode_after or 0) & _EXECUTE)
        first_line = new.startswith(b"#!") and not (old or b"").startswith(b"#!")
        if first_line and (runs or not effect.path.lower().endswith(SOURCE_SUFFIXES)):
            yield "shebang"
        yield from content_reasons(added)
