"""Where a session keeps its things on the user's machine."""

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
    """The event log in the user's state directory."""
    return SqliteEventLog(state_dir() / DATABASE)


def open_kept_files(settings: Settings) -> KeptFiles:
    """What files were before they were changed, in the user's state directory."""
    return KeptFiles(state_dir() / KEPT_FILES, settings.undo.max_mb * 1_000_000)


def holder_of(workspace: str) -> str | None:
    """The session that has a folder open, in whichever process."""
    try:
        status = Path(workspace).stat()
    except OSError:
        return None
    return WorkspaceLock(state_dir() / LOCKS, (status.st_dev, status.st_ino)).holder()


def forget_files(session_id: str) -> None:
    """Drop what was kept of a session for undo, and all that embedded models have read of any session."""
    forget_sessions()
    with closing(KeptFiles(state_dir() / KEPT_FILES, 0)) as kept:
        kept.forget(session_id)
