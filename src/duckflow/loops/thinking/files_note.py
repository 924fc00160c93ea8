"""Note for the model about the files in the folder: their names if they are few, otherwise counts."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from duckflow.domain.files.caches import is_cache
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.text import cut, some_of
from duckflow.safety.files.listing import SKIPPED, Listing
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.paths import printable

LISTED = 40
"""Largest number of files that are listed by name."""

LONGEST = 1_200
_MOST, _MOST_EACH, _DEPTH = 5_000, 1_000, 8
_NAMED, _LINE = 24, 400
_FOLDERS, _BELOW, _OTHERS, _TOP_FILES = 8, 8, 12, 16
_CODE = lazy_regex(
    r"\.(?:pyi?|pyx|[mc]?js|jsx|tsx?|vue|svelte|rs|go|[ch]|cc|[ch]pp|cxx|hh|mm?|java|kts?|scala|[cf]s|rb|php"
    r"|swift|lua|p[lm]|r|jl|exs?|erl|hs|ml|clj|dart|(?:ba)?sh|sql|zig|nim|html|s?css)\Z",
    re.IGNORECASE,
)
_ASIDE = lazy_regex(
    r"\..*|.*tests?|testing|specs?|docs?|(?:example|sample|demo|script|tool)s?|bench|benchmarks?|ci|vendor"
    r"|third_party",
    re.IGNORECASE,
)
_NOTABLE = lazy_regex(
    r"readme|agents\.md|contributing|pyproject\.toml|setup\.(?:py|cfg)|tox\.ini|package\.json|tsconfig\.json"
    r"|cargo\.toml|go\.mod|pom\.xml|build\.gradle|cmakelists\.txt|makefile|gemfile|composer\.json|requirements"
    r"|dockerfile|changelog|changes",
    re.IGNORECASE,
)


def read_files_note(workspace: Workspace) -> str:
    """Return the note for a workspace. Blocking."""
    return files_note(workspace.list(".", depth=_DEPTH, limit=_MOST, each=_MOST_EACH, skip=SKIPPED))


def files_note(listing: Listing) -> str:
    """Return the note for a listing."""
    there = (entry.path for entry in listing.entries if entry.kind == "file")
    files = [printable(path) for path in there if not is_cache(path)]
    if not files:
        return "Files here: none"
    if listing.complete and len(files) <= LISTED:
        return f"Files here: {', '.join(files)}"
    counted = (
        f"{len(files)} files" if listing.complete else f"over {len(files)} files, not all of them counted"
    )
    lines = [f"Files here ({counted}):", *_layout(files, whole=listing.complete)]
    while len(lines) > 1 and len("\n".join(lines)) > LONGEST:
        lines.pop(-2 if len(lines) > 2 else -1)
    return "\n".join(lines)


def _layout(files: Sequence[str], *, whole: bool) -> Iterable[str]:
    counts, code = Counter[str](), Counter[str]()
    for path in files:
        for folder in accumulate(f"{name}/" for name in path.split("/")[:-1]):
            counts[folder] += 1
            code[folder] += _CODE.search(path) is not None
    top = (one for one in counts if one.count("/") == 1)
    ranked = sorted(top, key=lambda one: (not code[one], _is_aside(one), -code[one], one))
    coded = [one for one in ranked if code[one]]
    for folder in coded[:_FOLDERS]:
        yield cut(_folder_line(folder, counts, files if whole else ()), _LINE)
    others = [f"{one} {counts[one]}" for one in (*coded[_FOLDERS:], *ranked[len(coded) :])]
    if others:
        yield cut(f"also {some_of(others, _OTHERS)}", _LINE)
    if own := sorted(
        (path for path in files if "/" not in path), key=lambda one: (not _NOTABLE.match(one), one)
    ):
        yield cut(f"at the top {some_of(own, _TOP_FILES)}", _LINE)


def _is_aside(folder: str) -> bool:
    """Return whether a folder's name marks it as tests, documentation or the like."""
    return _ASIDE.fullmatch(folder.rstrip("/")) is not None


def _folder_line(folder: str, counts: Mapping[str, int], files: Sequence[str]) -> str:
    """Describe a folder by its largest subfolders, or by its `files` if it is a small package."""
    aside = _is_aside(folder)
    below = _below(folder, counts)
    while len(below) == 1 and counts[below[0]] == counts[folder]:
        folder = below[0]
        below = _below(folder, counts)
    if files and not below and not aside and counts[folder] <= _NAMED:
        return f"{folder} {', '.join(path[len(folder) :] for path in files if path.startswith(folder))}"
    largest = sorted(below, key=lambda one: (-counts[one], one))[:_BELOW]
    named = [f"{one[len(folder) :]} {counts[one]}" for one in below if one in largest]
    left = f" and {len(below) - len(named)} more" if len(below) > len(named) else ""
    inside = f": {', '.join(named)}{left}" if named else ""
    return f"{folder} {counts[folder]}{inside}"


def _below(folder: str, counts: Mapping[str, int]) -> list[str]:
    depth = folder.count("/") + 1
    return sorted(one for one in counts if one.startswith(folder) and one.count("/") == depth)
