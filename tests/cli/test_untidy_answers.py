"""Answers as strong models really write them: each ends done at once, without a repair (A1, A5, A6, A7).

Every row is one run of `duckflow run --mode auto` as a program, with a model server over HTTP.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from fakes import warm
from fakes.model_server import ModelServer
from fakes.plays import asked_for, play
from fakes.rows import every_row

WRITE = {"operation": "file_ops.write_file", "args": {"path": "a.py", "content": "print('hi')\n"}}
WRITE_BLOCK = {"operation": "file_ops.write_file", "args": {"path": "a.py", "content": {"block": "A"}}}
JSON_TEXT = {"DUCKFLOW_LLM__NATIVE_TOOLS": "false"}
REPLY = "The `window` is **there**."


class Case(NamedTuple):
    """The model's decisions in order, the last reply the user reads, and what a.py holds in the end."""

    decisions: tuple[str, ...]
    reply: str = REPLY
    written: str | None = None


def answer(after: str = "", **fields: Any) -> str:
    """A finished Decision with a full report about itself, and what follows the object."""
    report = {
        "rationale": "It is done.",
        "goal_consistency": "yes: as asked",
        "constraint_check": "yes: kept",
    }
    return json.dumps({**report, "next_step": "done", "confidence": 0.9, **fields}) + after


CASES = {
    "a reply in a block": Case(
        (answer(reply={"block": "REPLY"}, after=f"\n<<<block REPLY\n{REPLY}\n>>>block REPLY\n"),)
    ),
    "a reply in a block without its end line": Case(
        (answer(reply={"block": "REPLY"}, actions=[], after=f"\n<<<block REPLY\n{REPLY}"),)
    ),
    "content in a final block without its end line": Case(
        (answer(reply=REPLY, actions=[WRITE_BLOCK], after="\n<<<block A\nprint('hi')\n"),),
        written="print('hi')\n",
    ),
    "a final block without its end line inside a fence": Case(
        ("```json\n" + answer(reply=REPLY, actions=[WRITE_BLOCK], after="\n<<<block A\nprint('hi')\n```"),),
        written="print('hi')\n",
    ),
    "a yes that goes on with a no": Case(
        (
            answer(
                goal_consistency="yes: no loss of marks",
                constraint_check="yes: no new file; no constraint is broken",
                reply=REPLY,
                actions=[WRITE],
            ),
        ),
        written="print('hi')\n",
    ),
    "true and true": Case(
        (answer(goal_consistency=True, constraint_check=True, reply=REPLY, actions=[WRITE]),),
        written="print('hi')\n",
    ),
    "no report about itself": Case(
        (json.dumps({"actions": [WRITE]}), json.dumps({"reply": REPLY})), written="print('hi')\n"
    ),
    "prose and a fence around the object": Case(
        (f"Sure, {{here}} it is:\n\n```json\n{answer(reply=REPLY, actions=[WRITE])}\n```\n\nDone.",),
        written="print('hi')\n",
    ),
    "unknown fields": Case(
        (
            answer(
                reply=REPLY,
                thought="x",
                risks=[],
                actions=[{**WRITE, "type": "write", "id": 1}],
                state_delta={"goal": "g", "mood": "fine"},
            ),
        ),
        written="print('hi')\n",
    ),
    "a block that nothing names is the reply": Case(
        (answer(actions=[WRITE], after=f"\n<<<block SUMMARY\n{REPLY}\n>>>block SUMMARY\n"),),
        written="print('hi')\n",
    ),
    "a block that nothing names beside a reply": Case(
        (answer(reply=REPLY, actions=[WRITE], after="\n<<<block NOTES\nOnly a note.\n>>>block NOTES\n"),),
        written="print('hi')\n",
    ),
    "confidence in a word": Case((answer(reply=REPLY, confidence="high"),)),
    "a reply as a list of lines": Case((answer(reply=["One.", "", "Two."]),), reply="One.\n\nTwo."),
    "a step and a profile that do not exist": Case(
        (answer(reply=REPLY, step="IMPLEMENTATION", task_profile="feature", actions=[WRITE]),),
        written="print('hi')\n",
    ),
}


@every_row(("name", "case"), CASES.items(), ids=CASES.keys())
def test_A6_an_answer_whose_meaning_is_plain_is_done_at_once(folder: Path, name: str, case: Case):
    with ModelServer(play(*case.decisions)) as server:
        done = warm.run(
            [sys.executable, "-m", "duckflow", "run", "Make a.py greet", "--model", "openai:any",
             "--workspace", str(folder), "--mode", "auto", "--json"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8", timeout=110,
            check=False, env={**os.environ, "OPENAI_BASE_URL": f"{server.url}/v1", **JSON_TEXT},
        )  # fmt: skip
        asked = [one for one in server.requests if asked_for(one.body) == "Decision"]
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, events[-1]["outcome"]) == (0, "done"), done.stderr
    assert len(asked) == len(case.decisions)
    assert [event["text"] for event in events if event["type"] == "reply"][-1] == case.reply
    written = folder / "a.py"
    assert (written.read_text() if written.exists() else None) == case.written
