"""Evidence: what tools returned, kept once, and shown again when the file behind it has changed."""

import asyncio
from collections.abc import Iterable

from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.domain.state import AgentState, TranscriptEntry
from duckflow.safety.files.workspace import Workspace
from duckflow.tools.catalogue import ToolResult

RECENT = 12
"""How many entries back something counts as still before the model's eyes."""

_WATCHED, _FAR = 8, 200
"""How many files are looked at for changes before a decision, and how many entries back."""


def already_shown(state: AgentState, operation: str, result: ToolResult, text: str) -> str:
    """Id of the result that showed the very same text a moment ago; `text` has no secrets any more."""
    if result.digest is None:
        return ""
    for entry in reversed(state.transcript[-RECENT:]):
        same = entry.path == result.path and entry.operation == operation and not entry.stale
        if same and entry.evidence_id and entry.text.endswith(f"\n{text}"):
            return entry.evidence_id
    return ""


async def changed_files(state: AgentState, workspace: Workspace) -> tuple[Action, ...]:
    """A look into each file that was shown and has other content now."""
    watched = list(_watched(state.transcript))
    if not watched:
        return ()
    return await asyncio.to_thread(_changed, watched, workspace)


def _watched(transcript: tuple[TranscriptEntry, ...]) -> Iterable[TranscriptEntry]:
    """The newest entry of each file that is before the model's eyes, a few files at most."""
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
