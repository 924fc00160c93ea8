"""The relay in the conversation: the prompt is shown to be copied, and the answer is pasted."""

from duckflow.domain.errors import ProviderError
from duckflow.i18n.catalogue import text
from duckflow.ui.commands.table import read_command
from duckflow.ui.input.keyboard import Keyboard
from duckflow.ui.output.escaping import harmless
from duckflow.ui.output.writer import Writer


class RelayPrompt:
    """Shows prompts and reads answers at the terminal of the conversation."""

    def __init__(self, keyboard: Keyboard, writer: Writer) -> None:
        self._keyboard = keyboard
        self._writer = writer

    async def show(self, prompt: str) -> None:
        """Put the prompt where it can be copied."""
        self._writer.line(text("relay.copy"), "dim")
        self._writer.raw(harmless(prompt))

    async def read(self) -> str:
        """What the person pastes, up to Enter. A command is no answer: it acts now, or after the work."""
        later: list[str] = []
        try:
            while True:
                said = await self._keyboard.answer(text("relay.paste"))
                line = said.strip() if said else ""
                if not said or not line:
                    raise ProviderError("relay.no_answer")
                if read_command(line) is None:
                    return said
                if not self._keyboard.listener.handle_line(line):
                    later.append(line)
        finally:
            for line in later:
                self._keyboard.inbox.put(line)
