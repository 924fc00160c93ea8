"""Traces: spans with times and without messages; if tracing is off, nothing is imported."""

import json
import subprocess
import sys
from pathlib import Path

from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from duckflow import Session
from duckflow.config.places import state_dir
from duckflow.domain.events import RequestFinished
from duckflow.ui.tracing import SpanWriter, own_tracer
from fakes.engine import action, decision, engine, write_script

READ = decision("I look.", action("read_file", path="gone.txt"))
WRITE = decision("I write it.", action("write_file", path="a.txt", content="secret words\n"))


async def test_a_request_is_a_span_with_its_parts_in_it(folder: Path):
    kept = InMemorySpanExporter()
    async with engine(folder, READ, WRITE, decision("It is there.")) as duck:
        duck.app.session.subscribe(SpanWriter(own_tracer(kept)))
        await duck.app.chat.say("Write secret words")
        lasted = duck.app.log.load(duck.state.session_id)
    spans = kept.get_finished_spans()
    request = next(one for one in spans if one.name == "request")
    assert request.attributes["duckflow.outcome"] == "done"
    parts = [one for one in spans if one.parent is not None]
    assert {one.parent.span_id for one in parts} == {request.context.span_id}
    tools = [(one.name, one.status.is_ok) for one in parts if one.name.startswith("execute_tool")]
    assert tools == [("execute_tool file_ops.read_file", False), ("execute_tool file_ops.write_file", True)]
    calls = [one for one in parts if one.name.startswith("chat ")]
    assert [one.attributes["duckflow.output"] for one in calls].count("Decision") == 3
    assert all(one.attributes["gen_ai.usage.input_tokens"] for one in calls)
    assert all(request.start_time <= one.start_time <= one.end_time <= request.end_time for one in parts)
    ended = next(one.at for one in lasted if isinstance(one.event, RequestFinished))
    assert request.end_time == int(ended.timestamp() * 1_000_000) * 1_000
    assert "secret words" not in "".join(one.to_json() for one in spans)


async def test_the_setting_writes_them_to_a_file(folder: Path):
    script = write_script(folder.parent / "script.jsonl", [decision("Hello.")])
    on = {"tracing.enabled": True}
    async with Session(folder, model=f"scripted:{script}", settings=on) as duck:
        await duck.start("Hello?")
    written = [json.loads(line) for line in (state_dir() / "traces.jsonl").read_text().splitlines()]
    assert "request" in [one["name"] for one in written]


def test_nothing_is_imported_if_it_is_off(folder: Path):
    script = write_script(folder.parent / "script.jsonl", [decision("Hello.")])
    probe = f"""
import asyncio, sys
from duckflow import Session
async def main():
    async with Session({str(folder)!r}, model="scripted:{script}") as duck:
        await duck.start("Hello?")
asyncio.run(main())
print([name for name in ("opentelemetry", "acp", "mcp") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
