"""Return to an earlier message. No event is deleted: a marker says where the session continues (L8)."""

from collections.abc import Iterable, Sequence

from duckflow.domain.events import Rewound, StoredEvent
from duckflow.domain.frozen import replace
from duckflow.domain.reduce.apply import apply
from duckflow.domain.state import AgentState, new_state


def present(events: Iterable[StoredEvent]) -> Sequence[StoredEvent]:
    """Return the events without those that a rewind has removed from the conversation."""
    kept: list[StoredEvent] = []
    for recorded in events:
        if isinstance(recorded.event, Rewound) and recorded.event.conversation:
            kept = [one for one in kept if one.seq < recorded.event.to]
        kept.append(recorded)
    return kept


def rewind(state: AgentState, marker: StoredEvent, events: Sequence[StoredEvent]) -> AgentState:
    """Return the state after a rewind: the earlier conversation, with the current files and costs."""
    past = new_state(state.session_id)
    upto = marker.event.to if isinstance(marker.event, Rewound) else marker.seq
    for recorded in present(one for one in events if one.seq < marker.seq):
        if recorded.seq < upto:
            past = apply(past, recorded)
    return replace(
        past,
        seq=marker.seq,
        workspace=state.workspace,
        model=state.model,
        mode=state.mode,
        verify=state.verify,
        allowed=state.allowed,
        usage=state.usage,
        change_sets=state.change_sets,
        evidence_count=state.evidence_count,
        vitals_over_time=state.vitals_over_time,
        # Open questions and actions can't continue, because files and copies have changed since.
        queue=(),
        set_aside=(),
        running=None,
        task_running=None,
        approval=None,
        approved=None,
        task_answer=None,
        consultation=None,
        task_list=None if past.background_runs else past.task_list,
    )
