"""Lock that allows one session at a time per workspace. The kernel releases it however the holder ends."""

import fcntl
import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from duckflow.domain.errors import UsageError, UserError
from duckflow.safety.descriptors import closing_fd


class WorkspaceLock:
    """File in the state folder, locked while the session is open. Its text names the session."""

    def __init__(self, folder: Path, identity: tuple[int, int]) -> None:
        self._path = folder / f"{identity[0]:x}-{identity[1]:x}.lock"
        self._held: int | None = None

    def take(self, session_id: str, workspace: str) -> str:
        """Take the lock. Raise UsageError with the session that has it, and since when, if another has it.

        Returns the session that had it last if that was killed, otherwise an empty string.
        """
        opened: int | None = None
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            opened = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            killed = _read(opened)["session"] if os.fstat(opened).st_size else ""
            since = datetime.now(UTC).isoformat(timespec="seconds")
            text = json.dumps({"pid": os.getpid(), "session": session_id, "since": since})
            os.ftruncate(opened, 0)
            os.pwrite(opened, text.encode(), 0)
        except OSError as exc:
            failure = UserError("lock.failed", path=str(self._path), reason=exc.strerror or str(exc))
            if opened is not None:
                if isinstance(exc, BlockingIOError):
                    failure = UsageError("lock.held", folder=workspace, **_read(opened))
                os.close(opened)
            raise failure from exc
        self._held = opened
        return killed

    def holder(self) -> str | None:
        """Return the session that has the workspace open, if any."""
        with suppress(OSError), closing_fd(os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)) as opened:
            said = _read(opened)
            try:
                # If no process has this number, the session has ended and the lock need not be tested.
                os.kill(int(said["pid"]), 0)
                fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return said["session"]
            except ValueError:
                return None
        return None

    def release(self) -> None:
        """Release the lock."""
        held, self._held = self._held, None
        if held is not None:
            os.ftruncate(held, 0)  # a text that stays tells the next session that this one was killed
            os.close(held)


def _read(opened: int) -> dict[str, str]:
    """Return the session in the lock file, or question marks if the file is not fully written yet."""
    try:
        said = json.loads(os.pread(opened, 1000, 0))
        since = datetime.fromisoformat(said["since"]).astimezone().strftime("%Y-%m-%d %H:%M")
        return {"pid": str(said["pid"]), "session": str(said["session"]), "since": since}
    except (ValueError, KeyError, TypeError):
        return {"pid": "?", "session": "?", "since": "?"}
