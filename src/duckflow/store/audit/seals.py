"""Seals make the audit log more than a checksum: each entry, and the note of the last, is sealed with a key.

The key is in a file of its own in the state folder, which no tool and no sandboxed command can reach. Whoever
changes entries and mends the hashes can't make the seals. It does not help against somebody who has the
user's own rights, and so the key, or who puts back an older state of all the files together.
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
    """The key, and the number of the first entry that was sealed with it. Older ones have no seal."""

    key: bytes
    first: int

    def seal_entry(self, number: int, hashed: str) -> str:
        """The seal of an entry."""
        return self._seal(f"entry:{number}:{hashed}")

    def seal_head(self, number: int, hashed: str) -> str:
        """The seal of the note that says which entry is the last."""
        return self._seal(f"head:{number}:{hashed}")

    def _seal(self, text: str) -> str:
        return hmac.new(self.key, text.encode("utf-8", "surrogatepass"), "sha256").hexdigest()


class KeyFile:
    """The file that has the key, readable by the user alone."""

    def __init__(self, database: Path) -> None:
        self.path = sibling_file(database, "-audit-key")

    def read(self) -> SealKey | None:
        """The key; None if there is none, or the file says nothing that makes sense."""
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
        """The key, made now if there is none; only while nobody else can add an entry."""
        found = self.read()
        if found is not None:
            return found
        made = SealKey(secrets.token_bytes(_BYTES), first)
        self.path.unlink(missing_ok=True)
        save_text(self.path, f"{made.key.hex()} {made.first}\n")
        return made
