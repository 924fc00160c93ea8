"""Folders nobody means when they list or search, unless they name them."""

SKIPPED = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".jj",
        "node_modules",
        ".venv",
        "__pycache__",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".tox",
        ".nox",
    }
)
"""Names of folders."""


def names_skipped(path: str) -> bool:
    """Whether a path is such a folder or in one: then it was meant."""
    return any(name in SKIPPED for name in path.split("/"))


def skip_arguments(path: str) -> list[str]:
    """What keeps ripgrep out of them when it goes through `path`."""
    return [] if names_skipped(path) else [f"--glob=!{name}" for name in sorted(SKIPPED)]
