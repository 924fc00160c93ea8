"""Suggestions while typing: commands and what they take, and files after an @."""

from collections.abc import Iterable, Iterator, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from duckflow.domain.model import EFFORTS
from duckflow.domain.modes import MODES
from duckflow.domain.session_client import SessionClient
from duckflow.domain.text import cut
from duckflow.i18n.catalogue import text
from duckflow.ui.commands.table import COMMANDS, SLASHES, Completes, find_command, own_commands
from duckflow.ui.output.escaping import on_one_line

_MOST = 50
_TITLE = 50


class Suggestions(Completer):
    """Looks at what is before the cursor. The client, asked at every key press, has all at hand."""

    def __init__(self, client: SessionClient) -> None:
        self._client = client

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """What could follow."""
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
        if not space:
            for command in COMMANDS.values():
                if any(one.startswith(name.casefold()) for one in (command.name, *command.aliases)):
                    shown = f"/{command.name} {command.takes}".rstrip()
                    meta = text(f"commands.{command.name}")
                    yield Completion(f"/{command.name}", -len(name) - 1, display=shown, display_meta=meta)
            for own in own_commands(self._client.extensions, self._client.servers()):
                if own.name.startswith(name.casefold()) and own.name not in COMMANDS:
                    shown = on_one_line(f"/{own.name} {own.takes}".rstrip())
                    meta = cut(on_one_line(own.description), _TITLE)
                    yield Completion(f"/{own.name}", -len(name) - 1, display=shown, display_meta=meta)
            return
        command = find_command(name.casefold())
        for choice, meta in self._choices(command.completes) if command else ():
            if choice.startswith(argument):
                yield Completion(choice, -len(argument), display_meta=meta)

    def _choices(self, completes: Completes) -> list[tuple[str, str]]:
        match completes:
            case "modes":
                return [(mode, text(f"status.means.{mode}")) for mode in MODES]
            case "models":
                return [(name, "") for name in self._client.models()]
            case "efforts":
                return [(effort, text(f"effort.means.{effort}")) for effort in EFFORTS]
            case "sessions":
                earlier = self._client.sessions()
                return [(one.session_id, cut(on_one_line(one.title), _TITLE)) for one in earlier]
            case "scopes":
                return [("session", "")]
            case "nothing":
                return []


def _matching(wanted: str, paths: Sequence[str]) -> list[str]:
    """Paths whose name or path begins so, then those that hold it, then those with its letters in order."""
    low = wanted.casefold()
    ranked = ((_rank(low, path.casefold()), path) for path in paths)
    return [path for _, path in sorted(one for one in ranked if one[0] < _NO_MATCH)[:_MOST]]


_NO_MATCH = 9


def _rank(wanted: str, path: str) -> int:
    name = path.rpartition("/")[2]
    if name.startswith(wanted) or path.startswith(wanted):
        return 0
    if wanted in path:
        return 1
    letters = iter(path)
    return 2 if all(letter in letters for letter in wanted) else _NO_MATCH
