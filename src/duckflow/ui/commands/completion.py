"""Suggestions while typing: commands, their arguments, and files after an @."""

from collections.abc import Iterable, Iterator, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from duckflow.domain.model import EFFORTS
from duckflow.domain.modes import MODES
from duckflow.domain.session_client import SessionClient
from duckflow.domain.text import cut
from duckflow.i18n.catalogue import text
from duckflow.ui.commands.table import COMMANDS, SLASHES, find_command, listed_commands
from duckflow.ui.output.escaping import on_one_line

_MOST = 50
_TITLE = 50
_TO_KATAKANA = ord("ァ") - ord("ぁ")


class Suggestions(Completer):
    """Suggests completions of the text before the cursor. Reads no files: it runs at every key press."""

    def __init__(self, client: SessionClient) -> None:
        self._client = client

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield completions for the text before the cursor."""
        del complete_event
        before = document.text_before_cursor
        if before.startswith(SLASHES) and "\n" not in before:
            yield from self._command(before[1:])
            return
        word = before[max(before.rfind(" "), before.rfind("\n"), before.rfind("\u3000")) + 1 :]
        at = word.rfind("@")
        if at >= 0:
            for path in _matching(word[at + 1 :], self._client.files()):
                yield Completion(f"@{path}", start_position=at - len(word), display=path)

    def _command(self, typed: str) -> Iterator[Completion]:
        name, space, argument = typed.partition(" ")
        name = name.casefold()
        command = find_command(name)
        if space:
            for choice, meta in self._choices(command.name if command else ""):
                if choice.startswith(argument):
                    yield Completion(choice, -len(argument), display_meta=meta)
            return
        for listed, takes, does in listed_commands(self._client):
            ours = COMMANDS.get(listed)
            if any(_as_kana(one).startswith(_as_kana(name)) for one in (ours.names if ours else (listed,))):
                shown = on_one_line(f"/{listed} {takes}".rstrip())
                yield Completion(f"/{listed}", -len(typed) - 1, display=shown, display_meta=does)

    def _choices(self, command: str) -> list[tuple[str, str]]:
        match command:
            case "mode":
                return [(mode, text(f"status.means.{mode}")) for mode in MODES]
            case "model":
                return [(name, "") for name in self._client.models()]
            case "effort":
                return [(effort, text(f"effort.means.{effort}")) for effort in EFFORTS]
            case "resume":
                earlier = self._client.sessions()
                return [(one.session_id, cut(on_one_line(one.title), _TITLE)) for one in earlier]
            case "diff":
                return [("session", "")]
            case _:
                return []


def _as_kana(name: str) -> str:
    """Return the name with katakana in place of hiragana, which is what is typed first."""
    return "".join(chr(ord(one) + _TO_KATAKANA) if "ぁ" <= one <= "ゖ" else one for one in name)


def _matching(wanted: str, paths: Sequence[str]) -> list[str]:
    low = wanted.casefold()
    ranked: tuple[list[str], ...] = ([], [], [])
    for path in sorted(paths):
        folded, letters = path.casefold(), iter(path.casefold())
        if folded.startswith(low) or folded.rpartition("/")[2].startswith(low):
            ranked[0].append(path)
        elif low in folded:
            ranked[1].append(path)
        elif all(letter in letters for letter in low):
            ranked[2].append(path)
    return [path for found in ranked for path in found][:_MOST]
