"""Trust: no file of a project takes effect before the user trusts its folder and files (SAFETY 6).

Trust is stored in the user's state folder, as the folder's real path and a hash of the project's files. After
a change to these files or a move of the folder, the user is asked again.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from duckflow.config.saved_answers import SavedAnswers
from duckflow.config.toml_file import read_text
from duckflow.domain.frozen import Frozen

PROJECT_FILE = "duckflow.toml"
TRUST_FILE = "trust.json"
PROJECT_HOOKS = ".agents/hooks.json"
PROJECT_SERVERS = ".mcp.json"
PROJECT_COMMANDS = (".agents/commands", ".claude/commands")
PROJECT_AGENTS = (".agents/agents", ".claude/agents")
_HOOK_SCRIPTS = ".agents/hooks"
_MOST_FILES, _MOST_FOLDERS = 200, 5

_TRUSTED = SavedAnswers(TRUST_FILE)

TrustStatus = Literal["nothing", "trusted", "unknown", "changed"]
"""Trust in a project's files: there are none, trusted, never trusted, or changed since they were trusted."""


class Trust(Frozen):
    """A folder, its files that affect Duckflow, and whether the user trusts them."""

    folder: str
    path: str
    status: TrustStatus
    digest: str = ""
    content: str = ""
    """All these files as one text, to show to the user before the question."""
    files: Mapping[str, str] = Field(default_factory=dict[str, str])
    """The same files: contents by path."""


def trust_state(folder: Path) -> Trust:
    """Return whether the user trusts this folder. Raise UsageError if its files can't be read."""
    real = os.path.realpath(folder)
    names = acting_files(Path(real))
    files = {name: content for name in names if (content := read_text(Path(real) / name)) is not None}
    path = Path(real) / next(iter(files), PROJECT_FILE)
    if not files:
        return Trust(folder=real, path=str(path), status="nothing")
    # A single configuration file is hashed without a heading, so that trust given earlier stays valid.
    content = "".join(f"[{name}]\n{text}\n" for name, text in files.items())
    content = files[PROJECT_FILE] if [*files] == [PROJECT_FILE] else content
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
    known = _TRUSTED.load().get(real)
    status: TrustStatus = "trusted" if known == digest else "changed" if known else "unknown"
    return Trust(folder=real, path=str(path), status=status, digest=digest, content=content, files=files)


def acting_files(folder: Path) -> list[str]:
    """Return the project's files that affect Duckflow: settings, hooks, servers, commands, agents."""
    alone = [
        name for name in (PROJECT_FILE, PROJECT_HOOKS, PROJECT_SERVERS) if os.path.lexists(folder / name)
    ]
    found = [
        path
        for below in (_HOOK_SCRIPTS, *PROJECT_COMMANDS, *PROJECT_AGENTS)
        for path in files_below(folder, below)
    ]
    return [*alone, *sorted(found)[:_MOST_FILES]]


def files_below(folder: Path, below: str) -> list[str]:
    """Return the files below a subfolder, relative to `folder`. Links to folders are not followed."""
    found: list[str] = []
    for place, folders, names in os.walk(folder / below):
        relative = Path(place).relative_to(folder)
        folders[:] = [] if len(relative.parts) > _MOST_FOLDERS else sorted(folders)
        found += [(relative / name).as_posix() for name in names]
    return found


def remember_trust(trust: Trust) -> None:
    """Store that the user trusts the folder as long as its files are those in `trust`."""
    _TRUSTED.save({**_TRUSTED.load(), trust.folder: trust.digest})
