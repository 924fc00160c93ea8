"""Key bindings of the line editor."""

from collections.abc import Callable

from prompt_toolkit.application.current import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, FilterOrBool, is_searching, vi_mode, vi_navigation_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from duckflow.ui.input.keyboard import Listener
from duckflow.ui.input.picker import Picker


def bindings(
    listener: Callable[[], Listener],
    end_question: Callable[[], bool],
    picker: Callable[[], Picker | None],
    paste: Callable[[str], None],
    paste_picture: Callable[[], None],
) -> KeyBindings:
    """Return the key bindings. `end_question` ends the open question, and returns False without one."""
    keys = KeyBindings()
    typing = ~is_searching
    # With vi keys, the first Esc leaves the insert mode; the next one stops the work.
    inserting = vi_mode & ~vi_navigation_mode
    picking = Condition(lambda: picker() is not None)
    menu_open = Condition(lambda: get_app().current_buffer.complete_state is not None)

    actions: tuple[tuple[str, FilterOrBool, Callable[[KeyPressEvent], None]], ...] = (
        ("enter", typing, lambda event: _enter(event.current_buffer)),
        ("c-j", typing, _break_line),
        ("c-c", typing, lambda _: None if end_question() else listener().interrupt()),
        ("escape", typing & ~menu_open & ~inserting, lambda _: None if end_question() else listener().stop()),
        ("escape", typing & menu_open & ~inserting, lambda event: event.current_buffer.cancel_completion()),
        ("s-tab", typing & ~menu_open, lambda _: listener().change_mode()),
        ("c-o", typing, lambda _: listener().expand()),
        ("up", picking, lambda _: _move(picker(), -1)),
        ("c-p", picking, lambda _: _move(picker(), -1)),
        ("down", picking, lambda _: _move(picker(), 1)),
        ("c-n", picking, lambda _: _move(picker(), 1)),
        ("tab", picking, lambda _: _move(picker(), 1)),
        (Keys.BracketedPaste, typing, lambda event: paste(event.data)),
        ("c-v", typing & ~vi_navigation_mode, lambda _: paste_picture()),
        ("c-z", True, lambda event: event.app.suspend_to_background()),
    )
    for key, condition, action in actions:
        keys.add(key, filter=condition)(action)
    keys.add("escape", "enter", filter=typing & ~vi_mode)(_break_line)

    @keys.add("c-d", filter=typing)
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.delete()
        elif not end_question():
            listener().leave()

    return keys


def _move(picker: Picker | None, by: int) -> None:
    if picker is not None:
        picker.move(by)


def _break_line(event: KeyPressEvent) -> None:
    event.current_buffer.insert_text("\n")


def _enter(buffer: Buffer) -> None:
    if buffer.document.text_before_cursor.endswith("\\"):
        buffer.delete_before_cursor()
        buffer.insert_text("\n")
        return
    chosen = buffer.complete_state.current_completion if buffer.complete_state else None
    buffer.complete_state = None
    if chosen is not None and chosen.text.startswith("@"):
        buffer.insert_text(" ")
    else:
        buffer.validate_and_handle()
