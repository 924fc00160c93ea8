"""Entries of the audit log: which fields an event gets, and how an entry is written and hashed."""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from duckflow.domain import events
from duckflow.domain.events import Event, StoredEvent
from duckflow.domain.questions.approval import Approval
from duckflow.store.database.rows import known_events

GENESIS = "0" * 64
"""Placeholder for the previous hash in the first entry."""

_WORKSPACE = "SELECT workspace FROM sessions WHERE id = ?"
_ASKED = """SELECT body FROM events WHERE session_id = ? AND type = 'approval_requested'
ORDER BY seq DESC LIMIT 5"""

Fields = dict[str, str | int]


class AuditEntry(NamedTuple):
    """Stored entry: its number, its text, the hash of the text, and the seal."""

    number: int
    body: str
    hash: str
    seal: str = ""
    """Authentication code made with the seal key; empty in entries that are older than the key."""


def write_entry(number: int, previous: str, fields: Mapping[str, str | int]) -> AuditEntry:
    """Return the entry that follows the entry with the hash `previous`."""
    content = {
        "n": number,
        "prev": previous,
        **{name: value for name, value in fields.items() if value != ""},
    }
    body = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return AuditEntry(number, body, hash_of(body))


def hash_of(body: str) -> str:
    """Return the SHA-256 of an entry's text."""
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()


def digest_of(content: str) -> str:
    """Return a short hash of content: enough to recognize the content, but not to read it."""
    return hash_of(content)[:32]


def event_fields(
    connection: sqlite3.Connection, session_id: str, stored: Sequence[StoredEvent], bodies: Sequence[str]
) -> Iterator[Fields]:
    """Yield the entry's fields for each event of a session. `bodies` are the events as stored."""
    row = connection.execute(_WORKSPACE, (session_id,)).fetchone()
    for one, body in zip(stored, bodies, strict=True):
        yield {
            "session": session_id,
            "workspace": row[0] if row else "",
            "at": one.at.isoformat(),
            "seq": one.seq,
            "kind": one.event.type,
            "digest": digest_of(body),
            **_details(one.event),
            **_answer(connection, session_id, stored, one.event),
        }


def _answer(
    connection: sqlite3.Connection, session_id: str, stored: Sequence[StoredEvent], event: Event
) -> Fields:
    """Return the fields about an answer to an approval. The question may be in an earlier event."""
    if not isinstance(event, events.ApprovalAnswered):
        return {}
    earlier = connection.execute(_ASKED, (session_id,)).fetchall()
    for one in (*(one.event for one in stored), *known_events(body for (body,) in earlier)):
        if isinstance(one, events.ApprovalRequested) and one.approval.approval_id == event.approval_id:
            return {**_question(one.approval), "verdict": _verdict(event)}
    return {"verdict": _verdict(event)}


def _details(event: Event) -> Fields:
    match event:
        case events.SessionStarted():
            return {"operation": event.model, "verdict": event.mode}
        case events.ActionStarted():
            return {
                "operation": event.action.operation,
                "action": event.action_id,
                "task": event.task_id or "",
            }
        case events.ActionFinished():
            return {
                "operation": event.operation,
                "outcome": event.outcome,
                "action": event.action_id,
                "task": event.task_id or "",
                "target": digest_of(event.path or ""),
            }
        case events.ApprovalRequested():
            return {**_question(event.approval), "verdict": "asked"}
        case events.ConsultationRequested():
            return {"operation": event.kind, "verdict": "asked"}
        case events.ConsultationAnswered():
            return {"verdict": event.answer.choice or "own words"}
        case events.TaskFinished():
            return {"operation": event.operation, "outcome": event.status, "task": event.task_id}
        case events.PermissionChanged():
            target = digest_of(event.kind.scope)
            return {"operation": event.kind.what, "target": target, "verdict": event.change}
        case events.HookRan():
            return {"operation": event.hook, "outcome": event.outcome, "target": digest_of(event.command)}
        case events.HostContacted():
            return {"operation": f"{event.host}:{event.port}", "outcome": event.outcome}
        case events.TaskReported():
            return {"outcome": event.status}
        case events.RequestFinished():
            return {"outcome": event.outcome}
        case _:
            return {}


def _question(approval: Approval) -> Fields:
    return {
        "operation": approval.action.operation,
        "risk": approval.risk,
        "approval": approval.digest[:32],
        "task": approval.task_id or "",
    }


def _verdict(event: events.ApprovalAnswered) -> str:
    if not event.yes:
        return "refused"
    if event.edited is not None:
        return "edited"
    return "always" if event.allowed is not None else "approved"
