"""The tables, as an append-only list of steps. A file records how many steps were applied to it."""

from collections.abc import Sequence

Migrations = Sequence[Sequence[str]]
"""A list of steps, each a list of SQL statements."""

_SESSIONS_AND_EVENTS = (
    """CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        workspace TEXT NOT NULL,
        title TEXT NOT NULL,
        created TEXT NOT NULL,
        updated TEXT NOT NULL,
        events INTEGER NOT NULL,
        outcome TEXT,
        latest INTEGER NOT NULL
    )""",
    "CREATE INDEX sessions_latest ON sessions (latest)",
    """CREATE TABLE events (
        id INTEGER PRIMARY KEY,
        session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        at TEXT NOT NULL,
        type TEXT NOT NULL,
        body TEXT NOT NULL,
        UNIQUE (session_id, seq)
    )""",
)
_OUTCOMES = (
    "ALTER TABLE sessions ADD COLUMN model TEXT NOT NULL DEFAULT ''",
    """CREATE TABLE outcomes (
        session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        request_id TEXT NOT NULL,
        model TEXT NOT NULL,
        profile TEXT,
        outcome TEXT NOT NULL,
        pauses INTEGER NOT NULL,
        loops INTEGER NOT NULL,
        attempts INTEGER NOT NULL,
        satisfaction REAL,
        rating INTEGER,
        PRIMARY KEY (session_id, request_id)
    )""",
)
_AUDIT = (
    "CREATE TABLE audit (number INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL)",
    *(
        f"CREATE TRIGGER audit_no_{change.lower()} BEFORE {change} ON audit "
        "BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END"
        for change in ("UPDATE", "DELETE")
    ),
)
# AUTOINCREMENT: a number that the user has seen is never given to another memory.
_MEMORY = (
    """CREATE TABLE memory (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        text TEXT NOT NULL,
        folded TEXT NOT NULL,
        workspace TEXT NOT NULL,
        kept TEXT NOT NULL,
        touched TEXT NOT NULL,
        used TEXT,
        uses INTEGER NOT NULL DEFAULT 0
    )""",
)
# Older entries have no seal; the key file records the first sealed entry.
_SEALS = ("ALTER TABLE audit ADD COLUMN seal TEXT NOT NULL DEFAULT ''",)
# AUTOINCREMENT: a process that waits for a result never gets the result of another command.
_INBOX = (
    """CREATE TABLE inbox (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        at TEXT NOT NULL,
        body TEXT NOT NULL,
        result TEXT
    )""",
    "CREATE INDEX inbox_waiting ON inbox (session_id) WHERE result IS NULL",
)
MIGRATIONS: Migrations = (_SESSIONS_AND_EVENTS, _OUTCOMES, _AUDIT, _MEMORY, _SEALS, _INBOX)
