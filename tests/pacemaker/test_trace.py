"""H3, I7: what is kept of a loop, and in what way it got on."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from duckflow.domain.decision import Action, Decision
from duckflow.domain.events import (
    ActionFinished,
    ActionStarted,
    DecisionMade,
    StoredEvent,
    TaskFinished,
    Transition,
    UserMessage,
    VitalsChanged,
)
from duckflow.domain.pacing.limits import TRACES_KEPT, LoopTrace, call_of
from duckflow.domain.reduce.apply import apply
from duckflow.domain.state import new_state
from duckflow.domain.transitions import Step
from duckflow.pacemaker.trace import progressed_lately, trace_loop
from fakes.events import events
from fakes.pacing import edit, fail, loop, read, run, trace_all, write


def gains(*loops) -> list[tuple[str, ...]]:
    return [trace.gains for trace in trace_all(loops)]


def test_I7_new_evidence_is_a_result_that_was_not_there_before():
    assert gains(loop(read("a")), loop(read("a")), loop(read("b")), loop(read("a", "other"))) == [
        ("new_evidence",),
        (),
        ("new_evidence",),
        ("new_evidence",),
    ]


def test_I7_new_content_is_a_change_that_was_not_made_before():
    there, back = edit("a", "x", "y"), edit("a", "y", "x")
    assert gains(loop(there), loop(back), loop(there), loop(back)) == [
        ("new_content",),
        ("new_content",),
        (),
        (),
    ]
    assert gains(loop(write("a", "1")), loop(write("a", "1", changed=False))) == [("new_content",), ()]


def test_I7_the_same_command_after_an_edit_is_new_where_it_says_something_new():
    red, green = run("pytest", "1 failed in 0.2s"), run("pytest", "1 passed in 0.1s")
    assert gains(loop(red), loop(edit("a", "x", "y")), loop(red), loop(edit("a", "y", "z")), loop(green)) == [
        ("new_evidence",),
        ("new_content",),
        (),
        ("new_content",),
        ("new_evidence",),
    ]


def test_I7_a_failure_is_no_evidence_and_a_finished_task_is_progress():
    assert gains(loop(fail(read("a"))), loop(tasks=1)) == [(), ("task_finished",)]
    failed = TaskFinished(list_id="l", task_id="t", operation="x", status="failed", result="")
    assert trace_loop((), [failed]).gains == ()


def test_I7_a_requirement_that_is_better_met_is_progress_without_being_a_gain_of_focus():
    trace = trace_loop((), loop().events(), rose=True)
    assert (trace.gains, trace.progressed) == ((), True)


def test_I7_only_the_last_three_loops_count_as_lately():
    good, idle = LoopTrace(progressed=True), LoopTrace()
    assert progressed_lately((good, idle, idle))
    assert not progressed_lately((good, idle, idle, idle))
    assert not progressed_lately(())


def test_what_the_program_looks_at_after_the_agents_own_change_is_no_disturbance():
    own = [loop(read("a", "1")), loop(edit("a", "1", "2")), loop(read("b"), looks=(read("a", "2"),))]
    assert [trace.disturbed for trace in trace_all(own)] == [False, False, False]
    foreign = [*own, loop(read("c"), looks=(read("a", "3"),))]
    assert trace_all(foreign)[-1].disturbed


def test_a_file_changed_and_read_in_one_list_has_been_seen():
    both = loop(edit("a", "1", "2"), read("a", "2"))
    assert trace_all([both])[-1].unseen == ()
    assert trace_all([both, loop(read("b"), looks=(read("a", "3"),))])[-1].disturbed
    assert trace_all([loop(read("a", "1"), edit("a", "1", "2"))])[-1].unseen == ("a",)


def test_what_the_program_reads_for_a_new_message_is_no_disturbance():
    first = loop(read("b"), looks=(read("a"),), said=True)
    assert (trace_all([first])[-1].fresh, trace_all([first])[-1].disturbed) == (True, False)


def test_what_the_background_does_is_a_disturbance_and_not_the_loops_own_work():
    finished = ActionFinished(
        action_id="b1", operation="file_ops.write_file", outcome="ok", text="", path="x", changed=("x",),
        evidence_id="e1", task_id="t1",
    )  # fmt: skip
    trace = trace_loop((), [*loop(read("a")).events(), finished])
    assert (trace.disturbed, len(trace.acts), trace.changed) == (True, 1, False)


def test_H4_a_refused_action_is_traced_without_a_start_and_is_no_failure():
    action = Action(operation="file_ops.write_file", args={"path": "a", "content": "x"})
    made = DecisionMade(loop=1, decision=Decision(next_step="done", actions=(action,)), exchange=())
    refused = ActionFinished(
        action_id="", operation=action.operation, outcome="refused", text="no", evidence_id="e1"
    )
    trace = trace_loop((), [made, refused])
    assert trace.calls == (call_of(action),)
    assert [(act.failed, act.refused) for act in trace.acts] == [(False, True)]
    assert trace.gains == ()


def test_events_without_a_decision_are_traced_by_what_was_started():
    started = ActionStarted(action_id="a1", action=read("a").action)
    assert trace_loop((), [started]).calls == (call_of(read("a").action),)
    assert trace_loop((), []) == LoopTrace()


def test_a_step_is_the_models_own_and_the_last_decision_counts():
    moved = Transition(start=Step.EXECUTION, end=Step.PLANNING, by="program", reason="an action failed")
    assert not trace_loop((), [*loop().events(), moved]).stepped
    assert trace_loop((), loop(step=True).events()).stepped
    two = [*loop(read("a")).events(), *loop(read("b")).events()]
    assert trace_loop((), two).calls == (call_of(read("b").action),)


def test_traces_are_small_and_their_number_is_bounded():
    now = datetime.now(UTC)
    state = apply(new_state(), StoredEvent(seq=1, at=now, event=UserMessage(request_id="r", text="x")))
    for place in range(TRACES_KEPT + 5):
        trace = trace_loop(state.request.history, loop(write("a", f"{place}" * 100_000)).events())
        seen = VitalsChanged(vitals=state.vitals, cause="loop", trace=trace)
        state = apply(state, StoredEvent(seq=place + 2, at=now, event=seen))
    assert len(state.request.history) == TRACES_KEPT
    assert len(state.request.history[-1].model_dump_json()) < 600
    long = trace_loop((), loop(delta={"plan_brief": ("x" * 10_000,) * 50}).events())
    assert len(long.model_dump_json()) < 1000


@given(st.lists(events, max_size=12))
def test_any_events_at_all_give_a_trace_that_can_be_stored(some):
    trace = trace_loop((), some)
    assert LoopTrace.model_validate_json(trace.model_dump_json()) == trace
