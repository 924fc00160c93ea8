"""Finds out whether a change reached the file that the user named."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from duckflow.domain.files.changes import FileChange
from duckflow.domain.patterns import lazy_regex
from duckflow.evaluation.facts import FILE_NAME
from duckflow.evaluation.related_tests import is_test
from duckflow.loops.thinking.small_models import names_file

_OTHER_TARGET = lazy_regex(
    r"\b(?:use|using|import|from|for|like|based|similar|same|test|tests|rename|move|split|copy|call|than)\b"
    r"|使って|使う|参考|から|ように|みたい|同じ|テスト|改名|移動|分け|コピー|呼び|用の"
)
"""Words with which a named file may be only a source of the change."""
_NEW = lazy_regex(r"\b(?:create|new)\b|新し|新規|作")


def missed_files(said: str, first: Mapping[str, FileChange], files: Sequence[str]) -> tuple[str, ...]:
    """Return the file that a message names as the only one to change, if others were changed instead.

    `first` has the first change of each changed path, `files` are the files there are now.
    """
    named = [path for path in files if names_file(said, path)]
    made = [] if _NEW.search(said.casefold()) else [one.path for one in first.values() if one.before is None]
    copies = [path for path in made if "/" not in path or path not in said]
    beside = [path for path in named if path not in first and _name(path) in map(_name, copies)]
    if beside:
        return tuple(beside)
    new = [name for name in FILE_NAME.findall(said) if not any(_name(path) == name for path in files)]
    if len(named) != 1 or new or named[0] in first or _OTHER_TARGET.search(said.casefold()):
        return ()
    known = [one for one in first.values() if one.before is not None and not is_test(one.path)]
    return (named[0],) if known and len(known) == len(first) else ()


def _name(path: str) -> str:
    return PurePosixPath(path).name
