"""Key bindings of the line editor."""

from collections.abc import Callable

from prompt_toolkit.application.current import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, is_searching, vi_mode, vi_navigation_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from duckflow.ui.input.keyboard import Listener


def bindings(listener: Callable[[], Listener], end_question: Callable[[], bool]) -> KeyBindings:
    """Return the key bindings. `end_question` ends the open question, and returns False without one."""
    keys = KeyBindings()
    typing = ~is_searching
    # With vi keys, the first Esc leaves the insert mode; the next one stops the work.
    inserting = vi_mode & ~vi_navigation_mode
    menu_open = Condition(lambda: get_app().current_buffer.complete_state is not None)

    @keys.add("enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        _enter(event.current_buffer)

    @keys.add("escape", "enter", filter=typing & ~vi_mode)
    @keys.add("c-j", filter=typing)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c", filter=typing)
    def _(_event: KeyPressEvent) -> None:
        if not end_question():
            listener().interrupt()

    @keys.add("escape", filter=typing & ~menu_open & ~inserting)
    def _(_event: KeyPressEvent) -> None:
        if not end_question():
            listener().stop()

    @keys.add("escape", filter=typing & menu_open & ~inserting)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.cancel_completion()

    @keys.add("c-d", filter=typing)
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.delete()
        elif not end_question():
            listener().leave()

    @keys.add("s-tab", filter=typing & ~menu_open)
    def _(_event: KeyPressEvent) -> None:
        listener().change_mode()

    @keys.add("c-o", filter=typing)
    def _(_event: KeyPressEvent) -> None:
        listener().expand()

    @keys.add("c-z")
    def _(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    return keys


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
