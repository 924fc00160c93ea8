"""Answers for a model server by what is asked for: each kind of question has its own script."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from fakes.engine import CONTENT
from fakes.model_server import Answer, Fault, Reply

_OUTPUT = re.compile(r"Output: (\w+)")


def play(*decisions: str, **others: Sequence[Any]) -> Callable[[dict[str, Any]], Reply]:
    """Decisions in order; `SatisfactionEvaluation=[…]` and the like for other questions.

    What no script is given for is answered by a model that is content with everything.
    """
    scripts: dict[str, list[Any]] = {"Decision": list(decisions)}
    scripts |= {output: list(answers) for output, answers in others.items()}

    def answer(body: dict[str, Any]) -> Reply:
        output = asked_for(body)
        if output in scripts:
            return _reply(scripts[output].pop(0)) if scripts[output] else Fault(418, f"no more {output}")
        return _reply(CONTENT[output]) if output in CONTENT else Fault(418, f"no script for {output}")

    return answer


def asked_for(body: dict[str, Any]) -> str:
    """The shape a request wants: a Decision if it offers tools, else by the last line that names one."""
    if body.get("tools"):
        return "Decision"
    return _OUTPUT.findall(json.dumps(body, ensure_ascii=False))[-1]


def _reply(answer: Any) -> Reply:
    if isinstance(answer, str):
        return Answer(answer)
    return Answer(json.dumps(answer, ensure_ascii=False)) if isinstance(answer, dict) else answer
