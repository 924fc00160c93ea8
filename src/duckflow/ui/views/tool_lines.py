"""What an action did, in the user's language: one line, and for a command the end of what it printed.

Tools answer the model, in English. In another language a reader gets what was done and how it ended; the
tool's own words are one key away (Ctrl-O).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, get_args

from duckflow.domain.decision import Action
from duckflow.domain.events import ActionFinished, ActionOutcome
from duckflow.domain.files.effects import EffectsFate
from duckflow.domain.text import cut
from duckflow.i18n.catalogue import current_language, has_text, text
from duckflow.ui.output.escaping import on_one_line

COMMAND = "shell.run"
_WRITES = (COMMAND, "shell.start", "shell.read", "shell.stop")
_USERS_NO = "The user said no"
_RESULT = 160
_TARGET = 100
_TAIL = 3


class ToolLines(NamedTuple):
    """One line about an action; the last lines of its output, and how many are not shown."""

    line: str
    outcome: ActionOutcome
    """As it is marked: a command that ended with an error is no success."""
    output: tuple[str, ...] = ()
    hidden: int = 0


def tool_lines(event: ActionFinished, action: Action | None) -> ToolLines:
    """The lines for an action that ended; `action` is what was asked for, if it is known."""
    said = [line for line in event.text.strip().split("\n") if line.strip()]
    outcome = _outcome(event)
    did = named_action(event.operation, action.args if action else {}, event.path, done=outcome == "ok")
    line = text(f"action.{outcome}", did=did, reason=_reason(event, outcome, said))
    if event.operation in _WRITES and event.outcome == "ok":
        output = _in_our_words(said[1:], event.changed)
        return ToolLines(line, outcome, tuple(output[-_TAIL:]), max(len(output) - _TAIL, 0))
    told = event.outcome == "refused" and event.text.startswith(_USERS_NO)  # as the answer was shown
    hidden = 0 if outcome == "ok" or told else len(said) - (1 if _reason(event, outcome, said) else 0)
    return ToolLines(line, outcome, hidden=hidden)


def _in_our_words(output: list[str], changed: Sequence[str]) -> list[str]:
    """What a command printed, and what became of what it did: models are told that in English."""
    told = output[-1].lstrip("(") if output else ""
    match next((fate for fate in get_args(EffectsFate) if told.startswith(f"{fate}: ")), ""):
        case "":
            return output
        case "It changed" if changed:
            paths = cut(", ".join(map(on_one_line, changed)), _RESULT)
            return [*output[:-1], text("action.changed", paths=paths)]
        case "Thrown away, the workspace is as it was":
            return [*output[:-1], text("action.thrown_away")]
        case _:
            return output[:-1]


def named_action(
    operation: str, args: Mapping[str, object], path: str | None = None, *, done: bool = False
) -> str:
    """An action in words: what is done, and to what."""
    target = cut(on_one_line(_target(args, path)), _TARGET)
    name = operation.replace(".", "_")
    if not has_text(f"did.{name}"):  # of a plugin, or an MCP server
        return f"{on_one_line(operation)} {target}".rstrip()
    return (text(f"did.{name}", target=target) if done else text(f"doing.{name}", target=target)).strip()


def _outcome(event: ActionFinished) -> ActionOutcome:
    failed = event.operation == COMMAND and event.outcome == "ok" and event.exit_code != 0
    return "failed" if failed else event.outcome


def _reason(event: ActionFinished, outcome: ActionOutcome, said: list[str]) -> str:
    if event.operation == COMMAND and event.outcome == "ok":
        if event.exit_code == 0:
            return ""
        code = event.exit_code
        shown = text("action.stopped") if code is None else text("action.exit_code", code=code)
        return text("action.because", reason=shown)
    if outcome == "ok" or not said or current_language() != "en":
        return ""
    return text("action.because", reason=cut(on_one_line(said[0]), _RESULT))


def _target(args: Mapping[str, object], path: str | None) -> str:
    for name in ("command", "pattern", "to"):
        if isinstance(args.get(name), str):
            return str(args[name])
    named = (args[name] for name in ("path", "id", "name", "url", "tool") if args.get(name))
    return path or str(next(named, ""))
