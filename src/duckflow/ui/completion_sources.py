"""Where suggestions come from: what the engine knows."""

from duckflow.domain.text import cut
from duckflow.ui.completion import Known
from duckflow.ui.engine import Engine
from duckflow.ui.revealing import on_one_line

_TITLE = 50


def known_of(engine: Engine) -> Known:
    """Files, models and sessions, as the engine has them at hand."""

    def sessions() -> list[tuple[str, str]]:
        return [(one.session_id, cut(on_one_line(one.title), _TITLE)) for one in engine.sessions()]

    return Known(files=engine.files, models=engine.models, sessions=sessions)
