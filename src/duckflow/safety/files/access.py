"""File access of one action: it makes only approved changes (SAFETY 7) and records them (SAFETY 11, 12)."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from duckflow.domain.errors import ToolError, UserError
from duckflow.domain.files.changes import FileChange
from duckflow.domain.model import Picture
from duckflow.safety.files.atomic import ANY, ChangedMeanwhile, FileContent, FilePlace
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.paths import is_inside
from duckflow.store.kept_files import ChangeOwner, KeptFiles


class Permit(NamedTuple):
    """Paths that the user approved, with the SHA-256 of each file when it was shown (None: no file)."""

    before: Mapping[str, str | None]
    outside: str | None = None
    """Real path of a file outside the workspace that may be read."""
    folders: tuple[str, ...] = ()
    """Build folders that were shown to the user as a whole."""

    def check(self, change: FileChange) -> None:
        """Raise ChangedMeanwhile unless the user approved this change."""
        path = change.path
        if any(is_inside(path, one) for one in self.folders):
            return
        # None: an earlier step of this action already removed the old entry, which had another type.
        if path in self.before and change.before in (self.before[path], None):
            return
        raise ChangedMeanwhile(f"{path}: is not what the user was asked about; nothing was changed.")

    def expected(self, path: str, expected: str | None) -> str | None:
        """Return the digest a file must have now. Raise ChangedMeanwhile if changing it was not approved."""
        if path not in self.before:
            raise ChangedMeanwhile(f"{path}: is not what the user was asked about; nothing was changed.")
        approved = self.before[path]
        if expected not in (ANY, approved):
            raise ChangedMeanwhile(f"{path}: is not as it was when the user was asked; nothing was changed.")
        return approved


class PlannedWrite(NamedTuple):
    """New content of one file, as it was shown to the user."""

    path: str
    before: str | None
    """SHA-256 of the old content that `data` was computed from (None: no file)."""
    data: bytes
    summary: str
    """Text about the change, which the model gets after it is made."""

    @property
    def changes(self) -> bool:
        """True if the file does not have this content already."""
        return hashlib.sha256(self.data).hexdigest() != self.before


class Access:
    """File access of one action. Without a permit, the action may change any file in the workspace."""

    def __init__(
        self,
        workspace: Workspace,
        kept: KeptFiles,
        owner: ChangeOwner,
        permit: Permit | None = None,
        planned: PlannedWrite | None = None,
    ) -> None:
        self.workspace = workspace
        self.owner = owner
        self.planned = planned
        """Content to write, if computed in advance. Written only if the file has not changed since."""
        self._kept = kept
        self._permit = permit
        self._changes: list[FileChange] = []

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """Recorded changes, in order. If the action failed, the last changes may not have been made."""
        return tuple(self._changes)

    @property
    def outside(self) -> str | None:
        """File outside the workspace that may be read, if any."""
        return self._permit.outside if self._permit else None

    def keep_picture(self, name: str, media: str, data: bytes) -> Picture:
        """Store a picture of the action's result. Blocking."""
        return Picture(path=name, media=media, digest=self._kept.keep_picture(self.owner.session_id, data))

    def output(self, evidence_id: str) -> str | None:
        """Return the full output of an earlier action of this session, None if it was not kept."""
        return self._kept.output(self.owner.session_id, evidence_id)

    def write_bytes(
        self, path: str, data: bytes, *, expected: str | None = ANY, mode: int | None = None
    ) -> None:
        """Create or replace a file and its folders. `expected` is the SHA-256 of the current content."""
        self.workspace.write_bytes(
            path, data, expected=self._expect(path, expected), mode=mode, keep=self._keep
        )

    def delete(self, path: str, *, expected: str | None = ANY) -> None:
        """Remove a regular file."""
        self.workspace.delete(path, expected=self._expect(path, expected), keep=self._keep)

    def move(self, path: str, to: str, *, expected: str | None = ANY) -> None:
        """Rename a regular file. Never overwrites an existing file at `to`."""
        expected = self._expect(path, expected)
        self._expect(to, None)
        self.workspace.move(path, to, expected=expected, keep=self._keep)

    def add(self, *seen: FileChange) -> None:
        """Add changes that other code made and recorded for this action."""
        self._changes.extend(seen)

    def record(self, changes: Sequence[FileChange], contents: Mapping[str, bytes]) -> None:
        """Record changes and the contents they replace or remove, in one step before any change is made."""
        if self._permit is not None:
            for change in changes:
                self._permit.check(change)
        self._write_down(changes, contents)

    def _expect(self, path: str, expected: str | None) -> str | None:
        if self._permit is None:
            return expected
        return self._permit.expected(self.workspace.relative(path), expected)

    def _keep(self, place: FilePlace, before: FileContent | None, after: FileContent | None) -> None:
        change = FileChange(
            path=place.real,
            before=before.digest if before else None,
            after=after.digest if after else None,
            mode_before=before.mode if before else None,
            mode_after=after.mode if after else None,
            folders=place.folders,
        )
        self._write_down((change,), {before.digest: before.data} if before else {})

    def _write_down(self, changes: Sequence[FileChange], contents: Mapping[str, bytes]) -> None:
        try:
            self._kept.keep(self.owner, changes, contents)
        except UserError as exc:
            raise ToolError(
                f"{changes[0].path}: what was there could not be kept for undo ({exc}); nothing was changed."
            ) from exc
        self._changes.extend(changes)
