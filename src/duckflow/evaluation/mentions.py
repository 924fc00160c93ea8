"""What a request names, files and names in code, by their shape, and whether the changed files show it."""

import re
from collections.abc import Sequence

from duckflow.evaluation.facts import Fact

_LOOKED_AT = 4_000
_PATH = re.compile(r"(?<![\w@])[\w./-]++(?!@)", re.ASCII)
_SUFFIX = re.compile(r"[A-Za-z][A-Za-z0-9]{0,7}")
_QUOTED = re.compile(r"`([^`\n]{1,80})`")
_WORD = re.compile(r"(?<![\w.])([A-Za-z_]\w*_\w+|[A-Za-z]\w*(?=\())", re.ASCII)
"""Names in code as people write them in a sentence: with an underscore, or as a call."""


def named_files(text: str) -> tuple[str, ...]:
    """What looks like the name of a file in a request."""
    paths = (found.removeprefix("./").rstrip("./-") for found in _PATH.findall(text[:_LOOKED_AT]))
    return tuple(dict.fromkeys(path for path in paths if _is_file(path)))


def named_words(text: str) -> tuple[str, ...]:
    """What looks like a name in code in a request: quoted, called, or with an underscore."""
    rest = _PATH.sub(lambda found: " " if named_files(found[0]) else found[0], text[:_LOOKED_AT])
    quoted = (found.partition("(")[0].strip() for found in _QUOTED.findall(rest))
    return tuple(dict.fromkeys((*filter(None, quoted), *_WORD.findall(rest))))


def unseen_names(request: str, facts: Sequence[Fact]) -> tuple[str, ...]:
    """What the request names and the changed files do not show."""
    files = {fact.path for fact in facts}
    names = files | {path.rpartition("/")[2] for path in files}
    content = "\n".join((*files, *(fact.content for fact in facts)))
    return (
        *(name for name in named_files(request) if name not in names),
        *(word for word in named_words(request) if word not in content),
    )


def _is_file(path: str) -> bool:
    stem, _, suffix = path.rpartition("/")[2].rpartition(".")
    return bool(stem.strip("-.")) and _SUFFIX.fullmatch(suffix) is not None and not path.startswith("//")
