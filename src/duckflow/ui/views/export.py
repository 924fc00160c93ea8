"""A session as a document: Markdown to read, JSON to work with."""

import json
from collections.abc import Iterator, Sequence

from duckflow.domain.events import StoredEvent
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import harmless, on_one_line
from duckflow.ui.views.events import Describer, EventDescription


def as_markdown(title: str, events: Sequence[StoredEvent]) -> str:
    """The conversation as it was, with what was done, asked and answered."""
    describe = Describer()
    parts = [f"# {on_one_line(title) or text('session.untitled')}"]
    for recorded in events:
        described = describe(recorded.event)
        if described is not None:
            parts += _parts(described)
    return "\n\n".join(parts) + "\n"


def as_json(title: str, events: Sequence[StoredEvent]) -> str:
    """Everything that happened, in one object."""
    body = [{"seq": one.seq, "at": one.at.isoformat(), **one.event.model_dump(mode="json")} for one in events]
    return json.dumps({"title": title, "events": body}, ensure_ascii=False, indent=2) + "\n"


def _parts(described: EventDescription) -> Iterator[str]:
    said = harmless(described.text).strip("\n")
    if described.difference:
        yield fenced(described.difference, "diff")
    match described.kind:
        case "session":
            yield f"*{said}*"
        case "message":
            yield "\n".join(f"> {line}".rstrip() for line in said.split("\n"))
        case "reply":
            yield said.strip()
        case "question":
            yield fenced(said, "text")
        case _:
            first, *more = said.split("\n")
            yield "\n".join([f"- {first}", *(f"  {line}" for line in more)])
    if described.output:
        yield fenced("\n".join(described.output), "text")


def fenced(content: str, language: str) -> str:
    """In a fence longer than any inside it."""
    fence = "```"
    while fence in content:
        fence += "`"
    return f"{fence}{language}\n{harmless(content).strip()}\n{fence}"
