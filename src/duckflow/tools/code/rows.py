"""Language servers that Duckflow knows: programs, the files they are for, and their settings."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, cast

from duckflow.config.mcp import from_home
from duckflow.config.settings import CodeSettings
from duckflow.domain.files.programs import find_program

Json = dict[str, Any]
JsonValue = Any

_PYTHON = (".py", ".pyi")
_SCRIPT = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_C = (".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx")

_LANGUAGE_IDS = {
    **dict.fromkeys(_PYTHON, "python"),
    **dict.fromkeys((".ts", ".mts", ".cts"), "typescript"),
    **dict.fromkeys((".js", ".mjs", ".cjs"), "javascript"),
    ".tsx": "typescriptreact",
    ".jsx": "javascriptreact",
    ".rs": "rust",
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"), "cpp"),
}
_BASIC: Json = {
    "typeCheckingMode": "basic",
    "diagnosticMode": "openFilesOnly",
    "autoSearchPaths": True,
    "useLibraryCodeForTypes": True,
    "logLevel": "Error",
}
"""Settings of pyright, which only apply where a project has none."""


_CALLS = ("reportCallIssue", "reportAttributeAccessIssue")


class ServerRow(NamedTuple):
    """One language server."""

    name: str
    command: tuple[str, ...]
    suffixes: tuple[str, ...]
    settings: Json
    """Settings by section, which the server gets when it asks for them."""
    environment: Mapping[str, str] = {}
    reports_status: bool = False
    """True if it tells when it has read the project, and answers too little before."""
    reads_disk: bool = False
    """True if it also knows files that are not open. It would look for errors in every open one."""
    repeats: bool = False
    """True if it reports on a file that it gets again unchanged, and late on files that use a changed one."""
    sure: tuple[str, ...] | None = ()
    """Codes of errors that are certain to fail when the code runs; None: all errors."""


ROWS: tuple[ServerRow, ...] = (
    ServerRow(
        "basedpyright",
        ("basedpyright-langserver", "--stdio"),
        _PYTHON,
        {"basedpyright": {"analysis": _BASIC}, "python": {"analysis": _BASIC}},
        reads_disk=True,
        repeats=True,
        sure=_CALLS,
    ),
    ServerRow(
        "pyright",
        ("pyright-langserver", "--stdio"),
        _PYTHON,
        {"python": {"analysis": _BASIC}},
        reads_disk=True,
        repeats=True,
        sure=_CALLS,
    ),
    ServerRow("pylsp", ("pylsp",), _PYTHON, {}),
    ServerRow(
        "gopls",
        ("gopls",),
        (".go",),
        {},
        {"GOPROXY": "off", "GOTOOLCHAIN": "local"},
        reads_disk=True,
        sure=None,
    ),
    ServerRow(
        "rust-analyzer",
        ("rust-analyzer",),
        (".rs",),
        {"rust-analyzer": {"cargo": {"extraEnv": {"CARGO_NET_OFFLINE": "true"}}}},
        {"CARGO_NET_OFFLINE": "true"},
        reports_status=True,
        reads_disk=True,
        sure=None,
    ),
    ServerRow(
        "typescript-language-server",
        ("typescript-language-server", "--stdio"),
        _SCRIPT,
        {},
        sure=None,
    ),
    ServerRow("clangd", ("clangd", "--background-index", "--log=error"), _C, {}, sure=None),
)
"""Known servers. Of those for one kind of file, the first that is installed is used."""


class FoundServer(NamedTuple):
    """A server that is installed."""

    row: ServerRow
    program: str


def find_servers(settings: CodeSettings, root: Path, env: Mapping[str, str]) -> tuple[FoundServer, ...]:
    """Return the installed servers, those of the user's settings first. Blocking."""
    if not settings.enabled:
        return ()
    own = (
        ServerRow(name, tuple(one.command), tuple(one.suffixes), {}) for name, one in settings.servers.items()
    )
    rows = (*own, *(row for row in ROWS if row.name not in settings.servers))
    places = ((row, _find(from_home(row.command[0]), root, env)) for row in rows)
    return tuple(FoundServer(row, program) for row, program in places if program)


def _find(name: str, root: Path, env: Mapping[str, str]) -> str | None:
    """Return the path of a program. One that only lies beside Duckflow's own Python is not the user's."""
    found = find_program(name, root, env)
    on_path = found is not None and str(Path(found).parent) in env.get("PATH", "").split(":")
    return found if on_path or "/" in name else None


def suffix_of(path: str) -> str:
    """Return the file suffix in lower case."""
    return PurePosixPath(path).suffix.lower()


def language_id(path: str) -> str:
    """Return the protocol's name of a file's language."""
    suffix = suffix_of(path)
    return _LANGUAGE_IDS.get(suffix, suffix.removeprefix("."))


def settings_for(found: FoundServer, root: Path, env: Mapping[str, str]) -> Json:
    """Return the settings of a server, with the Python of the project or the TypeScript beside it."""
    row = found.row
    if row.name == "typescript-language-server":
        library = f"{package_folder(found.program)}/typescript/lib"
        path = {"tsserver": {"fallbackPath": library}} if Path(library).exists() else {}
        return {row.name: {"disableAutomaticTypingAcquisition": True, **path}}
    if ".py" not in row.suffixes:
        return row.settings
    own = (root / name / "bin/python" for name in (".venv", "venv"))
    active = Path(env["VIRTUAL_ENV"], "bin/python") if env.get("VIRTUAL_ENV") else None
    python = next((one for one in (*own, active) if one is not None and one.exists()), None)
    if python is None:
        return row.settings
    return {**row.settings, "python": {**row.settings.get("python", {}), "pythonPath": str(python)}}


def package_folder(program: str) -> str:
    """Return the folder of packages of a program for Node.js, which must see it whole; else empty."""
    before, mark, _ = os.path.realpath(program).partition("/node_modules/")
    return before + mark.rstrip("/") if mark else ""


def section_of(settings: Json, section: str) -> JsonValue:
    """Return the settings of a section such as `python.analysis`, or None for a section without settings."""
    found: JsonValue = settings
    for name in filter(None, section.split(".")):
        found = cast("Json", found).get(name) if isinstance(found, dict) else None
    return found


def suffixes_of(found: Iterable[FoundServer]) -> frozenset[str]:
    """Return the suffixes of all files for which there is a server."""
    return frozenset(suffix for one in found for suffix in one.row.suffixes)
