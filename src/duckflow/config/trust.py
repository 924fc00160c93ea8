"""Trust: nothing of a project acts before the user trusts its folder and the configuration in it (SAFETY 6).

Remembered by the folder's real path and a hash of the configuration, in the user's state directory. What is
trusted is what was shown: whoever changes the file, or moves the folder, is asked about again.
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
PROJECT_COMMANDS = ".agents/commands"
_HOOK_SCRIPTS = ".agents/hooks"
_MOST_FILES, _MOST_FOLDERS = 200, 5

_TRUSTED = SavedAnswers(TRUST_FILE)

TrustStatus = Literal["nothing", "trusted", "unknown", "changed"]
"""There is nothing to trust; trusted as it is; never trusted; trusted when it was another."""


class Trust(Frozen):
    """A folder, its configuration as it is now, and whether the user trusts that."""

    folder: str
    path: str
    status: TrustStatus
    digest: str = ""
    content: str = ""
    """What would act, word for word, to be shown before the question."""
    files: Mapping[str, str] = Field(default_factory=dict[str, str])
    """The same, by file."""


def trust_state(folder: Path) -> Trust:
    """How the user stands to this folder; UsageError if its configuration can't be read."""
    real = os.path.realpath(folder)
    names = acting_files(Path(real))
    files = {name: content for name in names if (content := read_text(Path(real) / name)) is not None}
    path = Path(real) / next(iter(files), PROJECT_FILE)
    if not files:
        return Trust(folder=real, path=str(path), status="nothing")
    # A configuration alone stands for itself, as it always did.
    content = "".join(f"[{name}]\n{text}\n" for name, text in files.items())
    content = files[PROJECT_FILE] if [*files] == [PROJECT_FILE] else content
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
    known = _TRUSTED.load().get(real)
    status: TrustStatus = "trusted" if known == digest else "changed" if known else "unknown"
    return Trust(folder=real, path=str(path), status=status, digest=digest, content=content, files=files)


def acting_files(folder: Path) -> list[str]:
    """What of a project acts on Duckflow: its configuration, its hooks with their scripts, its commands."""
    alone = [name for name in (PROJECT_FILE, PROJECT_HOOKS) if os.path.lexists(folder / name)]
    found = [path for below in (_HOOK_SCRIPTS, PROJECT_COMMANDS) for path in files_below(folder, below)]
    return [*alone, *sorted(found)[:_MOST_FILES]]


def files_below(folder: Path, below: str) -> list[str]:
    """The files of a folder below another, by their path from that; links to folders are not followed."""
    found: list[str] = []
    for place, folders, names in os.walk(folder / below):
        relative = Path(place).relative_to(folder)
        folders[:] = [] if len(relative.parts) > _MOST_FOLDERS else sorted(folders)
        found += [(relative / name).as_posix() for name in names]
    return found


def remember_trust(trust: Trust) -> None:
    """From now on the folder is trusted, as long as its configuration is the one in `trust`."""
    _TRUSTED.save({**_TRUSTED.load(), trust.folder: trust.digest})
