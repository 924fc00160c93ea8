"""The status bar at the bottom: vitals (H6), then mode, model, cost, context and sandbox."""

from duckflow.domain.pacing.vitals import VITALS, Vitals, face_of
from duckflow.domain.session_client import EngineStatus
from duckflow.domain.state import AgentState
from duckflow.i18n.catalogue import text
from duckflow.ui.input.prompt_view import Line
from duckflow.ui.output.text_width import cut_to_width, width_of

_LOW, _MIDDLE = 0.5, 0.7


def bar_lines(state: AgentState, status: EngineStatus, columns: int) -> tuple[Line, ...]:
    """Return the status bar as one line if there is room, else as two. A narrow one has fewer words."""
    room = columns - 1
    vitals, facts = vitals_line(state.vitals, room), _facts(state, status)
    if _width(vitals) + 2 + _width(facts) <= room:
        return ([*vitals, ("bar", "  "), *facts],)
    return (_fitted(vitals, room), _fitted(facts, room))


def vitals_line(vitals: Vitals, room: int | None, *, named: bool = True) -> Line:
    """Return the vitals, which look the same in every language. Without room, their names are left out."""
    line: Line = [("bar", "[ Duckflow" if named else "[ 🦆")]
    for name in VITALS:
        value: float = getattr(vitals, name)
        style = "bar.low" if value < _LOW else "bar.middle" if value < _MIDDLE else "bar"
        title = f"{name.capitalize()}: " if named else ""
        line += [("bar", f" | {title}"), (style, f"{face_of(name, value)}({value:.2f})")]
    line.append(("bar", " ]"))
    too_long = named and room is not None and _width(line) > room
    return vitals_line(vitals, room, named=False) if too_long else line


def short_model(name: str) -> str:
    """Return a model's name. If it is a path, only the last part is kept."""
    provider, _, rest = name.partition(":")
    local = "/" in rest and provider in ("scripted", "embedded")
    return f"{provider}:{rest.rpartition('/')[2]}" if local else name


def _facts(state: AgentState, status: EngineStatus) -> Line:
    facts = [short_model(state.model)]
    spent = [tier.cost_usd for tier in state.usage.values() if tier.cost_usd is not None]
    facts += [f"${sum(spent):.2f}"] if spent else []
    if status.window and state.prompt_tokens:
        percent = min(round(100 * state.prompt_tokens / status.window), 100)
        facts.append(text("status.context", percent=percent))
    line: Line = [("bar.mode", state.mode), *(("bar", f" · {fact}") for fact in facts if fact)]
    if status.sandbox:
        none = status.sandbox == "none"
        shown = text("status.no_sandbox") if none else status.sandbox
        line.append(("bar.warning" if none else "bar", f" · {shown}"))
    return line


def _width(line: Line) -> int:
    return sum(width_of(piece) for _, piece in line)


def _fitted(line: Line, room: int) -> Line:
    fitted: Line = []
    for style, piece in line:
        cut = cut_to_width(piece, room - _width(fitted))
        fitted.append((style, cut))
        if cut != piece:
            break
    return fitted
