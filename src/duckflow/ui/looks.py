"""What stands around the prompt, made of what the engine and the screen know now."""

from duckflow.ui.activity import Activity
from duckflow.ui.engine import Engine
from duckflow.ui.keyboard import Keyboard
from duckflow.ui.status_bar import bar_lines
from duckflow.ui.view import Look, View


def look_of(engine: Engine, activity: Activity, keyboard: Keyboard) -> Look:
    """The look for this conversation."""

    def look(columns: int) -> View:
        state = engine.state
        return View(
            above=activity.lines(state, keyboard.inbox, columns),
            bar=bar_lines(state, engine.around, columns),
        )

    return look
