"""Programs that Duckflow itself starts: editor, ripgrep, language tools (SAFETY 18).

They are not looked for in the workspace, whose virtual environment may be active and therefore on the PATH.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

KEPT = frozenset(
    (
        *("HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "COLORTERM"),
        *("TERM_PROGRAM", "TMUX", "STY", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR"),
        *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "EDITOR", "VISUAL"),
        *("VIMINIT", "MYVIMRC", "NVIM_APPNAME", "TERMINFO", "TERMINFO_DIRS"),
    )
)
"""The user's variables that these programs get. They get no other variables, such as keys."""


def find_program(name: str, root: Path, env: Mapping[str, str]) -> str | None:
    """Return the path of a program outside the workspace: an absolute path, on PATH, or beside our Python."""
    if "/" in name:
        return name if name.startswith("/") and os.access(name, os.X_OK) and _is_outside(name, root) else None
    for folder in (*env.get("PATH", "").split(":"), str(Path(sys.executable).parent)):
        found = shutil.which(name, path=folder) if folder.startswith("/") else None
        if found and _is_outside(found, root):
            return found
    return None


def program_environment(root: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for such a program: without keys, and with no workspace folder on the PATH."""
    kept = {name: value for name, value in env.items() if name in KEPT or name.startswith("LC_")}
    folders = env.get("PATH", "").split(":")
    safe = [folder for folder in folders if folder.startswith("/") and _is_outside(folder, root)]
    return {**kept, "PATH": ":".join(safe) or "/usr/local/bin:/usr/bin:/bin"}


def _is_outside(path: str, root: Path) -> bool:
    real_root = os.path.realpath(root)
    written = os.path.normpath(path)
    return not any(
        Path(one).is_relative_to(base)
        for one in (written, os.path.realpath(path))
        for base in (root, real_root)
    )
