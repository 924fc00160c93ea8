"""Trust: nothing of a project acts before the user trusts its folder and the configuration in it (SAFETY 6).

Remembered by the folder's real path and a hash of the configuration, in the user's state directory. What is
trusted is what was shown: whoever changes the file, or moves the folder, is asked about again.
"""

import hashlib
import os
from pathlib import Path
from typing import Literal

from duckflow.config.saved_answers import SavedAnswers
from duckflow.config.toml_files import read_text
from duckflow.domain.frozen import Frozen

PROJECT_FILE = "duckflow.toml"
TRUST_FILE = "trust.json"

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


def trust_state(folder: Path) -> Trust:
    """How the user stands to this folder; UsageError where its configuration can't be read."""
    real = os.path.realpath(folder)
    path = Path(real) / PROJECT_FILE
    content = read_text(path)
    if content is None:
        return Trust(folder=real, path=str(path), status="nothing")
    digest = digest_of_text(content)
    known = _TRUSTED.load().get(real)
    status: TrustStatus = "trusted" if known == digest else "changed" if known else "unknown"
    return Trust(folder=real, path=str(path), status=status, digest=digest, content=content)


def remember_trust(trust: Trust) -> None:
    """From now on the folder is trusted, as long as its configuration is the one in `trust`."""
    _TRUSTED.save({**_TRUSTED.load(), trust.folder: trust.digest})


def digest_of_text(content: str) -> str:
    """What a configuration is known by."""
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
