"""Risk of applying a command's effects, by the same rules as for changes by a file tool (G2, G9)."""

import codecs
import hashlib
import os
import posixpath
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from duckflow.config.settings import GateSettings
from duckflow.domain.files.effects import BulkEffect, Effect, Effects, identity_of
from duckflow.domain.frozen import replace
from duckflow.safety.paths import fold
from duckflow.safety.policy.executables import is_compiled, is_program, readable_text
from duckflow.safety.policy.git_config import GitPlaces, LedTo, ReadFile, UnreadableFile
from duckflow.safety.policy.git_contents import (
    GitContent,
    GitContents,
    ReadObjects,
    is_steering,
    read_no_objects,
)
from duckflow.safety.policy.git_internals import git_reason, led_to_by_git
from duckflow.safety.policy.homoglyphs import is_lookalike
from duckflow.safety.policy.protected import folded, is_environment_program, protection_of
from duckflow.safety.policy.risk import EXECUTABLE, Assessment, completed_reasons, content_reasons, rate

TIMES_LARGE = 50
"""A command may write this many times more than a file tool, because lock files and test data are long."""

SOURCE_SUFFIXES = (
    *(".py", ".pyw", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua", ".r", ".jl", ".md"),
)
"""Suffixes of scripts started through their interpreter: a #! line matters only if they are executable."""

_JOINED = 1_000_000
"""Size in bytes of the largest changed file that is searched as a whole, not only in its new lines."""

_SET_ID, _EXECUTE, _WORLD_WRITE = 0o6000, 0o111, 0o002
_OF_REPOSITORY = frozenset(
    ("head", "config", "config.worktree", "commondir", "index", "packed-refs", "attributes", "alternates")
)
_RUN_BY_TOOLS = {(".yarn", "releases"), (".yarn", "plugins"), (".gradle", "init.d")}
"""Folders inside build folders whose files a tool runs, while it only builds the others."""


MadeFiles = Mapping[str, Collection[str]]
"""Files that a session made, with the contents that it gave them, as `identity_of` returns these."""

_NOTHING_MADE: MadeFiles = MappingProxyType({})


class FileVersions(NamedTuple):
    """Two functions that read any file of the workspace: its content before and after the command."""

    before: ReadFile
    after: ReadFile
    places: GitPlaces = GitPlaces()
    objects: ReadObjects = read_no_objects


def assess_effects(
    effects: Effects, contents: FileVersions, limits: GateSettings, made: MadeFiles = _NOTHING_MADE
) -> Assessment:
    """Return the risk of applying effects. Deleting what is in `made` loses no data of the user."""
    rules = _EffectRules(contents, effects, made)
    found = ["write" if effects.effects or effects.bulk else "looks"]
    by_path: dict[str, tuple[str, ...]] = {}
    size, large = 0, limits.large_bytes * TIMES_LARGE
    for effect in effects.effects:
        size += effect.size
        reasons = list(rules.checked(effect, scan=size <= large))
        by_path[effect.path] = rate(reasons).reasons
        found += reasons
    in_git: dict[str, bytes] = {}
    for path, reasons, content in rules.in_git():
        by_path[path] = (*by_path.get(path, ()), *reasons)
        found += reasons
        in_git[path] = content
    others = [(one.path, "dropped") for one in effects.dropped]
    for path, reason in (*others, *((path, "conflict") for path in effects.conflicts)):
        by_path[path] = (*by_path.get(path, ()), reason)
        found.append(reason)
    found += ["unkept" for _ in effects.unkept]
    found += ["delete" for bulk in effects.bulk if rules.lost_in(bulk)]
    if size > large:
        found.append("large")
    if rules.lost_files(effects) > limits.many_files:
        found.append("mass_deletion")
    known = {path: reasons for path, reasons in by_path.items() if reasons}
    return replace(rate(found), by_path=known, in_git=in_git)


def git_findings(changes: Collection[Effect], contents: FileVersions) -> Iterator[str]:
    """Yield the findings about git on changes by a file tool, by the rules for commands."""
    rules = _EffectRules(contents, Effects(effects=tuple(changes)), _NOTHING_MADE)
    yield from (one for change in changes for one in rules.checked_git(change))
    yield from (reason for _, reasons, _ in rules.in_git() for reason in reasons)


def told_apart(path: str) -> bool:
    """Return whether to list a path separately although its folder (.venv, node_modules) is one entry."""
    names = folded(path)
    tools = any(pair in _RUN_BY_TOOLS for pair in pairwise(names))
    if _OF_REPOSITORY & {names[-1]} or "hooks" in names[:-1]:
        return True  # may make git run a program, if the folder is a repository without .git
    return ".git" in names or names[-1:] == ("pyvenv.cfg",) or tools or is_environment_program(path)


class _EffectRules:
    def __init__(self, contents: FileVersions, effects: Effects, made: MadeFiles) -> None:
        self._contents = contents
        self._made = made
        self._effects = effects.effects
        self._paths = [path for one in effects.effects for path in (one.path, one.moved_from) if path]

    @cached_property
    def _led_to(self) -> LedTo:
        return led_to_by_git(self._paths, self._contents.before, self._contents.places)

    @cached_property
    def _git(self) -> GitContents:
        return GitContents(self._effects, *self._contents)

    def in_git(self) -> Iterator[tuple[str, tuple[str, ...], bytes]]:
        """Yield risky files that git newly contains and the work tree does not, with reasons and content."""
        for source, contents in self._git.contents.items():
            for one in contents:
                try:
                    reasons = tuple(dict.fromkeys(self._of_content(source, one)))
                except UnreadableFile:
                    reasons = ("unseen",)
                if reasons and not self._git.is_known(source, one):
                    yield one.path, reasons, self._git.read(source, one) or b""

    def _of_content(self, source: str, one: GitContent) -> Iterator[str]:
        if is_steering(one.path):
            yield "git_program"
            return
        yield from ("protected" if reason == "own" else reason for reason in self._by_place(one.path))
        runs = one.mode & _EXECUTE or EXECUTABLE.fullmatch(fold(one.path))
        if runs and stat.S_ISREG(one.mode) and source.endswith("index"):
            yield "executable"
        if stat.S_ISLNK(one.mode):
            target = os.fsdecode(self._git.read(source, one) or b"")
            yield from self._by_target(Effect(path=one.path, kind="created", type="link", link_target=target))

    def checked(self, effect: Effect, *, scan: bool) -> Iterator[str]:
        """Yield the reasons, and one more if a file that matters for them can't be read."""
        try:
            yield from self.reasons(effect, scan=scan)
        except UnreadableFile:
            yield "unseen"

    def checked_git(self, effect: Effect) -> Iterator[str]:
        """Yield only the reasons that concern git."""
        try:
            git = git_reason(effect, self._contents.before, self._contents.after)
            if git not in (None, "ordinary"):
                yield git
            yield from self._git.findings.get(effect.path, ())
            if any(self._led_to.covers(path) for path in (effect.path, effect.moved_from) if path):
                yield "git_program"
        except UnreadableFile:
            yield "unseen"

    def reasons(self, effect: Effect, *, scan: bool) -> Iterator[str]:
        yield from self._git.findings.get(effect.path, ())
        git = git_reason(effect, self._contents.before, self._contents.after)
        if git is not None:
            yield "write" if git == "ordinary" else git
            return
        yield "delete" if effect.kind == "deleted" and not self._is_made(effect) else "write"
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
            and not self._is_made(one)
            and (one.kind == "deleted" or _is_emptied(one))
            and ".git" not in one.path.split("/")
            for one in effects.effects
        ) + sum(map(self.lost_in, effects.bulk))

    def lost_in(self, bulk: BulkEffect) -> int:
        return sum(not self._is_made_in_bulk(path) for path in bulk.lost)

    def _is_made(self, effect: Effect) -> bool:
        """Return whether the content that goes is one that this session gave the file."""
        return identity_of(effect.type, effect.before) in self._made.get(effect.path, ())

    def _is_made_in_bulk(self, path: str) -> bool:
        if path not in self._made:
            return False
        with suppress(UnreadableFile):
            content = self._contents.before(path)
            return content is not None and hashlib.sha256(content).hexdigest() in self._made[path]
        return False

    def _by_place(self, path: str) -> Iterator[str]:
        protection = protection_of(path)
        if protection == "denied":
            yield "own"
        elif protection != "none":
            yield "protected"
        if self._led_to.covers(path):
            yield "git_program"

    def _by_mode(self, effect: Effect) -> Iterator[str]:
        before, after = effect.mode_before or 0, effect.mode_after or 0
        if effect.type != "link" and (after & _SET_ID & ~before or after & _WORLD_WRITE & ~before):
            yield "rights"
        if effect.type != "file":
            return
        if effect.kind == "deleted" and self._is_made(effect):
            return
        named = EXECUTABLE.fullmatch(fold(effect.path))
        was_named = EXECUTABLE.fullmatch(fold(effect.moved_from)) is not None
        same = effect.kind == "moved" and effect.before == effect.after and not after & _EXECUTE & ~before
        if same and (not named or was_named or before & _EXECUTE):
            return  # was executable before, under another name
        if effect.kind == "mode":
            runs = after & _EXECUTE and not before & _EXECUTE
        else:
            runs = (after if effect.kind != "deleted" else before) & _EXECUTE
            runs = runs or named
        if runs:
            yield "built" if self._is_compiled(effect) else "executable"

    def _is_compiled(self, effect: Effect) -> bool:
        """Return whether the file is compiler output that is new or replaces older compiler output."""
        if effect.kind not in ("created", "changed"):
            return False
        runs = bool((effect.mode_after or 0) & _EXECUTE)
        new = self._contents.after(effect.path)
        old = self._contents.before(effect.path) if effect.kind == "changed" else None
        return is_compiled(effect.path, new or b"", runs=runs) and (
            old is None or is_compiled(effect.path, old, runs=runs)
        )

    def _by_target(self, effect: Effect) -> Iterator[str]:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(effect.path), effect.link_target))
        if target.startswith(("/", "../")) or target == "..":
            yield "outside"
        elif protection_of(target) != "none":
            yield "protected"
        if EXECUTABLE.fullmatch(fold(effect.path)) and not EXECUTABLE.fullmatch(fold(target)):
            yield "executable"  # a system would run the file by this name

    def _by_content(self, effect: Effect) -> Iterator[str]:
        new = self._contents.after(effect.path)
        if not new or is_program(new):
            return
        old = self._contents.before(effect.moved_from or effect.path) if effect.before else None
        if _is_script(effect.path, new, effect.mode_after):
            was_script = old and _is_script(effect.moved_from or effect.path, old, effect.mode_before)
            if not was_script:
                yield "shebang"
        known = set((old or b"").split(b"\n"))
        added = b"\n".join(line for line in new.split(b"\n") if line not in known)
        yield from content_reasons(readable_text(added))
        if old and added and effect.size <= _JOINED:  # a line may complete one that was there before
            yield from completed_reasons(readable_text(old), readable_text(new))


def _is_emptied(effect: Effect) -> bool:
    """Return whether next to nothing is left of a file."""
    return effect.kind == "changed" and (effect.size <= 1 or effect.size * 20 < effect.size_before)


def _is_script(path: str, content: bytes, mode: int | None) -> bool:
    """Return whether a file names the program that runs it. Sources in some languages do so by habit."""
    names_program = content.removeprefix(codecs.BOM_UTF8).startswith(b"#!")
    return names_program and (bool((mode or 0) & _EXECUTE) or not path.lower().endswith(SOURCE_SUFFIXES))
