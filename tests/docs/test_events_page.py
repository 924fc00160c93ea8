"""The example lines on the page about events are events."""

import json
import re

from pydantic import TypeAdapter

from duckflow.domain.events import Event, StoredEvent
from duckflow.i18n.catalogue import text
from fakes.rows import every_row
from source_tree import ROOT

PAGE = (ROOT / "docs" / "headless.md").read_text("utf-8")
EXAMPLES = [
    line for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()
]


@every_row("line", EXAMPLES, ids=lambda line: json.loads(line)["type"])
def test_every_example_is_an_event_as_the_program_prints_it(line: str):
    """M3, N."""
    body = json.loads(line)
    place = {name: body.pop(name) for name in ("seq", "at")}
    if body["type"] == "decision":
        body["exchange"] = []
    message = body.pop("message", None)
    event = TypeAdapter(Event).validate_python(body)
    assert StoredEvent.model_validate({**place, "event": event}).seq
    if message is not None:
        assert message == text(body["key"], **body["values"])
