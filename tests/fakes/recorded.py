"""A recorded run of a strong model, played again: its answers in order, each to its kind of question.

A recording is a file of JSON Lines: the request, then each answer with what it answers (plain text, or calls
as `{"calls": [{"tool": …, "args": {…}}], "text": …}`).
"""

import json
import re
from collections import defaultdict, deque
from pathlib import Path
from typing import Any

from duckflow.domain.decision import Action
from fakes.engine import CONTENT
from fakes.model_server import Answer, Fault, Reply
from fakes.plays import asked_for

RECORDINGS = Path(__file__).parents[2] / "bench" / "recordings"
_DONE = "All is done and checked."
_EVIDENCE = re.compile(r"\[(e\d+)\]")
_NUMBERED = re.compile(r"\\n(\d+)\. .*?\(priority [123]\)")


class Recording:
    """Answers a model server's questions from a recording. `left` tells what was not asked for again.

    A run that was cut short ends here with a reply, and every verdict that was not recorded is good.
    """

    def __init__(self, file: Path) -> None:
        first, *answers = (json.loads(line) for line in file.read_text("utf-8").splitlines())
        self.request: str = first["request"]
        self.answers: list[tuple[str, str]] = [(one["for"], one["answer"]) for one in answers]
        self.left: dict[str, deque[Answer]] = defaultdict(deque)
        for kind, answer in self.answers:
            self.left[kind].append(answer_of(answer))

    def __call__(self, body: dict[str, Any]) -> Reply:
        kind = asked_for(body)
        if self.left[kind]:
            return self.left[kind].popleft()
        if kind == "SatisfactionEvaluation":
            return Answer(json.dumps(_all_met(body)))
        if kind == "Decision":
            return Answer(_DONE)
        return Answer(json.dumps(CONTENT[kind])) if kind in CONTENT else Fault(418, f"no more {kind}")


def answer_of(said: str) -> Answer:
    """A recorded answer as a server gives it."""
    try:
        read = json.loads(said)
        calls = tuple((one["tool"], json.dumps(one.get("args", {}))) for one in read["calls"])
    except (ValueError, KeyError, TypeError):
        return Answer(said)
    return Answer(read.get("text", ""), calls=calls)


def stand_in_tree(folder: Path, actions: list[Action]) -> None:
    """Files that hold just what these actions look for, so that their edits succeed.

    Each part stands in a string of its own, so a Python file can be read by Python before and after.
    """
    now: dict[str, str] = {}
    base: dict[str, str] = {}
    for action in actions:
        path = str(action.args.get("path", ""))
        if action.operation == "file_ops.write_file":
            now[path] = str(action.args["content"])
        elif action.operation == "file_ops.edit_file":
            for edit in action.args["edits"]:  # pyright: ignore[reportGeneralTypeIssues, reportOptionalIterable]
                found, becomes = str(edit["find"]), str(edit["replace"])  # pyright: ignore
                if found not in now.get(path, ""):
                    part = f"_ = r'''\n{found}\n'''\n" if path.endswith(".py") else f"{found}\n"
                    base[path] = base.get(path, "") + part
                    now[path] = now.get(path, "") + part
                now[path] = now[path].replace(found, becomes, 1)
    for path, text in base.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")


def _all_met(body: dict[str, Any]) -> dict[str, Any]:
    """A verdict that every listed requirement is met, by all evidence there is."""
    asked = json.dumps(body, ensure_ascii=False)
    evidence = list(dict.fromkeys(["reply", *_EVIDENCE.findall(asked)]))
    numbers = sorted({int(one) for one in _NUMBERED.findall(asked)})
    scores = [{"requirement": str(number), "score": 0.95, "evidence": evidence} for number in numbers]
    return {"requirement_scores": scores, "completion_recommendation": True}
