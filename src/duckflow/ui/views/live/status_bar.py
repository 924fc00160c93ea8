"""The bar at the bottom: how the duck is doing (H6), then mode, model, cost, context and sandbox."""

from duckflow.domain.pacing.vitals import VITALS, Vitals, face_of
from duckflow.domain.session_client import EngineStatus
from duckflow.domain.state import AgentState
from duckflow.i18n.catalogue import text
from duckflow.ui.input.prompt_view import Line
from duckflow.ui.output.text_width import cut_to_width, width_of

_LOW, _MIDDLE = 0.5, 0.7


def bar_lines(state: AgentState, status: EngineStatus, columns: int) -> tuple[Line, ...]:
    """The bar in one line if there is room, else in two; the narrower, the fewer words."""
    vitals = vitals_line(state.vitals, short=False)
    if _width(vitals) > columns - 1:
        vitals = vitals_line(state.vitals, short=True)
    facts = _facts(state, status)
    room = columns - 1
    if _width(vitals) + 2 + _width(facts) <= room:
        return ([*vitals, ("bar", "  "), *facts],)
    return (_fitted(vitals, room), _fitted(facts, room))


def vitals_line(vitals: Vitals, *, short: bool) -> Line:
    """How the duck is doing, the same in every language; `short` leaves out the names."""
    line: Line = [("bar", "[ 🦆" if short else "[ Duckflow")]
    for name in VITALS:
        value: float = getattr(vitals, name)
        style = "bar.low" if value < _LOW else "bar.middle" if value < _MIDDLE else "bar"
        title = "" if short else f"{name.capitalize()}: "  # the same in every language
        line += [("bar", f" | {title}"), (style, f"{face_of(name, value)}({value:.2f})")]
    return [*line, ("bar", " ]")]


def _facts(state: AgentState, status: EngineStatus) -> Line:
    line: Line = [("bar.mode", state.mode)]
    facts = [short_model(state.model), _cost(state), _context(state, status.window)]
    line += [("bar", f" · {fact}") for fact in facts if fact]
    if status.sandbox == "none":
        line.append(("bar.warning", f" · {text('status.no_sandbox')}"))
    elif status.sandbox:
        line.append(("bar", f" · {status.sandbox}"))
    return line


def short_model(name: str) -> str:
    """A model's name without the path of a file."""
    provider, _, rest = name.partition(":")
    return (
        f"{provider}:{rest.rpartition('/')[2]}"
        if "/" in rest and provider in ("scripted", "embedded")
        else name
    )


def _cost(state: AgentState) -> str:
    spent = [tier.cost_usd for tier in state.usage.values() if tier.cost_usd is not None]
    return f"${sum(spent):.2f}" if spent else ""


def _context(state: AgentState, window: int | None) -> str:
    if not window or not state.prompt_tokens:
        return ""
    return text("status.context", percent=min(round(100 * state.prompt_tokens / window), 100))


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
