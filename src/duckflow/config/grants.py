"""Lasting permissions: "always" answers that the user keeps for a folder or everywhere (SAFETY 23).

They are in the user's state folder, which no tool and no project can reach.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from pydantic import ValidationError

from duckflow.config.saved_answers import SavedAnswers
from duckflow.domain.questions.approval import ApprovalScope

GRANTS_FILE = "permissions.json"
_GRANTS = SavedAnswers(GRANTS_FILE)


class Grant(NamedTuple):
    """Kind of action that is allowed without asking, in one folder or (without a folder) everywhere."""

    kind: ApprovalScope
    folder: str
    since: str


class Grants:
    """Lasting permissions that apply to one folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def listed(self) -> Sequence[Grant]:
        """Return all permissions that apply here. Reads the file, so that a revocation acts at once."""
        saved = map(_grant, _GRANTS.load().items())
        return [one for one in saved if one is not None and one.folder in ("", self._folder)]

    def kinds(self) -> tuple[ApprovalScope, ...]:
        """Return the kinds of actions that are allowed."""
        return tuple(one.kind for one in self.listed())

    def cover(self, kind: ApprovalScope) -> bool:
        """Return whether actions of this kind are allowed."""
        return kind in self.kinds()

    def keep(self, kind: ApprovalScope, *, everywhere: bool) -> None:
        """Allow this kind from now on, in this folder or everywhere."""
        name = _name(kind, "" if everywhere else self._folder)
        _GRANTS.save({**_GRANTS.load(), name: datetime.now(UTC).date().isoformat()})

    def revoke(self, kind: ApprovalScope) -> None:
        """Ask again about this kind, here and everywhere."""
        gone = {_name(kind, folder) for folder in ("", self._folder)}
        _GRANTS.save({name: since for name, since in _GRANTS.load().items() if name not in gone})


def _name(kind: ApprovalScope, folder: str) -> str:
    return json.dumps([folder, kind.what, kind.scope], ensure_ascii=False)


def _grant(saved: tuple[str, str]) -> Grant | None:
    try:
        folder, what, scope = json.loads(saved[0])
        return Grant(ApprovalScope(what=what, scope=scope), str(folder), saved[1])
    except (ValueError, TypeError, ValidationError):
        return None
