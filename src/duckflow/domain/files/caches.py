"""Names of caches, environments and dependencies that tools create. Kept only in this list."""

TOOL_CACHES = frozenset(
    {
        *("__pycache__", ".pytest_cache", ".ruff_cache", ".mypy_cache"),
        *(".benchmarks", ".hypothesis", ".import_linter_cache"),
    }
)
"""Folders that a tool recreates when it runs again, so that deleting or keeping them needs no question."""

ENVIRONMENTS = frozenset({"node_modules", ".venv", ".tox", ".nox"})
"""Folders with third-party code."""

CACHES = (
    TOOL_CACHES
    | ENVIRONMENTS
    | {
        *(
            ".ipynb_checkpoints",
            ".eggs",
            "bower_components",
            ".pnpm-store",
        ),
        *(
            ".gradle",
            ".next",
            ".nuxt",
            ".svelte-kit",
            ".turbo",
            ".cache",
            ".parcel-cache",
            ".nyc_output",
            ".dart_tool",
        ),
    }
)
"""Folders with generated content, recognized by their names. `*.egg-info` counts, too."""

_FILES = frozenset({".coverage", ".DS_Store", "Thumbs.db"})
_ENDS = (".pyc", ".pyo", ".egg-info")


def is_cache(path: str) -> bool:
    """Return whether a path is a generated folder, lies in one, or is a generated file."""
    *folders, name = path.split("/")
    named = name in _FILES or name in CACHES or name.endswith(_ENDS)
    return named or any(one in CACHES or one.endswith(".egg-info") for one in folders)
