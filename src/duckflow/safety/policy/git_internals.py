"""Changes below `.git`: which ones are ordinary work, and which make git run a program (G10).

Git itself writes objects, refs, the index and logs. Every change not known to be harmless needs a question.
"""

import posixpath
from collections.abc import Iterable, Iterator
from typing import Literal

from duckflow.domain.files.effects import Effect
from duckflow.domain.patterns import lazy_regex
from duckflow.safety.paths import fold
from duckflow.safety.policy.git_config import GitPlaces, LedTo, ReadFile, Setting, paths_led_to, read_settings

GitReason = Literal["ordinary", "git_program", "repository"]

ORDINARY = lazy_regex(
    r"(objects|refs|logs|rr-cache|lfs|rebase-merge|rebase-apply|sequencer)(/.*)?|branches"
    r"|info|info/(refs|sparse-checkout)|modules|worktrees"
    r"|index|index\.stash\.[^/]*|sharedindex\.[^/]*|packed-refs|shallow|description|gc\.(pid|log)"
    r"|(orig_|fetch_|cherry_pick_|revert_|rebase_|bisect_)?head|auto_merge|(merge|bisect|notes)_[^/]*"
    r"|notes_merge_worktree/[0-9a-f]+"
    r"|(commit|tag|squash|add|branch)_(editmsg|msg|edit\.patch|description)|edit_description"
    r"|(index|head|packed-refs|shallow|config)\.lock"
)
"""Lower-case paths inside a git directory that git writes during its work and never runs."""

RUNS = lazy_regex(
    r"config(\.worktree)?|hooks(/.*)?|commondir|gitdir|info/(attributes|exclude|grafts)"
    r"|objects/info/(http-)?alternates|refs/replace/.*"
)
"""Paths inside a git directory that make git run a program or read something else."""

HARMLESS_SETTINGS = lazy_regex(
    r"user\.(name|email)=.*|branch\.[^\n]+\.(remote=[\w.-]+|merge=refs/[\w./-]+|rebase=(true|false))"
)
"""Settings that only name the committer and the branch that another branch follows."""

GIT = lazy_regex(r"\.git|git~\d")
"""Folded names that some file system takes for `.git`."""

_HEAD = lazy_regex(rb"ref:\s*refs/|refs/|[0-9a-fA-F]{40}")
"""Beginning of the HEAD of a repository: a branch, an object, or the target of a link."""

_COMPLETING = lazy_regex(
    r"config(\.worktree)?|commondir|gitdir|objects|refs|hooks(/.*)?|info/(attributes|grafts)"
    r"|objects/info/(http-)?alternates"
)
"""Paths beside a HEAD that make its folder a repository, or make git run a program there."""

TO_DO = lazy_regex(r"(rebase-merge|rebase-apply|sequencer)/[^/]*todo[^/]*")
_STEP = lazy_regex(
    rb"(pick|p|reword|r|edit|e|squash|s|fixup|f|drop|d|revert)\s+(-[cC]\s+)?[0-9a-fA-F]{4,64}(\s.*)?"
    rb"|(noop|break|b)(\s.*)?|#.*|"
)
"""Line of a to-do list that applies a commit or does nothing. Others can run a program or move a branch."""

_QUOTED = lazy_regex(rb"(\s|'[^']*'|\\['!])*")
"""Names quoted for a shell: older versions of git let a shell read the file again."""

_REPLAYED = lazy_regex(r"rr-cache/.*|merge_rr|rebase-apply/(\d+|patch)|rebase-merge/update-refs")
"""Recorded solutions, waiting patches and branches: a later merge, commit, `git am` or rebase writes them."""

_STRATEGY = lazy_regex(rb"(ort|recursive|resolve|octopus|ours|subtree)?")
"""Ways to merge that are part of git. With another name git runs a program, whose name may lead anywhere."""

_MERGE_OPTION = lazy_regex(
    rb"(--)?(ours|theirs|patience|histogram|minimal|(no-)?renormalize|no-renames|find-renames(=\d+%?)?"
    rb"|rename-threshold=\d+%?|diff-algorithm=\w+|subtree(=[\w./-]*)?"
    rb"|ignore-(space-change|all-space|space-at-eol|cr-at-eol))"
)
_APPLY_OPTION = lazy_regex(rb"-C\d+|-p\d+|--whitespace=[\w-]+|--ignore-(space-change|whitespace)|--reject")
_WORD = lazy_regex(rb"[^\s'\"\\]+")
_OPTIONS = "options."

_NESTED = lazy_regex(
    r"(objects|refs|logs|lfs|rebase-merge|rebase-apply|sequencer)/(.*/)?(config(\.worktree)?|commondir|hooks/.*)"
)
"""Paths that steer a repository hidden among refs or objects. A branch may have such a name."""

_REF = lazy_regex(rb"[0-9a-f]{40,64}\s*|ref: refs/(?!.*\.\.)[\w./-]*\s*")
_LOG = lazy_regex(rb"[0-9a-f]{40,64} [0-9a-f]{40,64} ")
_LFS = lazy_regex(r"lfs/objects/../../([0-9a-f]{64})")
_POINTER = lazy_regex(rb"gitdir:\s*([^\r\n]+)")


def git_reason(effect: Effect, before: ReadFile, after: ReadFile) -> GitReason | None:
    """Return why a change concerns git, "ordinary" for everyday work. None if it does not concern git."""
    names = effect.path.split("/")
    place = next((at for at, name in enumerate(names) if GIT.fullmatch(fold(name))), None)
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


def led_to_by_git(changed: Iterable[str], before: ReadFile, places: GitPlaces) -> LedTo:
    """Return the paths that git's settings make it run or read, in all repositories with changed paths."""
    found = LedTo()
    for folder in dict.fromkeys(("", *(above for path in changed for above in folders_above(path)))):
        config = list(_configurations(folder, before, places))
        if config:
            found = found.joined(paths_led_to((*config, *places.user_files), folder, before, places))
        objects = {f"{posixpath.dirname(path)}/objects" for path in config}
        found = found.joined(LedTo(folders=_alternates(objects, before, places)))
    return found


def _alternates(waiting: set[str], before: ReadFile, places: GitPlaces) -> frozenset[str]:
    """Return the folders from which git reads further objects, without a look at their content."""
    found: set[str] = set()
    while waiting:
        text = before(f"{(place := waiting.pop())}/info/alternates") or b""
        lines = (line.decode("utf-8", "surrogateescape") for line in text.split(b"\n"))
        more = {places.find(place, line) for line in lines if line and not line.startswith("#")} - found
        found |= more
        waiting |= {one for one in more if not one.startswith(("/", "../"))}
    return frozenset(found)


def folders_above(path: str) -> Iterator[str]:
    """Yield the folders that contain a path, outermost first, without the workspace itself."""
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)


def _configurations(folder: str, before: ReadFile, places: GitPlaces) -> Iterator[str]:
    """Yield the configuration files of a work tree; those of a submodule lie elsewhere in the workspace."""
    if ".git" in folder.split("/"):
        return
    found = [posixpath.join(folder, ".git")]
    if pointer := _POINTER.match(before(found[0]) or b""):
        own = places.find(folder, pointer[1].decode("utf-8", "surrogateescape").strip())
        if not folder and own.startswith("/"):  # its paths begin with .git all the same
            own = f".git/worktrees/{posixpath.basename(own)}"
        found.append(own)
        if not own.startswith(("/", "../")) and (shared := before(f"{own}/commondir")):
            found.append(places.find(own, shared.decode("utf-8", "surrogateescape").strip()))
    for place in found:
        for name in ("config", "config.worktree"):
            path = f"{place}/{name}"
            if not place.startswith(("/", "../")) and before(path) is not None:
                yield path


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
    written = effect.kind != "deleted" and effect.type == "file"
    if written and any(_replays_or_steers(tail, effect.path, after) for tail in tails):
        return "git_program"
    if written and not all(_continues_as_usual(tail, after(effect.path) or b"") for tail in tails):
        return "git_program"
    if inside == "bisect_names" and not _QUOTED.fullmatch(after(effect.path) or b""):
        return "git_program"
    large = next(filter(None, map(_LFS.fullmatch, tails)), None)
    if large and effect.kind != "deleted" and effect.after != large[1]:
        return "git_program"  # a checkout would write this content as that of the file with this hash
    if written and any(TO_DO.fullmatch(tail) for tail in tails):
        lines = (after(effect.path) or b"").split(b"\n")
        return "ordinary" if all(_STEP.fullmatch(line.strip()) for line in lines) else "git_program"
    return "ordinary"


def _continues_as_usual(tail: str, text: bytes) -> bool:
    """Return whether a file with the state of a rebase, cherry-pick or `git am` holds only usual values."""
    match tail:
        case "rebase-merge/strategy":
            return _STRATEGY.fullmatch(text.strip()) is not None
        case "rebase-merge/strategy_opts":
            return all(map(_MERGE_OPTION.fullmatch, _WORD.findall(text)))
        case "rebase-apply/apply-opt":
            return all(map(_APPLY_OPTION.fullmatch, _WORD.findall(text)))
        case "sequencer/opts":
            settings = read_settings(text) or [("", None)] * bool(text.strip())
            return all(_is_usual_option(name, (value or "").encode()) for name, value in settings)
        case _:
            return True


def _is_usual_option(name: str, value: bytes) -> bool:
    pattern = {"options.strategy": _STRATEGY, "options.strategy-option": _MERGE_OPTION}.get(name)
    return name.startswith(_OPTIONS) and (pattern is None or pattern.fullmatch(value) is not None)


def _replays_or_steers(tail: str, path: str, after: ReadFile) -> bool:
    """Return whether a later merge writes new content into files, or a repository inside `.git` obeys it."""
    if _REPLAYED.fullmatch(tail):
        return tail != "merge_rr" or bool(after(path))
    if not _NESTED.fullmatch(tail) or _REF.fullmatch(text := after(path) or b""):
        return False
    return not (tail.startswith("logs/") and tail.endswith("/config") and _LOG.match(text))


def _in_bare_repository(effect: Effect, before: ReadFile, after: ReadFile) -> bool:
    """Return whether a change makes, completes, steers or removes a repository in a folder without `.git`."""
    name = effect.path.rpartition("/")[2]
    if fold(name) == "head" and effect.type != "folder":
        return effect.type == "link" or is_head(effect.path, before) != is_head(effect.path, after)
    folded = "/".join(fold(one) for one in effect.path.split("/"))
    homes = ("", *folders_above(effect.path))
    concerned = [home for home in homes if _COMPLETING.fullmatch(folded[len(home) :].lstrip("/"))]
    heads = [posixpath.join(home, "HEAD") for home in concerned]
    return any(is_head(head, read) for head in heads for read in (before, after))


def is_head(path: str, read: ReadFile) -> bool:
    """Return whether git takes a file for the HEAD of a repository."""
    return _HEAD.match(read(path) or b"") is not None


def _harmless(old: bytes | None, new: bytes | None) -> bool:
    was, now = (read_settings(text) if text is not None else None for text in (old, new))
    if was is None or now is None:
        return False
    changed = {one for one in (*was, *now) if was.count(one) != now.count(one)}
    in_order = [one for one in was if one in now] == [one for one in now if one in was]
    return in_order and all(HARMLESS_SETTINGS.fullmatch(_line(setting)) for setting in changed)


def _line(setting: Setting) -> str:
    name, value = setting
    return name if value is None else f"{name}={value}"
