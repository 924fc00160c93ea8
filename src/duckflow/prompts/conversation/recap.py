"""Summary of the parts of a conversation that were left out, in the user's language (F3, F8)."""

from collections.abc import Iterable, Sequence

from duckflow.domain.files.changes import changed_files
from duckflow.domain.state import AgentState, Request
from duckflow.domain.text import is_japanese, one_line
from duckflow.llm.tokens import TokenCounter
from duckflow.prompts.conversation.lines import PromptLines
from duckflow.prompts.templates import template

_MET = 0.8
_MOST_FILES = 40
_SAID = 400
_SHRINKS = ("decided", "said", "files")
"""Parts whose older half is dropped, in this order, if the recap is too long. `files` is newest first."""


async def write_recap(
    state: AgentState, lines: PromptLines, counter: TokenCounter, most: int, *, forgotten: bool
) -> str:
    """Return a recap of about `most` tokens; empty if no part has text and no message was `forgotten`."""
    parts = _parts(state, lines)
    text = _text(state, parts)
    for name in _SHRINKS:
        while parts[name] and await counter.count(text) > most:
            half = (len(parts[name]) + 1) // 2
            parts[name] = parts[name][: len(parts[name]) - half] if name == "files" else parts[name][half:]
            text = _text(state, parts)
    if await counter.count(text) > most:
        parts, text = {}, text.partition("\n")[0]
    return text if forgotten or any(parts.values()) else ""


def _parts(state: AgentState, lines: PromptLines) -> dict[str, Sequence[str]]:
    items = state.items
    shown = [one_line(line.message.text, _SAID) for line in lines.said]
    answers = [line.message.text for line in lines.shown if line.message.role == "assistant"]
    decided = [one for one in state.decided if not any(one.removesuffix("…") in text for text in answers)]
    request_id = state.request.request_id if state.request else ""
    return {
        "goal": [items.goal] if items.goal else [],
        "constraints": items.constraints,
        "said": [one for one in state.said if not any(text.startswith(one[:-1]) for text in shown)],
        "decided": list(dict.fromkeys((*items.decision_log, *decided))),
        "files": changed_files(state.change_sets, request_id)[:_MOST_FILES],
        "problems": list(dict.fromkeys((*items.open_questions, *_problems(state.request)))),
    }


def _problems(request: Request | None) -> Iterable[str]:
    if request is None:
        return
    last = {one.command: one for one in request.commands}
    yield from (f"{one.command} (exit code {one.exit_code})" for one in last.values() if one.exit_code)
    yield from (one for one in request.failing if one != "shell.run")
    if request.objective.evaluation:
        yield from (one.requirement for one in request.objective.requirements if one.satisfaction < _MET)


def _text(state: AgentState, parts: dict[str, Sequence[str]]) -> str:
    japanese = is_japanese(state.request.text if state.request else "".join(state.said[-1:]))
    first, *rest = template("recap_ja" if japanese else "recap").splitlines()
    filled = [first]
    for line in rest:
        label, _, name = line.rstrip("}").partition("{")
        if parts.get(name):
            filled.append(label + "; ".join(parts[name]))
    return "\n".join(filled)
