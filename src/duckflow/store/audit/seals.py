"""Seals: authentication codes for each audit entry and for the record of the last one.

Their key is out of reach of tools and sandboxed commands, but not of programs with the user's own rights.
"""

import hmac
import secrets
from pathlib import Path
from typing import Literal, NamedTuple

from duckflow.config.toml_file import save_text
from duckflow.store.database.connections import sibling_file

_BYTES = 32


class SealKey(NamedTuple):
    """Seal key, and the number of the first entry sealed with it. Older entries have no seal."""

    key: bytes
    first: int

    def seal(self, what: Literal["entry", "head"], number: int, hashed: str) -> str:
        """Return the seal of an entry, or of the head file, which records the last entry."""
        text = f"{what}:{number}:{hashed}"
        return hmac.new(self.key, text.encode("utf-8", "surrogatepass"), "sha256").hexdigest()


def key_file(database: Path) -> Path:
    """Return the path of the file with the key, readable by the user only."""
    return sibling_file(database, "-audit-key")


def read_key(database: Path) -> SealKey | None:
    """Return the key; None if the file is missing or invalid."""
    try:
        key, _, first = key_file(database).read_bytes().strip().partition(b" ")
        return SealKey(bytes.fromhex(key.decode("ascii")), int(first)) if len(key) == 2 * _BYTES else None
    except (OSError, ValueError):
        return None


def create_key(database: Path, first: int) -> SealKey:
    """Create the key. No other process may be able to add an entry at that time."""
    made = SealKey(secrets.token_bytes(_BYTES), first)
    key_file(database).unlink(missing_ok=True)
    save_text(key_file(database), f"{made.key.hex()} {made.first}\n")
    return made
