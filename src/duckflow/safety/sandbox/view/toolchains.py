"""Language tool chains and caches that the user's environment points to.

Commands see nothing else of a home folder. Tool chains are read-only, and credentials in them are masked.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from duckflow.safety.descriptors import read_regular
from duckflow.safety.paths import is_inside, outermost

POINTERS = (
    *("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_EXE", "PYENV_ROOT", "PYTHONPATH", "PYTHONHOME"),
    *("NVM_DIR", "NVM_BIN", "NODE_PATH", "VOLTA_HOME", "FNM_DIR", "BUN_INSTALL", "DENO_INSTALL", "PNPM_HOME"),
    *("JAVA_HOME", "MAVEN_HOME", "GRADLE_HOME", "SDKMAN_DIR", "KOTLIN_HOME", "SCALA_HOME"),
    *("CARGO_HOME", "RUSTUP_HOME", "GEM_HOME", "GEM_PATH", "RBENV_ROOT", "ASDF_DIR", "ASDF_DATA_DIR"),
    *("GOROOT", "GOPATH", "MISE_DATA_DIR", "DOTNET_ROOT", "ANDROID_HOME", "ANDROID_SDK_ROOT", "FLUTTER_ROOT"),
    *("UV_PYTHON_INSTALL_DIR", "GHCUP_INSTALL_BASE_PREFIX", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_PROFILES", "LOCALE_ARCHIVE"),
)
"""Variables that name folders of a tool chain, separated by colons."""

AT_HOME = (
    *(".cargo", ".rustup", "go/bin", "go/pkg", ".pyenv", ".nvm", ".fnm", ".volta", ".bun", ".deno", ".rbenv"),
    *(".asdf", ".sdkman", ".jenv", ".dotnet", ".nuget/packages", ".m2/repository", ".gradle/wrapper"),
    *(".gradle/caches", ".ivy2/cache", ".sbt", ".opam", ".ghcup", ".stack", ".cabal", ".juliaup", ".julia"),
    *(".elan", ".gem", ".local/lib", ".local/bin", ".local/share/uv", ".local/share/pipx", ".local/pipx"),
    *(".local/share/mise", ".local/share/pnpm", ".local/share/gem", ".local/share/rtx"),
    *(".local/share/virtualenvs", ".cache/pypoetry/virtualenvs", ".cache/ms-playwright", ".nix-profile"),
    *(".conda", ".yarn/berry"),
)
"""Default locations of tool chains below the home folder."""

CREDENTIALS = (
    *("credentials", "credentials.toml", "config.toml.bak", "auth.json", "settings.xml", ".npmrc", "token"),
)
"""Files at the top of a tool chain that hold credentials."""

_PROGRAM_FOLDERS = ("bin", "sbin", "shims", "condabin", "Scripts")
_SIGNS = frozenset(
    (
        *("pyvenv.cfg", "conda-meta", "lib", "lib64", "libexec", "versions", "toolchains", "registry", "pkg"),
        *("installs", "plugins", "include", "share", "jre", "node_modules"),
    )
)
"""Names that mark a folder as a tool chain if it also has a folder of programs."""

_MOST_PROGRAMS = 3_000
_MOST_FOUND = 200
_SHEBANG = 200


class ToolchainSearch:
    """Search for tool chains, made once per session."""

    def __init__(self, home: str, workspace: str, system: Iterable[str]) -> None:
        self._home = home
        self._workspace = workspace
        self._system = tuple(system)
        self._found: dict[str, None] = {}

    def find(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return the folders and files to show, under their names and their real paths."""
        waiting = [path for path in environment.get("PATH", "").split(":") if path.startswith("/")]
        for name in POINTERS:
            waiting += [path for path in environment.get(name, "").split(":") if path.startswith("/")]
        waiting += [f"{self._home}/{name}" for name in AT_HOME]
        done: set[str] = set()
        while waiting and len(self._found) < _MOST_FOUND:
            path = os.path.normpath(waiting.pop(0))
            if path in done or not os.path.exists(path):
                continue
            done.add(path)
            for place in dict.fromkeys((path, os.path.realpath(path))):
                root = self._root_of(place)
                if root is None:
                    continue
                self._found[root] = None
                waiting += self._led_to(place)
                waiting += [f"{root}/{name}" for name in _PROGRAM_FOLDERS]
        return outermost(self._found)

    def _root_of(self, place: str) -> str | None:
        """Return the tool chain of a folder. None if the folder is visible anyway or must stay hidden."""
        if any(is_inside(place, folder) for folder in (*self._system, self._workspace, *self._found)):
            return None
        above = os.path.dirname(place)
        if os.path.basename(place) in _PROGRAM_FOLDERS and self._may_show(above) and _is_toolchain(above):
            return above
        return place if self._may_show(place) else None

    def _may_show(self, place: str) -> bool:
        """Return whether to show a place: not above the home or the workspace, and not shared by programs."""
        shared = (
            self._home,
            *(f"{self._home}/{name}" for name in (".local", ".local/share", ".config", ".cache")),
        )
        holds = any(is_inside(path, place) for path in (self._home, self._workspace))
        return place.count("/") > 1 and place not in shared and not holds

    def _led_to(self, folder: str) -> Iterator[str]:
        """Yield the folders to which links in a folder of programs lead, and the folders of interpreters."""
        with suppress(OSError), os.scandir(folder) as entries:
            for _, entry in zip(range(_MOST_PROGRAMS), entries, strict=False):
                if entry.is_symlink():
                    yield os.path.dirname(os.path.realpath(entry.path))
                elif entry.is_file(follow_symlinks=False) and (program := _interpreter(entry.path)):
                    yield os.path.dirname(program)
                    yield os.path.dirname(os.path.realpath(program))


def credentials_in(folders: Iterable[str]) -> Iterator[str]:
    """Yield the files in tool chains that hold credentials."""
    for folder in folders:
        for name in CREDENTIALS:
            if os.path.isfile(f"{folder}/{name}"):
                yield f"{folder}/{name}"


def _is_toolchain(folder: str) -> bool:
    with suppress(OSError):
        return not _SIGNS.isdisjoint(os.listdir(folder))
    return False


def _interpreter(path: str) -> str | None:
    """Return the interpreter that a script names, unless it belongs to the system."""
    start = read_regular(path, _SHEBANG) or b""
    if not start.startswith(b"#!/"):
        return None
    words = os.fsdecode(start[2:].split(b"\n", 1)[0]).split()
    return words[0] if words and not words[0].startswith(("/bin/", "/usr/")) else None
