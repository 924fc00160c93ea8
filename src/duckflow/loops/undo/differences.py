"""Compare files with their content before certain changes."""

from collections.abc import Iterable, Mapping

from duckflow.domain.errors import ToolError
from duckflow.domain.files.changes import FOLDER, ChangeSet, FileChange
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.uncancelled import run_in_thread
from duckflow.store.kept_files import KeptFiles
from duckflow.tools.editing.differences import difference_of


class Differences:
    """Compares files of a workspace with their earlier contents, which are kept for undo."""

    def __init__(self, workspace: Workspace, kept: KeptFiles) -> None:
        self._workspace = workspace
        self._kept = kept

    async def since(self, sets: Iterable[ChangeSet]) -> Mapping[str, str]:
        """Return the unified diff of each path since the first of these changes; empty if it is the same."""
        first = first_changes(sets)
        return await run_in_thread(lambda: {path: self._difference(one) for path, one in first.items()})

    async def before(self, sets: Iterable[ChangeSet], paths: Iterable[str]) -> Mapping[str, str]:
        """Return the text of these files before the first of these changes, if it is kept."""
        first = first_changes(sets)
        found = {path: first[path].before for path in paths if path in first}
        texts = await run_in_thread(lambda: {path: self._text(word) for path, word in found.items()})
        return {path: text for path, text in texts.items() if text is not None}

    def _content(self, word: str | None) -> bytes | None:
        return self._kept.content(word) if word not in (None, FOLDER) else None

    def _text(self, word: str | None) -> str | None:
        try:
            data = self._content(word)
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
        before = self._content(change.before)
        if change.before not in (None, FOLDER) and before is None:
            return f"--- a/{path}\n+++ b/{path}\n(the content before is not kept any more)\n"
        return difference_of(path, before, now.data if now and now.word != FOLDER else None)


def first_changes(sets: Iterable[ChangeSet]) -> Mapping[str, FileChange]:
    """Return the first change of each path."""
    return {change.path: change for one in reversed([*sets]) for change in reversed(one.changes)}
