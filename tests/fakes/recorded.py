"""A recorded run of a strong model, played again: its answers in order, each to its kind of question.

A recording is a folder of `NNN.new.txt` (the new part of a prompt, whose first line names the kind) and
`NNN.answer.txt` (plain text, or calls as `{"calls": [{"tool": …, "args": {…}}], "text": …}`).
"""

import json
import re
from collections import defaultdict, deque
from pathlib import Path
from typing import Any

from fakes.engine import CONTENT
from fakes.model_server import Answer, Fault, Reply
from fakes.plays import asked_for

_KIND = re.compile(r"\[(\w+);")
_DONE = "All is done and checked."
_REQUEST = re.compile(r"^=== user ===\n(.*?)(?=\n\nFiles here|\n=== )", re.DOTALL | re.MULTILINE)


def request_of(folder: Path) -> str:
    """The user's request."""
    found = _REQUEST.search((folder / "001.new.txt").read_text("utf-8"))
    assert found is not None
    return found[1].strip()


class Recording:
    """Answers a model server's questions from a recording. `left` tells what was not asked for again.

    A run that was cut short ends here with a reply, and what it was not asked then is answered kindly.
    """

    def __init__(self, folder: Path) -> None:
        self.left: dict[str, deque[Answer]] = defaultdict(deque)
        for file in sorted(folder.glob("*.new.txt")):
            kind = _KIND.match(file.read_text("utf-8"))
            assert kind is not None
            answer = file.with_name(file.name.replace(".new.", ".answer.")).read_text("utf-8")
            name = "Decision" if kind[1] == "chat" else kind[1]
            self.left[name].append(answer_of(answer))

    def __call__(self, body: dict[str, Any]) -> Reply:
        kind = asked_for(body)
        if self.left[kind]:
            return self.left[kind].popleft()
        if kind == "SatisfactionEvaluation":
            return Answer(json.dumps(_all_met(body)))
        if kind == "Decision":
            return Answer(_DONE)
        return Answer(json.dumps(CONTENT[kind])) if kind in CONTENT else Fault(418, f"no more {kind}")


def _all_met(body: dict[str, Any]) -> dict[str, Any]:
    """A verdict that every listed requirement is met, by all evidence there is."""
    asked = json.dumps(body, ensure_ascii=False)
    evidence = list(dict.fromkeys(["reply", *re.findall(r"\[(e\d+)\]", asked)]))
    numbers = sorted({int(one) for one in re.findall(r"\\n(\d+)\. .*?\(priority [123]\)", asked)})
    scores = [{"requirement": str(number), "score": 0.95, "evidence": evidence} for number in numbers]
    return {"requirement_scores": scores, "completion_recommendation": True}


def answer_of(said: str) -> Answer:
    """A recorded answer as a server gives it."""
    try:
        read = json.loads(said)
        calls = tuple((one["tool"], json.dumps(one.get("args", {}))) for one in read["calls"])
    except (ValueError, KeyError, TypeError):
        return Answer(said)
    return Answer(read.get("text", ""), calls=calls)
