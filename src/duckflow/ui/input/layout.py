"""Layout of the prompt: activity, input line, suggestions, and the status bar."""

from collections.abc import Callable
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.application.current import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, has_completions, vi_navigation_mode
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, VerticalAlign, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.menus import CompletionsMenuControl
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.screen import Screen
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.widgets import SearchToolbar

from duckflow.i18n.catalogue import text
from duckflow.ui.input.prompt_view import Line, PromptView

_MENU_ROWS = 8


def make_layout(
    message: Buffer,
    answer: Buffer,
    question: Callable[[], str | None],
    view: Callable[[], PromptView],
    listed: Callable[[], tuple[Line, ...] | None],
) -> Layout:
    """Return the layout. While a question is open, the answer replaces the message on the input line.

    While the user chooses from a list, its lines replace the status bar.
    """
    asking = Condition(lambda: question() is not None)
    search = SearchToolbar(
        ignore_case=True,
        forward_search_prompt=text("chat.search"),
        backward_search_prompt=text("chat.search"),
    )
    rows = Dimension(min=1, max=_MENU_ROWS)
    menu = Window(CompletionsMenuControl(), height=rows, dont_extend_height=True)
    lines = HSplit(
        [
            _lines(lambda: view().activity),
            ConditionalContainer(_typed(message, lambda: text("chat.prompt"), "prompt", search), ~asking),
            ConditionalContainer(_typed(answer, lambda: question() or "", "question"), asking),
            search,
            ConditionalContainer(menu, has_completions),
            _lines(lambda: view().bar if (rows := listed()) is None else rows),
        ],
        align=VerticalAlign.TOP,
    )
    return Layout(lines, focused_element=message)


def _lines(shown: Callable[[], tuple[Line, ...]]) -> Window:
    def fragments() -> StyleAndTextTuples:
        joined: StyleAndTextTuples = []
        for number, line in enumerate(shown()):
            joined += [("", "\n")] if number else []
            joined += [(f"class:{style}" if style else "", piece) for style, piece in line]
        return joined

    return Window(
        FormattedTextControl(fragments),
        height=lambda: Dimension.exact(len(shown())),
        dont_extend_height=True,
        always_hide_cursor=True,
    )


def _typed(
    buffer: Buffer, prompt: Callable[[], str], style: str, search: SearchToolbar | None = None
) -> Window:

    def prefix(line: int, wrapped: int) -> StyleAndTextTuples:
        if line or wrapped:
            return [("", "  ")]
        return [(f"class:{style}", prompt().replace("> ", ": ") if vi_navigation_mode() else prompt())]

    control = BufferControl(
        buffer,
        input_processors=[AgreedWidths()],
        search_buffer_control=search.control if search else None,
        preview_search=True,
    )
    return Window(
        control,
        height=lambda: Dimension(min=1, max=max(get_app().output.get_size().rows // 2, 1)),
        get_line_prefix=prefix,
        wrap_lines=True,
        dont_extend_height=True,
    )


class ReflowingApplication(Application[None]):
    """Application that erases all its rows after the terminal was resized."""

    def _on_resize(self) -> None:
        drawn = self.renderer.last_rendered_screen
        if drawn is not None:
            self.output.cursor_up(_rows_added(self, drawn))
        super()._on_resize()


def _rows_added(app: Application[Any], drawn: Screen) -> int:
    """Return the number of rows above the cursor that the terminal added when it wrapped lines again."""
    columns = app.output.get_size().columns
    cursor = drawn.get_cursor_position(app.layout.current_window)
    above = 0
    for cells in (drawn.data_buffer[row] for row in range(cursor.y)):
        wide = max((place + cell.width for place, cell in cells.items() if cell.char.strip()), default=0)
        above += max(wide - 1, 0) // columns
    return above + cursor.x // columns


class AgreedWidths(Processor):
    """Draws joined emoji side by side, without skin tones and colour marks. The text itself stays unchanged.

    A family emoji takes two columns in one terminal and six in another, so the cursor could be misplaced.
    """

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Return the line to draw, with the new position of each character."""
        fragments = transformation_input.fragments
        if not any(_undrawn(character) for _, text, *_ in fragments for character in text):
            return Transformation(fragments)
        drawn: StyleAndTextTuples = []
        places: list[int] = []
        for fragment in explode_text_fragments(fragments):
            places.append(len(drawn))
            if not _undrawn(fragment[1]):
                drawn.append(fragment)
        places.append(len(drawn))
        last = len(places) - 1

        def to_display(source: int) -> int:
            return places[source] if source <= last else places[last] + source - last

        def to_source(display: int) -> int:
            return next((source for source in range(last + 1) if places[source] >= display), last)

        return Transformation(drawn, to_display, to_source)


def _undrawn(character: str) -> bool:
    joins = character == "\u200d" or "\ufe00" <= character <= "\ufe0f"
    return joins or "\U0001f3fb" <= character <= "\U0001f3ff"
