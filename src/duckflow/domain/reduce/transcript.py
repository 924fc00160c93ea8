"""The conversation with the model, as kept in state. It grows until its older half is dropped."""

from collections.abc import Iterable, Mapping, Set

from duckflow.domain.frozen import replace
from duckflow.domain.state import AgentState, TranscriptEntry

TRANSCRIPT_LIMIT = 6_000_000
"""Largest number of characters to keep in state, more than the largest context windows hold. Beyond that, the
older half is dropped; the event log keeps everything."""

TRANSCRIPT_ENTRIES = 5_000
"""Largest number of entries to keep, because adding an entry copies the whole list."""

_GONE = "left out, look again if you need it"


def remember(state: AgentState, *entries: TranscriptEntry) -> AgentState:
    """Append entries to the transcript."""
    transcript = state.transcript + entries
    size = state.transcript_chars + sum(len(entry.text) for entry in entries)
    shown = _shown_files(state.shown_files, entries)
    if size > TRANSCRIPT_LIMIT or len(transcript) > TRANSCRIPT_ENTRIES:
        transcript, size = _newest(transcript, TRANSCRIPT_LIMIT // 2)
        shown = _shown_files({}, transcript)
    return replace(state, transcript=transcript, transcript_chars=size, shown_files=shown)


def tell(state: AgentState, *notes: str) -> AgentState:
    """Append messages of the program for the model."""
    return remember(state, *(TranscriptEntry(role="user", text=note) for note in notes)) if notes else state


def outdate(state: AgentState, *paths: str) -> tuple[AgentState, tuple[str, ...]]:
    """Mark all entries that showed these files as stale, and return the ids of these entries (F5)."""
    old = {one for path in paths for one in state.shown_files.get(path, ())}
    return _mark(state, old)


def outdate_plans(state: AgentState) -> AgentState:
    """Mark the results of plan tools as stale, except the newest, which has just changed the plan."""
    found = [one.evidence_id for one in state.transcript if (one.operation or "").startswith("plan_tool.")]
    return _mark(state, {one for one in found[:-1] if one})[0]


def supersede(
    state: AgentState, subject: str, path: str | None, digest: str | None
) -> tuple[AgentState, tuple[str, ...]]:
    """Mark results as stale that a new result replaces. Return their ids if the new result shows a file.

    A result replaces earlier results of the same call, and results that show another version of its file.
    """

    def replaced(entry: TranscriptEntry) -> bool:
        if subject and entry.subject == subject:
            return True
        return bool(path and digest and entry.digest) and entry.path == path and entry.digest != digest

    old = {one.evidence_id for one in state.transcript if not one.stale and replaced(one) and one.evidence_id}
    marked, ids = _mark(state, old)
    return marked, ids if path and digest else ()


def _mark(state: AgentState, old: Set[str]) -> tuple[AgentState, tuple[str, ...]]:
    if not old:
        return state, ()
    transcript = tuple(
        replace(one, stale=True) if one.evidence_id in old else one for one in state.transcript
    )
    kept = ((path, tuple(one for one in ids if one not in old)) for path, ids in state.shown_files.items())
    shown = {path: ids for path, ids in kept if ids}
    ids = tuple(one.evidence_id for one in transcript if one.evidence_id and one.evidence_id in old)
    return replace(state, transcript=transcript, shown_files=shown), ids


def _shown_files(
    before: Mapping[str, tuple[str, ...]], entries: Iterable[TranscriptEntry]
) -> Mapping[str, tuple[str, ...]]:
    """Return the ids of entries that show each file. Kept beside the transcript, so that no loop scans it."""
    shown = before
    for entry in entries:
        if entry.path and entry.digest and not entry.stale and entry.evidence_id:
            shown = {**shown, entry.path: (*shown.get(entry.path, ()), entry.evidence_id)}
    return shown


def _newest(transcript: tuple[TranscriptEntry, ...], limit: int) -> tuple[tuple[TranscriptEntry, ...], int]:
    """Return the newest entries within `limit` characters, at least one. Stale results become notes."""
    current = tuple(_without_old(transcript[:-1])) + transcript[-1:]
    current = current[-TRANSCRIPT_ENTRIES // 2 :]
    size, start = 0, len(current)
    while start > 0 and (start == len(current) or size + len(current[start - 1].text) <= limit):
        start -= 1
        size += len(current[start].text)
    called = {call.id for entry in current[start:] for call in entry.calls}
    kept = tuple(one for one in current[start:] if not one.result_of or one.result_of in called)
    return kept, sum(len(entry.text) for entry in kept)


def _without_old(entries: Iterable[TranscriptEntry]) -> Iterable[TranscriptEntry]:
    for entry in entries:
        if not entry.stale:
            yield entry
        elif entry.result_of:
            yield replace(entry, text=f"{entry.text.partition(chr(10))[0]}: {_GONE}")
