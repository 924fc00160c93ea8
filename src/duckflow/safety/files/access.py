"""Access: what one action may touch. It reads through the workspace and changes files only through here.

Every change is checked at that moment against what the user said yes to (SAFETY 7), written down with the
content it does away with (SAFETY 11, 12), and listed in `changes`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from duckflow.domain.errors import ToolError, UserError
from duckflow.domain.files.changes import FileChange
from duckflow.safety.files.atomic import ANY, ChangedMeanwhile, FileContent, FilePlace
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.paths import is_inside
from duckflow.store.kept_files import ChangeOwner, KeptFiles


class Permit(NamedTuple):
    """What the user said yes to: files by path, with the SHA-256 each had when shown (None: no file)."""

    before: Mapping[str, str | None]
    outside: str | None = None
    """The real path of a file outside the workspace that may be read."""
    folders: tuple[str, ...] = ()
    """Build folders whose files were shown as a whole."""

    def check(self, change: FileChange) -> None:
        """ChangedMeanwhile unless this change was approved."""
        path = change.path
        if any(is_inside(path, one) for one in self.folders):
            return
        # None: another step took away what was there, to make room for something of another type.
        if path in self.before and change.before in (self.before[path], None):
            return
        raise ChangedMeanwhile(f"{path}: is not what the user was asked about; nothing was changed.")

    def expected(self, path: str, expected: str | None) -> str | None:
        """The digest a file must have now to be changed; ChangedMeanwhile if that was not approved."""
        if path not in self.before:
            raise ChangedMeanwhile(f"{path}: is not what the user was asked about; nothing was changed.")
        approved = self.before[path]
        if expected not in (ANY, approved):
            raise ChangedMeanwhile(f"{path}: is not as it was when the user was asked; nothing was changed.")
        return approved


class Access:
    """One action's way to files. Without a permit, the mode lets it change any file of the workspace."""

    def __init__(
        self, workspace: Workspace, kept: KeptFiles, owner: ChangeOwner, permit: Permit | None = None
    ) -> None:
        self.workspace = workspace
        self.owner = owner
        self._kept = kept
        self._permit = permit
        self._changes: list[FileChange] = []

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """What was written down, in order. If the action failed, the last of it may not have happened."""
        return tuple(self._changes)

    @property
    def outside(self) -> str | None:
        """The file outside the workspace that may be read, if any."""
        return self._permit.outside if self._permit else None

    def output(self, evidence_id: str) -> str | None:
        """All of a result of this session that was shown in part, if it is kept."""
        return self._kept.output(self.owner.session_id, evidence_id)

    def write_bytes(
        self, path: str, data: bytes, *, expected: str | None = ANY, mode: int | None = None
    ) -> None:
        """Replace or make a file, with the folders it needs. `expected`: digest of the content before."""
        self.workspace.write_bytes(
            path, data, expected=self._expect(path, expected), mode=mode, keep=self._keep
        )

    def delete(self, path: str, *, expected: str | None = ANY) -> None:
        """Remove a regular file."""
        self.workspace.delete(path, expected=self._expect(path, expected), keep=self._keep)

    def move(self, path: str, to: str, *, expected: str | None = ANY) -> None:
        """Rename a regular file; what is at `to` is never overwritten."""
        expected = self._expect(path, expected)
        self._expect(to, None)
        self.workspace.move(path, to, expected=expected, keep=self._keep)

    def add(self, *seen: FileChange) -> None:
        """Changes that somebody else made for this action, and wrote down."""
        self._changes.extend(seen)

    def record(self, changes: Sequence[FileChange], contents: Mapping[str, bytes]) -> None:
        """Write down changes that are about to be made, with what they do away with, all at once."""
        if self._permit is not None:
            for change in changes:
                self._permit.check(change)
        self._write_down(changes, contents)

    def _expect(self, path: str, expected: str | None) -> str | None:
        if self._permit is None:
            return expected
        return self._permit.expected(self.workspace.relative(path), expected)

    def _keep(self, place: FilePlace, before: FileContent | None, after: FileContent | None) -> None:
        """Write down one change that is about to be made; ToolError if that can't be done."""
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
