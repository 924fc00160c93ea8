"""Changes below `.git`: which ones are ordinary work, and which make git run a program (G10).

Git itself writes objects, refs, the index and logs. Every change not known to be harmless needs a question.
"""

import re
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

from duckflow.domain.files.effects import Effect
from duckflow.domain.patterns import lazy_regex
from duckflow.safety.paths import fold

ReadFile = Callable[[str], bytes | None]
"""Reads a file by its path in the workspace. Returns None if it does not exist or can't be read."""

GitReason = Literal["ordinary", "git_program", "repository", "mask"]

ORDINARY = lazy_regex(
    r"(objects|refs|logs|rr-cache|lfs|rebase-merge|rebase-apply|sequencer)(/.*)?|branches"
    r"|info|info/(refs|sparse-checkout)|modules|worktrees"
    r"|index|index\.stash\..*|sharedindex\..*|packed-refs|shallow|description|gc\.(pid|log)"
    r"|(orig_|fetch_|cherry_pick_|revert_|rebase_|bisect_)?head|auto_merge|merge_.*|bisect_.*|notes_.*"
    r"|(commit|tag|squash|add|branch)_(editmsg|msg|edit\.patch|description)|edit_description"
    r"|(index|head|packed-refs|shallow|config)\.lock"
)
"""Lower-case paths inside a git directory that git writes during its work and never runs."""

RUNS = lazy_regex(
    r"config(\.worktree)?|hooks(/.*)?|commondir|gitdir|info/(attributes|exclude|grafts)"
    r"|objects/info/(http-)?alternates"
)
"""Paths inside a git directory that make git run a program or read files elsewhere."""

HARMLESS_SETTINGS = lazy_regex(
    r"user\.(name|email)=.*|branch\.[^\n]+\.(remote=[\w.-]+|merge=refs/[\w./-]+|rebase=(true|false))"
)
"""Settings that only name the committer and the branch that another branch follows."""

_OBJECT = lazy_regex(r"(^|/)objects/[0-9a-f]{2}/[0-9a-f]{38,}$")
_MASK = lazy_regex(rb"blob \d+\0\n\n+\Z")
_ENOUGH = 4_096
_GIT = lazy_regex(r"\.git|git~\d")
_POINTS_SOMEWHERE = lazy_regex(rb"ref: |[0-9a-f]{40}\s")
_EXEC_STEP = lazy_regex(rb"^\s*(exec|x)\s", re.MULTILINE)
_SECTION = lazy_regex(r'\[\s*([\w.-]+)(?:\s+"([^"\\]*)")?\s*\]')
_SETTING = lazy_regex(r"([A-Za-z][\w-]*)\s*=\s*([^\\\"#;]*)")
_LEADING = lazy_regex(
    r"core\.(hookspath|fsmonitor|attributesfile)|include\.path|includeif\..*\.path", re.DOTALL
)


def git_reason(effect: Effect, before: ReadFile, after: ReadFile) -> GitReason | None:
    """Return why a change concerns git, "ordinary" for everyday work. None if it does not concern git."""
    names = effect.path.split("/")
    place = next((at for at, name in enumerate(names) if _GIT.fullmatch(fold(name))), None)
    if place is None:
        return "repository" if _in_bare_repository(effect, before, after) else None
    if names[place] != ".git":
        return "git_program"  # another file system may treat this name as .git
    inside = "/".join(fold(name) for name in names[place + 1 :])
    if place == 0 and inside and (pointer := before(".git")):
        # The git directory lies outside and is shared with other worktrees, whose files must not change.
        own = fold(pointer.decode("utf-8", "replace").strip().rpartition("/")[2])
        if inside.startswith("worktrees/") and inside.split("/")[1] != own:
            return "git_program"
    if not inside:
        return "repository"
    if effect.type == "link":
        return "git_program"
    return _inside(effect, inside, before, after)


def led_to_by_git(before: ReadFile) -> tuple[str, ...]:
    """Return paths in the work tree that the repository's settings make git run or read."""
    settings = (one.partition("=") for one in _settings(before(".git/config") or b"") or ())
    found = [value for name, _, value in settings if value and _LEADING.fullmatch(name)]
    inside = (path for path in found if not path.startswith(("/", "~")))
    return tuple(path.removeprefix("./").strip("/") for path in inside)


def _inside(effect: Effect, inside: str, before: ReadFile, after: ReadFile) -> GitReason:
    # A submodule's name may contain slashes, so try every suffix that may be the path in its git directory.
    names = inside.split("/")
    nested = range(2, len(names)) if names[0] in ("modules", "worktrees") else ()
    tails = [inside, *("/".join(names[start:]) for start in nested)]
    if "head" in tails and effect.kind in ("created", "deleted", "moved"):
        return "repository"
    if "config" in tails and effect.kind == "changed":
        return "ordinary" if _harmless(before(effect.path), after(effect.path)) else "git_program"
    if any(RUNS.fullmatch(tail) for tail in tails) or not any(ORDINARY.fullmatch(tail) for tail in tails):
        return "git_program"
    rebases = "rebase-merge/" in inside and effect.kind != "deleted"
    if rebases and _EXEC_STEP.search(after(effect.path) or b""):
        return "git_program"
    is_new_object = effect.kind == "created" and _OBJECT.search(inside)
    return "mask" if is_new_object and _is_mask(after(effect.path) or b"") else "ordinary"


def _is_mask(packed: bytes) -> bool:
    """Return whether a git object holds the placeholder for a secret: only line ends, at least two."""
    with suppress(zlib.error):
        return _MASK.match(zlib.decompressobj().decompress(packed, _ENOUGH)) is not None
    return False


def _in_bare_repository(effect: Effect, before: ReadFile, after: ReadFile) -> bool:
    """Return whether a folder without `.git` becomes a repository, or is one and gets a new configuration."""
    above, _, name = effect.path.rpartition("/")
    if fold(name) == "head" and effect.type != "folder" and effect.kind != "deleted":
        return effect.type == "link" or bool(_POINTS_SOMEWHERE.match(after(effect.path) or b""))
    home = above.removesuffix("/hooks") if fold(above).endswith("/hooks") else above
    concerned = home != above or above == "hooks" or fold(name) in ("config", "commondir")
    path = f"{'' if above == 'hooks' else home}/HEAD".lstrip("/")
    head = (after(path) or before(path)) if concerned else None  # the copy holds only changed files
    return bool(head and _POINTS_SOMEWHERE.match(head))


def _harmless(old: bytes | None, new: bytes | None) -> bool:
    was, now = (_settings(text) if text is not None else None for text in (old, new))
    if was is None or now is None:
        return False
    return all(HARMLESS_SETTINGS.fullmatch(setting) for setting in set(was) ^ set(now))


def _settings(text: bytes) -> list[str] | None:
    """Parse a git configuration into name=value lines. None if any line is not plain and could be misread."""
    found: list[str] = []
    section = ""
    for line in text.decode("utf-8", "replace").splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", ";")):
            continue
        if heading := _SECTION.fullmatch(stripped):
            section = heading[1].lower() + (f".{heading[2]}" if heading[2] is not None else "")
        elif (setting := _SETTING.fullmatch(stripped)) and section:
            found.append(f"{section}.{setting[1].lower()}={setting[2].strip()}")
        else:
            return None
    return found
