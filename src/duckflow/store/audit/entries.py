"""Entries of the audit log: the fields for each event, and how an entry is written and hashed."""

import hashlib
import json
from collections.abc import Mapping
from typing import NamedTuple

from duckflow.domain import events
from duckflow.domain.events import Event, StoredEvent
from duckflow.domain.questions.approval import Approval

GENESIS = "0" * 64
"""Placeholder for the previous hash in the first entry."""

Fields = dict[str, str | int]


class AuditEntry(NamedTuple):
    """A stored entry: its number, the hashed text, the hash, and the seal."""

    number: int
    body: str
    hash: str
    seal: str = ""
    """Authentication code made with the seal key; empty in entries older than the key."""


def write_entry(number: int, previous: str, fields: Mapping[str, str | int]) -> AuditEntry:
    """Return the entry that follows one with the hash `previous`."""
    content = {
        "n": number,
        "prev": previous,
        **{name: value for name, value in fields.items() if value != ""},
    }
    body = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return AuditEntry(number, body, hash_of(body))


def hash_of(body: str) -> str:
    """Return the SHA-256 of an entry."""
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()


def digest_of(content: str) -> str:
    """Return a digest of content for an entry: enough to recognize the content, not to read it."""
    return hash_of(content)[:32]


def fields_of(recorded: StoredEvent, body: str, asked: Approval | None) -> Fields:
    """Return the fields of an event's entry. `asked` is the question that an answer refers to."""
    event = recorded.event
    common: Fields = {
        "at": recorded.at.isoformat(),
        "seq": recorded.seq,
        "kind": event.type,
        "digest": digest_of(body),
    }
    return {**common, **_details(event, asked)}


def _details(event: Event, asked: Approval | None) -> Fields:
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
            task = event.task_id or ""
            ended: Fields = {"operation": event.operation, "outcome": event.outcome}
            return {**ended, "action": event.action_id, "task": task, "target": digest_of(event.path or "")}
        case events.ApprovalRequested():
            return {**_question(event.approval), "verdict": "asked"}
        case events.ApprovalAnswered():
            return {**(_question(asked) if asked else {}), "verdict": _verdict(event)}
        case events.ConsultationRequested():
            return {"operation": event.kind, "verdict": "asked"}
        case events.ConsultationAnswered():
            return {"verdict": event.answer.choice or "own words"}
        case events.TaskFinished():
            return {"operation": event.operation, "outcome": event.status, "task": event.task_id}
        case events.HookRan():
            return {"operation": event.hook, "outcome": event.outcome, "target": digest_of(event.command)}
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
