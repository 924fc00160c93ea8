"""Finding one's own lines again after the window was made narrower.

Most terminals break long lines anew when the window narrows, so the lines around the prompt take more rows
than when they were drawn. Without a count of those the prompt would be drawn below its own remains.
"""

from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.layout.screen import Screen


class ReflowingApplication(Application[None]):
    """An application that goes up over all of its rows before it draws itself anew."""

    def _on_resize(self) -> None:
        drawn = self.renderer.last_rendered_screen
        if drawn is not None:
            self.output.cursor_up(_rows_added(self, drawn))
        super()._on_resize()


def _rows_added(app: Application[Any], drawn: Screen) -> int:
    """How many more rows there are now between the first one drawn and the cursor."""
    columns = app.output.get_size().columns
    cursor = drawn.get_cursor_position(app.layout.current_window)
    above = sum(max(_width(drawn, row) - 1, 0) // columns for row in range(cursor.y))
    return above + cursor.x // columns


def _width(drawn: Screen, row: int) -> int:
    cells = drawn.data_buffer[row]
    return max((place + cell.width for place, cell in cells.items() if cell.char.strip()), default=0)
