"""Files as they were before some changes, compared with what they are now."""

from collections.abc import Iterable, Mapping

from duckflow.domain.errors import ToolError
from duckflow.domain.files.changes import FOLDER, ChangeSet, FileChange
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.uncancelled import run_in_thread
from duckflow.store.kept_files import KeptFiles
from duckflow.tools.editing.differences import difference_of


class Differences:
    """Compares the files of a workspace with their content before, as far as that is kept."""

    def __init__(self, workspace: Workspace, kept: KeptFiles) -> None:
        self._workspace = workspace
        self._kept = kept

    async def since(self, made: Iterable[ChangeSet]) -> Mapping[str, str]:
        """The unified difference of each path since the first of these changes; empty for one as it was."""
        first = _first(made)
        return await run_in_thread(lambda: {path: self._difference(change) for path, change in first.items()})

    async def before(self, made: Iterable[ChangeSet], paths: Iterable[str]) -> Mapping[str, str]:
        """What these text files held before the first of these changes, as far as that is kept."""
        first, wanted = _first(made), set(paths)
        found = {path: change.before for path, change in first.items() if path in wanted}
        texts = await run_in_thread(lambda: {path: self._text(word) for path, word in found.items()})
        return {path: text for path, text in texts.items() if text is not None}

    def _text(self, word: str | None) -> str | None:
        data = self._kept.content(word) if word not in (None, FOLDER) else None
        try:
            return data.decode() if data is not None else None
        except UnicodeDecodeError:
            return None

    def _difference(self, change: FileChange) -> str:
        path = change.path
        try:
            now = self._workspace.paths.now(path)
        except ToolError as error:
            return f"{error}\n"
        if (now.word if now else None) == change.before:
            return ""
        before = self._kept.content(change.before) if change.before not in (None, FOLDER) else None
        if change.before not in (None, FOLDER) and before is None:
            return f"--- a/{path}\n+++ b/{path}\n(the content before is not kept any more)\n"
        return difference_of(path, before, now.data if now and now.word != FOLDER else None)


def _first(made: Iterable[ChangeSet]) -> Mapping[str, FileChange]:
    """The first change of each path."""
    first: dict[str, FileChange] = {}
    for change in (change for one in made for change in one.changes):
        first.setdefault(change.path, change)
    return first
