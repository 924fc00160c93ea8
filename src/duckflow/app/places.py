"""Files of sessions in the user's state directory."""

from contextlib import closing
from pathlib import Path

from duckflow.config.places import state_dir
from duckflow.config.settings import Settings
from duckflow.llm.local.prompt_states import forget_sessions
from duckflow.safety.files.lock import WorkspaceLock
from duckflow.store.event_log import SqliteEventLog
from duckflow.store.kept_files import KeptFiles

DATABASE = "duckflow.db"
KEPT_FILES = "undo.db"
LOCKS = "locks"
COPIES = "copies"
LIVE = "live"
WINDOWS = "windows.json"


def open_log() -> SqliteEventLog:
    """Open the event log."""
    return SqliteEventLog(state_dir() / DATABASE)


def open_kept_files(settings: Settings) -> KeptFiles:
    """Open the store of file contents from before changes."""
    return KeptFiles(state_dir() / KEPT_FILES, settings.undo.max_mb * 1_000_000)


def holder_of(workspace: str) -> str | None:
    """Return the session that has a folder open in any process, or None."""
    try:
        status = Path(workspace).stat()
    except OSError:
        return None
    return WorkspaceLock(state_dir() / LOCKS, (status.st_dev, status.st_ino)).holder()


def forget_files(session_id: str) -> None:
    """Delete a session's files for undo, and the saved prompt states of all sessions."""
    forget_sessions()
    with closing(KeptFiles(state_dir() / KEPT_FILES, 0)) as kept:
        kept.forget(session_id)
