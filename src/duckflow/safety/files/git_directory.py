"""Git directory behind a `.git` file. For a worktree or submodule it lies outside the workspace (G10).

A downloaded `.git` file can name any folder, so the named git directory must also name the workspace. Its
paths are written as `.git/…`, which is unambiguous where `.git` is a file.
"""
# ruff: noqa: PTH112, PTH118, PTH120 - the command launcher loads this module, and starts without pathlib

import os
import re

from duckflow.domain.patterns import lazy_regex
from duckflow.safety.descriptors import read_regular

INSIDE = ".git/"

_POINTER = lazy_regex(rb"gitdir: ([^\n]+)\n*")
_WORK_TREE = lazy_regex(rb"^\s*worktree\s*=\s*([^\n]+?)\s*$", re.MULTILINE)
_LONGEST = 1 << 16


def split_root(path: str, git_directory: str | None) -> tuple[bool, str]:
    """Return two values: whether the path lies in the outside git directory, and its path in there."""
    outside = git_directory is not None and path.startswith(INSIDE)
    return outside, path.removeprefix(INSIDE) if outside else path


def outer_git_directory(folder: str) -> str | None:
    """Return the shared git directory that a `.git` file names; None unless it also names this folder."""
    pointer = _POINTER.fullmatch(read_regular(f"{folder}/.git", _LONGEST) or b"")
    if pointer is None:
        return None
    own = _real(folder, pointer[1])
    if (shared := read_regular(f"{own}/commondir", _LONGEST)) is not None:
        found = _real(own, shared.strip())
        back = _real(own, (read_regular(f"{own}/gitdir", _LONGEST) or b"").strip())
        leads_back = back == _real(folder, b".git") and os.path.dirname(own) == f"{found}/worktrees"
    else:
        found = own
        said = _WORK_TREE.search(read_regular(f"{own}/config", _LONGEST) or b"")
        leads_back = said is not None and _real(own, said[1]) == _real(folder, b".")
    apart = not found.startswith(f"{folder}/") and not f"{folder}/".startswith(f"{found}/")
    return found if leads_back and apart and os.path.isdir(f"{found}/objects") else None


def _real(base: str, path: bytes) -> str:
    return os.path.realpath(os.path.join(base, os.fsdecode(path)))
