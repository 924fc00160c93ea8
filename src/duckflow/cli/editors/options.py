"""Choices that an editor offers for a session: model, mode and thinking effort (`configOptions`)."""

from collections.abc import Iterable, Sequence
from typing import Literal

from acp import schema

from duckflow.api import OpenSession
from duckflow.domain.errors import UsageError
from duckflow.domain.model import EFFORTS, EffortChoice
from duckflow.domain.modes import MODES, Mode
from duckflow.i18n.catalogue import text

_Category = Literal["mode", "model", "thought_level"]
SessionOptions = list[schema.SessionConfigOptionSelect | schema.SessionConfigOptionBoolean]


def options_of(session: OpenSession) -> SessionOptions:
    """Return the options of a session with their current values, the most important one first."""
    state = session.state
    return [
        _select("model", "model", state.model, ((name, "") for name in _models(session))),
        _select("mode", "mode", state.mode, ((mode, text(f"status.means.{mode}")) for mode in MODES)),
        _select(
            "effort",
            "thought_level",
            state.effort,
            ((effort, text(f"effort.means.{effort}")) for effort in EFFORTS),
        ),
    ]


def modes_of(session: OpenSession) -> schema.SessionModeState:
    """Return the modes for editors that do not know options."""
    modes = [schema.SessionMode(id=one, name=one, description=text(f"status.means.{one}")) for one in MODES]
    return schema.SessionModeState(current_mode_id=session.state.mode, available_modes=modes)


def find_mode(name: object) -> Mode:
    """Return the mode with this name; UsageError if there is none."""
    mode: Mode | None = next((mode for mode in MODES if mode == name), None)
    if mode is None:
        raise UsageError("mode.unknown", mode=name, modes=", ".join(MODES))
    return mode


def find_effort(name: object) -> EffortChoice:
    """Return the effort with this name; UsageError if there is none."""
    effort: EffortChoice | None = next((effort for effort in EFFORTS if effort == name), None)
    if effort is None:
        raise UsageError("effort.unknown", effort=name, efforts=", ".join(EFFORTS))
    return effort


def _models(session: OpenSession) -> Sequence[str]:
    """Return the models to offer. `relay` needs a terminal, so it is only there if it is in use."""
    return [name for name in session.client.models() if name != "relay" or name == session.state.model]


def _select(
    name: str, category: _Category, current: str, values: Iterable[tuple[str, str]]
) -> schema.SessionConfigOptionSelect:
    return schema.SessionConfigOptionSelect(
        type="select",
        id=name,
        name=text(f"editors.option.{name}"),
        description=text(f"editors.option_means.{name}"),
        category=category,
        current_value=current,
        options=[
            schema.SessionConfigSelectOption(value=value, name=value, description=means or None)
            for value, means in values
        ],
    )
