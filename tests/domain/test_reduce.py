"""apply(state, event): the changes by each event, and bounded growth of the state."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from duckflow.domain.decision import Action, Decision, StateDelta
from duckflow.domain.events import (
    ActionFinished,
    ActionStarted,
    ApprovalAnswered,
    ApprovalRequested,
    DecisionMade,
    ErrorReported,
    Reply,
    RequestFinished,
    SessionStarted,
    StoredEvent,
    Transition,
    TransitionRefused,
    UsageReported,
    UserMessage,
    VitalsChanged,
)
from duckflow.domain.model import ChatMessage, Usage
from duckflow.domain.pacing.limits import LoopTrace
from duckflow.domain.pacing.vitals import Vitals
from duckflow.domain.reduce.apply import STATUS_AFTER, apply
from duckflow.domain.reduce.items import set_items
from duckflow.domain.reduce.transcript import TRANSCRIPT_LIMIT
from duckflow.domain.state import AgentState, Approval, Items, TranscriptEntry
from duckflow.domain.transitions import Status, Step
from fakes.events import EVENT_TYPES, events
from fakes.rows import every_row

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WRITE = Action(operation="file_ops.write_file", args={"path": "a", "content": "x"}, reasoning="")
READ = Action(operation="file_ops.read_file", args={"path": "b"}, reasoning="")
APPROVAL = Approval(approval_id="p1", action=WRITE, intent="i", rationale="r", difference="d", digest="hash")


def after(*happened, state=None):
    state = state or AgentState()
    for event in happened:
        state = apply(state, StoredEvent(seq=state.seq + 1, at=NOW, event=event))
    return state


def said(text, request_id="r1", note=""):
    return UserMessage(request_id=request_id, text=text, note=note)


def decided(*actions, loop=1, exchange=(), **fields):
    decision = Decision(**{"next_step": "continue", "reply": "ok", "actions": actions, **fields})
    return DecisionMade(loop=loop, decision=decision, exchange=exchange)


def finished(action=WRITE, outcome="ok", **fields):
    given = {
        "action_id": "a1",
        "operation": action.operation,
        "text": "result",
        "evidence_id": "e1",
        **fields,
    }
    return ActionFinished(outcome=outcome, **given)


def ended(outcome, request_id="r1"):
    return RequestFinished(request_id=request_id, outcome=outcome, exit_code=0)


@given(st.lists(events, max_size=12))
def test_any_events_in_any_order_give_a_state_and_leave_the_one_before_alone(happened):
    state, before = AgentState(), []
    for seq, event in enumerate(happened, start=1):
        before.append((state, state.model_dump_json()))
        state = apply(state, StoredEvent(seq=seq, at=NOW, event=event))
        assert state.seq == seq
        assert state.transcript_chars == sum(len(entry.text) for entry in state.transcript)
    assert all(old.model_dump_json() == text for old, text in before)


def test_every_kind_of_event_is_in_the_property_tests():
    assert len(EVENT_TYPES) == len({kind.model_fields["type"].default for kind in EVENT_TYPES}) >= 13


def test_a_session_knows_where_it_works_and_with_what():
    state = after(
        SessionStarted(session_id="s", workspace="/w", model="m", model_reason="k", mode="plan", version="1")
    )
    assert (state.session_id, state.workspace, state.model, state.mode) == ("s", "/w", "m", "plan")


def test_a_message_opens_a_request_and_another_with_its_id_goes_on_with_it():
    state = after(said("first"), decided(WRITE, loop=4), ended("pending_user"), said("more"))
    assert (state.request.request_id, state.request.text, state.request.loops) == ("r1", "first", 0)
    assert (state.request.outcome, state.status, state.queue) == (None, Status.IN_PROGRESS, ())
    state = after(said("second", "r2"), state=state)
    assert (state.request.request_id, state.request.text) == ("r2", "second")


def test_the_files_note_goes_to_the_model_with_the_message_and_is_remembered():
    state = after(said("hi", note="Files: a"), said("again"))
    assert [entry.text for entry in state.transcript] == ["hi\n\nFiles: a", "again"]
    assert state.files_note == "Files: a"


def test_a_decision_queues_its_actions_and_keeps_the_model_s_words():
    exchange = (ChatMessage(role="assistant", text="words"), ChatMessage(role="user", text="question"))
    happened = decided(WRITE, READ, exchange=exchange, next_step="done", goal_consistency="no: odd")
    state = after(said("x"), happened)
    assert state.queue == (WRITE, READ)
    assert (state.next_step, state.objection, state.request.loops) == ("done", "no: odd", 1)
    assert state.transcript[1:] == (
        TranscriptEntry(role="assistant", text="words"),
        TranscriptEntry(role="user", text="question"),
    )
    assert after(decided(), state=state).objection is None


def test_A4_actions_leave_the_queue_as_they_start():
    state = after(said("x"), decided(WRITE, READ), ActionStarted(action_id="a1", action=WRITE))
    assert state.queue == (READ,)
    assert (state.running.action_id, state.running.action) == ("a1", WRITE)
    state = after(finished(changed=("a",)), state=state)
    assert (state.running, state.queue, state.status) == (None, (READ,), Status.SUCCESS)
    assert state.request.changed == ("a",)


@every_row("outcome", ["failed", "refused", "unknown"])
def test_A4_a_failed_action_stops_the_rest_and_the_model_is_told_what_did_not_run(outcome):
    state = after(
        said("x"), decided(WRITE, READ, next_step="done"), ActionStarted(action_id="a1", action=WRITE)
    )
    state = after(finished(outcome=outcome, not_run=("file_ops.read_file", "shell.run")), state=state)
    assert (state.queue, state.running, state.status, state.next_step) == ((), None, Status.ERROR, "continue")
    told = state.transcript[-1]
    assert told.text == (
        f"[e1] file_ops.write_file: {outcome}\nresult\nNot run: file_ops.read_file, shell.run"
    )
    assert (told.evidence_id, told.operation, state.evidence_count) == ("e1", "file_ops.write_file", 1)


def test_changed_files_are_listed_once_the_last_change_last():
    state = after(said("x"), finished(changed=("a", "b")), finished(changed=("c", "a")))
    assert state.request.changed == ("b", "c", "a")
    assert after(finished(changed=("a",))).request is None


def test_D4_a_refused_transition_changes_nothing_and_is_told():
    refused = TransitionRefused(start=Step.PLANNING, end=Step.DONE, reason="only the program ends")
    state = after(refused)
    assert state.step == Step.PLANNING
    assert state.transcript[-1].text == "The step stays PLANNING: only the program ends"


def test_a_transition_sets_the_step():
    moved = Transition(start=Step.PLANNING, end=Step.REVIEW, by="model", reason="r")
    assert after(moved).step == Step.REVIEW


class TestApproval:
    asked = (said("x"), decided(WRITE), ApprovalRequested(approval=APPROVAL))

    def test_G1_a_change_waits_for_the_user(self):
        state = after(*self.asked)
        assert state.approval == APPROVAL
        assert state.status == Status.REQUIRES_USER_INPUT
        assert state.queue == (WRITE,)

    def test_G5_a_yes_holds_for_what_was_shown_and_is_used_once(self):
        state = after(*self.asked, ApprovalAnswered(approval_id="p1", yes=True))
        assert (state.approval, state.approved) == (None, "hash")
        assert after(ActionStarted(action_id="a1", action=WRITE), state=state).approved is None

    def test_G1_a_no_approves_nothing(self):
        state = after(*self.asked, ApprovalAnswered(approval_id="p1", yes=False, reason="why"))
        assert (state.approval, state.approved) == (None, None)

    def test_G5_an_answer_to_another_question_is_no_answer(self):
        state = after(*self.asked, ApprovalAnswered(approval_id="p0", yes=True))
        assert (state.approval, state.approved) == (APPROVAL, None)
        assert after(ApprovalAnswered(approval_id="p1", yes=True)).approved is None

    @every_row("request_id", ["r1", "r2"])
    def test_G5_a_message_instead_of_an_answer_voids_the_question(self, request_id):
        state = after(*self.asked, said("do something else", request_id))
        assert (state.approval, state.queue) == (None, ())
        late = after(ApprovalAnswered(approval_id="p1", yes=True), state=state)
        assert late.approved is None

    def test_G5_a_message_voids_a_yes_that_was_not_used_yet(self):
        state = after(*self.asked, ApprovalAnswered(approval_id="p1", yes=True), said("stop"))
        assert state.approved is None


def test_D1_the_status_follows_from_how_a_request_ended():
    for outcome, status in STATUS_AFTER.items():
        state = after(said("x"), decided(WRITE), ended(outcome))
        assert state.status == status
        assert (state.request is None) == (outcome in ("done", "accepted", "not_judged", "stopped"))
        if state.request is not None:
            assert state.request.outcome == outcome


def test_an_end_of_another_request_ends_nothing():
    state = after(said("x"), decided(WRITE))
    assert after(ended("done", "r9"), state=state).request == state.request


def test_K4_usage_adds_up_by_tier_and_an_unknown_price_stays_unknown():
    def used(tier, cost):
        tokens = Usage(input_tokens=2, cached_tokens=1, output_tokens=3)
        return UsageReported(tier=tier, model="m", output="Decision", tokens=tokens, cost_usd=cost)

    state = after(used("fast", None), used("creative", 0.5), used("creative", None), used("creative", 0.25))
    assert (state.usage["fast"].calls, state.usage["fast"].cost_usd) == (1, None)
    assert (state.usage["creative"].calls, state.usage["creative"].cost_usd) == (3, 0.75)
    assert state.usage["creative"].tokens == Usage(input_tokens=6, cached_tokens=3, output_tokens=9)


def test_what_is_only_shown_changes_nothing():
    before = after(said("x"))
    shown = after(ErrorReported(key="k"), state=before)
    assert shown.model_copy(update={"seq": before.seq}) == before


def test_F1_a_request_that_is_done_is_remembered_in_one_line():
    state = AgentState()
    for number in range(7):
        state = after(
            said(f"question {number} " + "長" * 200, request_id=f"r{number}"),
            Reply(text="one\ntwo " + "長" * 200),
            ended("done", request_id=f"r{number}"),
            state=state,
        )
    assert len(state.summaries) == 5
    assert all(len(line) <= 100 for line in state.summaries)
    assert state.summaries[-1].startswith("question 6")
    assert "→ one two" in state.summaries[-1]


def test_the_transcript_is_bounded_and_keeps_the_newest():
    state = AgentState()
    for number in range(30):
        state = after(said(f"{number:02}" + "x" * (TRANSCRIPT_LIMIT // 10)), state=state)
        assert state.transcript_chars <= TRANSCRIPT_LIMIT
        assert state.transcript[-1].text.startswith(f"{number:02}")
    assert len(state.transcript) >= 4


def test_one_huge_message_is_kept_and_everything_before_it_goes():
    state = after(said("old"), said("y" * (TRANSCRIPT_LIMIT + 1)))
    assert [len(entry.text) for entry in state.transcript] == [TRANSCRIPT_LIMIT + 1]
    assert after(said("new"), state=state).transcript[-1].text == "new"


class TestItems:
    def test_E1_each_item_is_cut_to_its_length_and_count(self):
        long, many = "長" * 300, tuple(f"{number}" + "長" * 150 for number in range(200))
        delta = StateDelta(
            goal=long,
            why_now=long,
            last_delta=long,
            constraints=many,
            plan_brief=many,
            open_questions=many,
            context_refs=many,
            decision_log=many,
        )
        items, notes = set_items(Items(), delta)
        assert len(notes) == 8
        for text in (items.goal, items.why_now, items.last_delta):
            assert text == "長" * 199 + "…"
        counts = (items.constraints, items.plan_brief, items.open_questions, items.context_refs)
        assert [len(kept) for kept in counts] == [2, 3, 2, 100]
        assert len(items.decision_log) == 100
        assert all(len(text) == 100 and text.endswith("…") for text in items.constraints + items.plan_brief)

    def test_E2_only_what_the_decision_names_changes(self):
        before = Items(goal="a", constraints=("b",))
        items, notes = set_items(before, StateDelta(why_now="c"))
        assert items == before.model_copy(update={"why_now": "c", "last_delta": "set why_now"})
        assert notes == ()
        assert set_items(before, StateDelta())[0] is before
        assert set_items(before, StateDelta(constraints=()))[0].constraints == ()

    def test_E1_what_was_cut_is_said(self):
        state = after(decided(state_delta={"goal": "長" * 300}))
        assert state.transcript[-1].text.startswith("goal was too long and is now: 長")

    def test_E4_a_conflict_becomes_an_open_question(self):
        broken = after(decided(constraint_check="no: it needs the network"))
        assert broken.items.open_questions == (
            "How can the plan keep the constraints? no: it needs the network",
        )
        plan = {"constraints": ["do not delete tests"], "plan_brief": ["delete tests"]}
        assert after(decided(state_delta=plan)).items.open_questions == (
            "Does “delete tests” break “do not delete tests”?",
        )
        kept = {"constraints": ["only use the standard library"], "plan_brief": ["write parser.py"]}
        assert after(decided(state_delta=kept)).items.open_questions == ()

    def test_E4_a_question_already_answered_is_open_no_longer(self):
        asked = after(decided(state_delta={"open_questions": ["Which port?", "Which host?"]}))
        answered = after(decided(state_delta={"decision_log": ["Which port? 8080"]}), state=asked)
        assert answered.items.open_questions == ("Which host?",)

    def test_E2_a_decision_s_delta_reaches_the_state(self):
        assert after(decided(state_delta={"goal": "g"})).items.goal == "g"

    def test_E3_items_are_what_the_events_say_after_any_restart(self):
        happened = [decided(state_delta={"goal": "g", "plan_brief": ["one", "two"]}), decided()]
        assert after(*happened).items == after(*happened).items
        assert after(*happened).items.plan_brief == ("one", "two")


@every_row(
    ("reply", "told"),
    [
        ("Which port?", False),
        ("Which port? And which host?", True),
        ("どのポートですか？ホストは？", False),
        ("どのポートですか？ ホストは？", True),
        ("Shall I write `a ? b : c`?", False),
        ("Like this?\n```\nx?\ny?\n```", False),
        ("Really??", False),
    ],
)
def test_F6_more_than_one_question_at_once_is_told(reply, told):
    state = after(decided(next_step="pending_user", reply=reply))
    assert (state.transcript[-1:] != () and "several questions" in state.transcript[-1].text) is told


def test_H4_only_a_tool_that_failed_counts_and_only_loops_that_got_on_are_counted_as_such():
    got_on, repeated = LoopTrace(progressed=True), LoopTrace()
    moved = [
        VitalsChanged(vitals=Vitals(), cause="loop", trace=trace) for trace in (got_on, repeated, got_on)
    ]
    no = finished(WRITE, "refused", path="a")
    state = after(said("x"), finished(READ, "failed", path="b"), no, *moved)
    assert (state.request.failing, state.request.progressed) == (("b",), 2)
    resolved = after(finished(READ, path="b"), said("go on"), state=state)
    assert (resolved.request.failing, resolved.request.progressed) == ((), 0)
