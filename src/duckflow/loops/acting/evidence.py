"""Evidence: results of tools, shown only once, and read again after the file has changed."""

import asyncio
from collections.abc import Iterable

from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.domain.state import AgentState, TranscriptEntry
from duckflow.safety.files.workspace import Workspace
from duckflow.tools.catalogue import ToolResult

RECENT = 12
"""Number of entries for which the model still sees a result."""

_WATCHED, _FAR = 8, 200
"""Number of files that are compared before a decision, and number of entries they are taken from."""


def already_shown(state: AgentState, operation: str, result: ToolResult, text: str) -> str:
    """Return the id of a recent result with the same redacted text, empty if there is none."""
    if result.digest is None:
        return ""
    for entry in reversed(state.transcript[-RECENT:]):
        same = entry.path == result.path and entry.operation == operation and not entry.stale
        if same and entry.evidence_id and entry.text.endswith(f"\n{text}"):
            return entry.evidence_id
    return ""


async def changed_files(state: AgentState, workspace: Workspace) -> tuple[Action, ...]:
    """Return reads of the files that were shown and have other content now."""
    watched = list(_watched(state.transcript))
    if not watched:
        return ()
    return await asyncio.to_thread(_changed, watched, workspace)


def _watched(transcript: tuple[TranscriptEntry, ...]) -> Iterable[TranscriptEntry]:
    """Yield the newest entry of each of the files that the model has seen last."""
    seen: set[str] = set()
    for entry in reversed(transcript[-_FAR:]):
        if entry.path and entry.digest and not entry.stale and entry.path not in seen:
            seen.add(entry.path)
            yield entry
        if len(seen) == _WATCHED:
            return


def _changed(watched: Iterable[TranscriptEntry], workspace: Workspace) -> tuple[Action, ...]:
    return tuple(
        Action(
            operation="file_ops.read_file",
            args={"path": entry.path},
            reasoning="it has changed since it was read",
        )
        for entry in watched
        if entry.path and _digest(workspace, entry.path) not in (entry.digest, None)
    )


def _digest(workspace: Workspace, path: str) -> str | None:
    try:
        return workspace.digest(path)
    except ToolError:
        return None
