"""The conversation with the model as state keeps it: it only grows, until the older half goes."""

from collections.abc import Iterable, Mapping

from duckflow.domain.frozen import replace
from duckflow.domain.state import AgentState, TranscriptEntry

TRANSCRIPT_LIMIT = 400_000
"""Characters of conversation kept in state; past it, the older half goes (the event log keeps all)."""

TRANSCRIPT_ENTRIES = 2_000
"""Entries kept, however short: each one that comes copies what is there."""


def remember(state: AgentState, *entries: TranscriptEntry) -> AgentState:
    """The state with these entries at the end of its transcript."""
    transcript = state.transcript + entries
    size = state.transcript_chars + sum(len(entry.text) for entry in entries)
    shown = _shown_files(state.shown_files, entries)
    if size > TRANSCRIPT_LIMIT or len(transcript) > TRANSCRIPT_ENTRIES:
        transcript, size = _newest(transcript, TRANSCRIPT_LIMIT // 2)
        shown = _shown_files({}, transcript)
    return replace(state, transcript=transcript, transcript_chars=size, shown_files=shown)


def tell(state: AgentState, *notes: str) -> AgentState:
    """The state with something said to the model by the program."""
    return remember(state, *(TranscriptEntry(role="user", text=note) for note in notes)) if notes else state


def outdate(state: AgentState, *paths: str) -> tuple[AgentState, tuple[str, ...]]:
    """The state with all that showed these files marked as old, and the ids of those entries (SPEC F5)."""
    old = {one for path in paths for one in state.shown_files.get(path, ())}
    if not old:
        return state, ()
    shown = {path: ids for path, ids in state.shown_files.items() if path not in paths}
    transcript = tuple(
        replace(entry, stale=True) if entry.evidence_id in old else entry for entry in state.transcript
    )
    ids = tuple(entry.evidence_id for entry in transcript if entry.evidence_id and entry.evidence_id in old)
    return replace(state, transcript=transcript, shown_files=shown), ids


def _shown_files(
    before: Mapping[str, tuple[str, ...]], entries: Iterable[TranscriptEntry]
) -> Mapping[str, tuple[str, ...]]:
    """What shows which file, with these entries: kept apart, so that no loop reads the whole transcript."""
    shown = before
    for entry in entries:
        if entry.path and entry.digest and not entry.stale and entry.evidence_id:
            shown = {**shown, entry.path: (*shown.get(entry.path, ()), entry.evidence_id)}
    return shown


def _newest(transcript: tuple[TranscriptEntry, ...], limit: int) -> tuple[tuple[TranscriptEntry, ...], int]:
    """The newest entries within `limit` that are not old versions, and at least the last one."""
    current = tuple(entry for entry in transcript[:-1] if not entry.stale) + transcript[-1:]
    current = current[-TRANSCRIPT_ENTRIES // 2 :]
    size, start = 0, len(current)
    while start > 0 and (start == len(current) or size + len(current[start - 1].text) <= limit):
        start -= 1
        size += len(current[start].text)
    return current[start:], size
