"""A session as a document: Markdown to read, JSON to work with."""

import json
from collections.abc import Iterator, Sequence

from duckflow.domain.events import (
    ActionFinished,
    ApprovalAnswered,
    ApprovalRequested,
    ErrorReported,
    Event,
    Recorded,
    Reply,
    SessionStarted,
    TaskReported,
    UserMessage,
)
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import harmless, on_one_line
from duckflow.ui.views.events import action_line, error_line, report_text, start_line


def as_markdown(title: str, events: Sequence[Recorded]) -> str:
    """The conversation as it was, with what was done and allowed."""
    parts = [f"# {on_one_line(title) or text('session.untitled')}"]
    parts += [part for recorded in events for part in _parts(recorded.event)]
    return "\n\n".join(parts) + "\n"


def as_json(title: str, events: Sequence[Recorded]) -> str:
    """Everything that happened, in one object."""
    body = [{"seq": one.seq, "at": one.at.isoformat(), **one.event.model_dump(mode="json")} for one in events]
    return json.dumps({"title": title, "events": body}, ensure_ascii=False, indent=2) + "\n"


def _parts(event: Event) -> Iterator[str]:
    match event:
        case SessionStarted():
            yield f"*{start_line(event)}*"
        case UserMessage():
            yield "\n".join(f"> {line}".rstrip() for line in harmless(event.text).split("\n"))
        case Reply():
            yield harmless(event.text).strip()
        case ActionFinished():
            yield f"- {on_one_line(action_line(event))}"
        case ApprovalRequested():
            yield _fenced(event.approval.difference)
        case ApprovalAnswered():
            key = "approval.yes" if event.yes else "approval.no"
            yield f"- {on_one_line(text(key, reason=event.reason))}"
        case TaskReported():
            yield harmless(report_text(event))
        case ErrorReported():
            yield f"- {error_line(event)}"
        case _:
            pass


def _fenced(difference: str) -> str:
    """In a fence longer than any inside it."""
    fence = "```"
    while fence in difference:
        fence += "`"
    return f"{fence}diff\n{harmless(difference).strip()}\n{fence}"
