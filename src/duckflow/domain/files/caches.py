"""Names of what tools make for themselves: caches, environments, dependencies. The only such list."""

TOOL_CACHES = frozenset({"__pycache__", ".pytest_cache", ".ruff_cache", ".mypy_cache"})
"""Folders that are made again with the next run of their tool: to lose or to keep one is no decision."""

ENVIRONMENTS = frozenset({"node_modules", ".venv", ".tox", ".nox"})
"""Folders with the code of others."""

CACHES = (
    TOOL_CACHES
    | ENVIRONMENTS
    | {
        *(
            ".hypothesis",
            ".import_linter_cache",
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
"""All folders whose name alone says that no person wrote what is in them; `*.egg-info` too."""

_FILES = frozenset({".coverage", ".DS_Store", "Thumbs.db"})
_ENDS = (".pyc", ".pyo", ".egg-info")


def is_cache(path: str) -> bool:
    """Whether a path is such a folder, lies in one, or is a file that tools make for themselves."""
    *folders, name = path.split("/")
    named = name in _FILES or name in CACHES or name.endswith(_ENDS)
    return named or any(one in CACHES or one.endswith(".egg-info") for one in folders)
