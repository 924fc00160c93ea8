"""The conversation with the model as state keeps it: it only grows, until the older half goes."""

from duckflow.domain.frozen import replace
from duckflow.domain.state import AgentState, TranscriptEntry

TRANSCRIPT_LIMIT = 400_000
"""Characters of conversation kept in state; past it, the older half goes (the event log keeps all)."""


def remember(state: AgentState, *entries: TranscriptEntry) -> AgentState:
    """The state with these entries at the end of its transcript."""
    transcript = state.transcript + entries
    size = state.transcript_chars + sum(len(entry.text) for entry in entries)
    if size > TRANSCRIPT_LIMIT:
        transcript, size = _newest(transcript, TRANSCRIPT_LIMIT // 2)
    return replace(state, transcript=transcript, transcript_chars=size)


def tell(state: AgentState, *notes: str) -> AgentState:
    """The state with something said to the model by the program."""
    return remember(state, *(TranscriptEntry(role="user", text=note) for note in notes)) if notes else state


def outdate(state: AgentState, *paths: str) -> tuple[AgentState, tuple[str, ...]]:
    """The state with all that showed these files marked as old, and the ids of those entries (SPEC F5)."""
    old = {
        entry.evidence_id
        for entry in state.transcript
        if entry.path in paths and entry.digest and not entry.stale and entry.evidence_id
    }
    if not old:
        return state, ()
    transcript = tuple(
        replace(entry, stale=True) if entry.evidence_id in old else entry for entry in state.transcript
    )
    ids = tuple(entry.evidence_id for entry in transcript if entry.evidence_id and entry.evidence_id in old)
    return replace(state, transcript=transcript), ids


def _newest(transcript: tuple[TranscriptEntry, ...], limit: int) -> tuple[tuple[TranscriptEntry, ...], int]:
    """The newest entries within `limit` that are not old versions, and at least the last one."""
    current = tuple(entry for entry in transcript[:-1] if not entry.stale) + transcript[-1:]
    size, start = 0, len(current)
    while start > 0 and (start == len(current) or size + len(current[start - 1].text) <= limit):
        start -= 1
        size += len(current[start].text)
    return current[start:], size
