"""Trust: nothing of a project acts before the user trusts its folder and the configuration in it (SAFETY 6).

Remembered by the folder's real path and a hash of the configuration, in the user's state directory. What is
trusted is what was shown: whoever changes the file, or moves the folder, is asked about anew.
"""

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Literal, cast

from duckflow.config.files import read_text
from duckflow.config.places import state_dir
from duckflow.domain.errors import UserError
from duckflow.domain.frozen import Frozen

PROJECT_FILE = "duckflow.toml"
TRUST_FILE = "trust.json"

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
    known = _remembered().get(real)
    status: TrustStatus = "trusted" if known == digest else "changed" if known else "unknown"
    return Trust(folder=real, path=str(path), status=status, digest=digest, content=content)


def remember_trust(trust: Trust) -> None:
    """From now on the folder is trusted, as long as its configuration is the one in `trust`."""
    _write({**_remembered(), trust.folder: trust.digest})


def forget_trust(folder: Path) -> bool:
    """The folder is not trusted any more; False where it was not before."""
    known = _remembered()
    found = known.pop(os.path.realpath(folder), None)
    if found is not None:
        _write(known)
    return found is not None


def digest_of_text(content: str) -> str:
    """What a configuration is known by."""
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def _remembered() -> dict[str, str]:
    """What was trusted; a file that can't be read has nothing in it, so that everything is asked."""
    try:
        found = json.loads((state_dir() / TRUST_FILE).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    pairs = cast("dict[object, object]", found).items()
    return {name: digest for name, digest in pairs if isinstance(name, str) and isinstance(digest, str)}


def _write(known: dict[str, str]) -> None:
    place = state_dir() / TRUST_FILE
    try:
        descriptor, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{TRUST_FILE}-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(known, file, ensure_ascii=False, indent=1, sort_keys=True)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(place)
        except BaseException:
            with suppress(OSError):
                Path(temporary).unlink()
            raise
    except OSError as exc:
        raise UserError("places.cannot_create", path=place, reason=exc.strerror or exc) from exc
