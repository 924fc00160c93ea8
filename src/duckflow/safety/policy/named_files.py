"""Find the files that a command names or is known to read. An approval covers them as they are (G5)."""

import re
from collections.abc import Iterator

_WORD = re.compile(r"[^\s\"'`$;|&<>()=,]+")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_READ_BY = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    **dict.fromkeys(("npm", "npx", "yarn", "pnpm", "bun", "node"), ("package.json",)),
    "cargo": ("Cargo.toml", "build.rs"),
    **dict.fromkeys(("pytest", "tox", "nox"), ("conftest.py", "tox.ini", "noxfile.py", "pyproject.toml")),
    **dict.fromkeys(("pip", "pip3", "uv"), ("setup.py", "pyproject.toml", "setup.cfg")),
    **dict.fromkeys(("docker", "podman"), ("Dockerfile", "compose.yaml", "docker-compose.yml")),
}
"""Files that programs read although the command does not name them."""

MOST = 200
"""Largest number of paths to look up for one command."""


def named_files(command: str) -> tuple[str, ...]:
    """Return relative paths that may be files, in the order of the command's words."""
    return tuple(dict.fromkeys(_candidates(command)))[:MOST]


def _candidates(command: str) -> Iterator[str]:
    words = _WORD.findall(command)
    for before, word in zip(["", *words], words, strict=False):
        yield word.removeprefix("./")
        yield from _READ_BY.get(word.rpartition("/")[2], ())
        if before == "-m" and _MODULE.fullmatch(word):
            path = word.replace(".", "/")
            yield from (f"{path}.py", f"{path}/__main__.py", f"{path}/__init__.py")
