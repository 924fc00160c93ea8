"""The status line below the prompt (M1), and the vitals bar, which appears when it matters (H6)."""

from collections.abc import Sequence
from pathlib import Path

from duckflow.domain.pacing.vitals import VITALS, Vitals, face_of, is_low
from duckflow.domain.session_client import EngineStatus
from duckflow.domain.state import AgentState
from duckflow.i18n.catalogue import text
from duckflow.ui.input.prompt_view import Line
from duckflow.ui.output.escaping import on_one_line
from duckflow.ui.output.text_width import cut_to_width, width_of

_LOW, _MIDDLE = 0.5, 0.7
_JUMP = 0.2
"""Change of a vital from one loop to the next that shows the whole bar while Duckflow works."""
_MINUTE = 60


def bar_lines(
    state: AgentState, status: EngineStatus, columns: int, busy_s: float | None = None
) -> tuple[Line, ...]:
    """Return the status line, with the vitals bar if it matters. `busy_s`: seconds of the current work."""
    room = columns - 1
    if not _shows_vitals(state, status, busy=busy_s is not None):
        faces = "".join(face_of(name, getattr(state.vitals, name)) for name in VITALS)
        return (_status_line(state, status, room, busy_s, faces),)
    vitals, facts = vitals_line(state.vitals, room), _status_line(state, status, room, busy_s)
    if _width(vitals) + 2 + _width(facts) <= room:
        return ([*vitals, ("bar", "  "), *facts],)
    return (_fitted(vitals, room), facts)


def vitals_line(vitals: Vitals, room: int | None, *, named: bool = True) -> Line:
    """Return the vitals with their names. Without room, the names are left out."""
    line: Line = [("bar", "[ Duckflow" if named else "[ 🦆")]
    for name in VITALS:
        value: float = getattr(vitals, name)
        style = "bar.low" if value < _LOW else "bar.middle" if value < _MIDDLE else "bar"
        title = f"{text(f'health.{name}_name')}: " if named else ""
        line += [("bar", f" | {title}"), (style, f"{face_of(name, value)}({value:.2f})")]
    line.append(("bar", " ]"))
    too_long = named and room is not None and _width(line) > room
    return vitals_line(vitals, room, named=False) if too_long else line


def short_model(name: str) -> str:
    """Return a model's name. If it is a path, only the last part is kept."""
    provider, _, rest = name.partition(":")
    local = "/" in rest and provider in ("scripted", "embedded")
    return f"{provider}:{rest.rpartition('/')[2]}" if local else name


def model_title(name: str) -> str:
    """Return a model's name without its provider; that of an embedded model as people write it."""
    provider, _, rest = short_model(name).partition(":")
    words = (
        word.upper() if word[:1].isdecimal() else word[:1].upper() + word[1:] for word in rest.split("-")
    )
    return (" ".join(words) if provider == "embedded" else rest) or provider


def _shows_vitals(state: AgentState, status: EngineStatus, *, busy: bool) -> bool:
    asked = state.consultation
    if status.all_vitals or (asked is not None and asked.kind != "instead"):
        return True
    if any(is_low(name, getattr(state.vitals, name)) for name in VITALS):
        return True
    before, *last = state.vitals_over_time[-2:] or (state.vitals,)
    return busy and any(
        abs(getattr(one, name) - getattr(before, name)) >= _JUMP for one in last for name in VITALS
    )


def _status_line(
    state: AgentState, status: EngineStatus, room: int, busy_s: float | None, faces: str = ""
) -> Line:
    """Return the status line. In a narrow window, the folder is shortened and the branch is left out."""
    folder = on_one_line(state.workspace)
    home = str(Path.home())
    folder = f"~{folder[len(home) :]}" if folder == home or folder.startswith(f"{home}/") else folder
    last = folder.rpartition("/")[2] or folder
    branch = f" ({on_one_line(status.branch)})" if status.branch else ""
    tail = _facts(state, status, busy_s)
    places = [f"{folder}{branch}", f"{last}{branch}", last]
    lines = [_joined(faces, place, tail) for place in places]
    return next((line for line in lines if _width(line) <= room), _fitted(lines[-1], room))


def _joined(faces: str, place: str, tail: Sequence[tuple[str, str]]) -> Line:
    line: Line = [("bar", " ".join(part for part in (faces, place) if part))]
    for style, piece in tail:
        line += [("bar", " · "), (style, piece)]
    return line


def _facts(state: AgentState, status: EngineStatus, busy_s: float | None) -> Line:
    facts: Line = [("bar", model_title(state.model))] if state.model else []
    facts.append(("bar.mode", state.mode))
    if busy_s is not None:
        minutes, seconds = divmod(int(busy_s), _MINUTE)
        key = "status.minutes" if minutes else "status.seconds"
        facts.append(("bar", text(key, minutes=minutes, seconds=seconds)))
        if status.window and state.prompt_tokens:
            facts.append(("bar", f"{min(round(100 * state.prompt_tokens / status.window), 100)} %"))
    if status.sandbox == "none":
        facts.append(("bar.warning", text("status.no_sandbox")))
    return facts


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
