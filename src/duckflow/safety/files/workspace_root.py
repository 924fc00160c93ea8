"""The folder the work is done in, held open: which paths are in it, and the real place behind each."""

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from duckflow.domain.errors import UsageError
from duckflow.safety.files.atomic import FilePlace
from duckflow.safety.files.boundary import Boundary
from duckflow.safety.files.confined_open import ConfinedFolder, OpenBeneath
from duckflow.safety.files.errors import as_tool_errors
from duckflow.safety.policy.protected import Protection, strongest


class WorkspaceRoot:
    """One root. Paths are relative to it, links never lead out of it."""

    def __init__(self, root: Path, denied: Iterable[Path], opener: OpenBeneath | None) -> None:
        self._boundary = Boundary(root, denied)
        try:
            self._beneath = ConfinedFolder(self._boundary.root, opener)
        except FileNotFoundError as exc:
            raise UsageError("workspace.missing", path=str(root)) from exc
        except NotADirectoryError as exc:
            raise UsageError("workspace.not_a_folder", path=str(root)) from exc
        except OSError as exc:
            raise UsageError("workspace.no_access", path=str(root)) from exc

    @property
    def root(self) -> Path:
        """The real absolute path of the root, as it was at the start."""
        return self._boundary.root

    @property
    def identity(self) -> tuple[int, int]:
        """What the root is, whatever its name: its device and its number there."""
        return self._beneath.identity

    @property
    def denied(self) -> tuple[str, ...]:
        """The absolute paths of folders nobody gets into."""
        return self._boundary.denied

    def relative(self, path: str, *, folder: bool = False) -> str:
        """A path as the model wrote it, relative to the root; ToolError where it can't be one."""
        return self._boundary.relative(path, folder=folder)

    def protection(self, path: str) -> Protection:
        """How a path is protected, as written and as resolved."""
        written = self.relative(path, folder=True)
        with as_tool_errors(written):
            real = self._beneath.resolve(written)
        return strongest(self._boundary.protection(written), self._boundary.protection(real))

    def close(self) -> None:
        """Give the root back."""
        self._beneath.close()

    @contextmanager
    def _place(self, path: str, *, follow: bool, create: bool = False) -> Generator[FilePlace]:
        """The open folder and the real name behind a path; `follow` a link in its last part."""
        written = self.relative(path)
        with as_tool_errors(written):
            above, _, name = written.rpartition("/")
            if follow:
                real = self._beneath.resolve(written)
            else:
                folder = self._beneath.resolve(above or ".")
                real = name if folder == "." else f"{folder}/{name}"
            self._boundary.admit(written, real)
            above, _, name = real.rpartition("/")
            made = self._beneath.missing(above) if create and above else ()
            opened = self._beneath.open_folder(above or ".", create=create)
            try:
                yield FilePlace(opened, name, written, real, made)
            finally:
                os.close(opened)
