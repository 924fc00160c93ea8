"""What stands around the prompt, made of what the engine and the screen know now."""

from duckflow.ui.engine import Engine
from duckflow.ui.input.keyboard import Keyboard
from duckflow.ui.views.activity import Activity
from duckflow.ui.views.prompt_view import Look, View
from duckflow.ui.views.status_bar import bar_lines


def look_of(engine: Engine, activity: Activity, keyboard: Keyboard) -> Look:
    """The look for this conversation."""

    def look(columns: int) -> View:
        state = engine.state
        return View(
            above=activity.lines(state, keyboard.inbox, columns),
            bar=bar_lines(state, engine.around, columns),
        )

    return look
