"""Seals: authentication codes for each audit entry and for the record of the last one, made with a key.

The key is in a separate file in the state folder, out of reach of every tool and sandboxed command. An
attacker who changes entries and recomputes the hashes can't make the seals. Seals do not help against an
attacker with the user's own rights, and so the key, or against restoring an older state of all files
together.
"""

import hmac
import os
import secrets
from pathlib import Path
from typing import NamedTuple

from duckflow.config.toml_file import save_text
from duckflow.store.database.opening import sibling_file

_BYTES = 32


class SealKey(NamedTuple):
    """The key, and the number of the first entry sealed with it. Older entries have no seal."""

    key: bytes
    first: int

    def seal_entry(self, number: int, hashed: str) -> str:
        """Return the seal of an entry."""
        return self._seal(f"entry:{number}:{hashed}")

    def seal_head(self, number: int, hashed: str) -> str:
        """Return the seal of the record of the last entry."""
        return self._seal(f"head:{number}:{hashed}")

    def _seal(self, text: str) -> str:
        return hmac.new(self.key, text.encode("utf-8", "surrogatepass"), "sha256").hexdigest()


class KeyFile:
    """The file with the key, readable by the user only."""

    def __init__(self, database: Path) -> None:
        self.path = sibling_file(database, "-audit-key")

    def read(self) -> SealKey | None:
        """Return the key; None if the file is missing or invalid."""
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return None
        with os.fdopen(file, "rb") as opened:
            key, _, first = opened.read(200).strip().partition(b" ")
        try:
            return SealKey(bytes.fromhex(key.decode("ascii")), int(first)) if len(key) == 2 * _BYTES else None
        except ValueError:
            return None

    def read_or_create(self, first: int) -> SealKey:
        """Return the key, creating it if missing; call only while no other process can add an entry."""
        found = self.read()
        if found is not None:
            return found
        made = SealKey(secrets.token_bytes(_BYTES), first)
        self.path.unlink(missing_ok=True)
        save_text(self.path, f"{made.key.hex()} {made.first}\n")
        return made
