"""One request, loop by loop, on a scripted model."""

import asyncio
from pathlib import Path

import pytest

from duckflow.domain.events import (
    ActionFinished,
    ActionStarted,
    ApprovalRequested,
    ConsultationRequested,
    DecisionMade,
    ErrorReported,
    Reply,
    RequestFinished,
    Transition,
    TransitionRefused,
    UsageReported,
)
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.domain.transitions import Status, Step
from fakes.engine import action, decision, engine
from fakes.gate import Gate
from fakes.long_work import run
from fakes.rows import every_row


async def test_a_request_is_worked_on_until_the_model_says_done(folder: Path):
    """A1, A2: one Decision with a list of Actions is all that a model does."""
    write = action("write_file", path="hello.py", content="print('hello')\n")
    async with engine(folder, decision("I write it.", write), decision("It is there.")) as duck:
        assert await duck.app.chat.say("Create hello.py") == "done"
        assert (folder / "hello.py").read_text() == "print('hello')\n"
        assert [reply.text for reply in duck.of(Reply)] == ["I write it.", "It is there."]
        assert [made.loop for made in duck.of(DecisionMade)] == [1, 2]
        ended = duck.events[-1]
        assert (ended.type, ended.outcome, ended.exit_code) == ("request_finished", "done", 0)
        assert (ended.loops, ended.attempts, ended.satisfaction) == (2, 1, 1.0)
        assert duck.state.request is None


async def test_a_question_answered_takes_one_call_and_ends_done(folder: Path):
    """D2: PLANNING to DONE where there is nothing to do."""
    async with engine(folder, decision("Paris.", task_profile="simple_question")) as duck:
        assert await duck.app.chat.say("What is the capital of France?") == "done"
        assert len(duck.of(UsageReported)) == 1
        assert [(t.start, t.end, t.by) for t in duck.of(Transition)] == [
            (Step.PLANNING, Step.DONE, "program")
        ]


async def test_raw_blocks_reach_the_file_as_they_are(folder: Path):
    """A7: content outside the JSON is never mangled."""
    content = 'path = "C:\\\\new"  # \\n stays\n\tprint("こんにちは 👋")\n'
    write = action("write_file", path="a.py", content={"block": "body"})
    answer = f"{decision('', write)}\n<<<block body\n{content}>>>block body\n"
    async with engine(folder, answer, decision("done")) as duck:
        await duck.app.chat.say("write a.py")
    assert (folder / "a.py").read_text("utf-8") == content


async def test_native_tool_calls_are_the_action_list(folder: Path):
    """A8: the calls of one response, in order, through the same door."""
    calls = [
        {"name": "file_ops__write_file", "arguments": '{"path": "a.txt", "content": "one\\n"}'},
        {"name": "file_ops__move_file", "arguments": '{"path": "a.txt", "to": "b.txt"}'},
    ]
    async with engine(
        folder, {"for": "Decision", "text": "Two steps.", "tool_calls": calls}, decision("done")
    ) as duck:
        assert await duck.app.chat.say("go") == "done"
        assert [finished.outcome for finished in duck.of(ActionFinished)] == ["ok", "ok"]
    assert (folder / "b.txt").read_text() == "one\n"


async def test_A4_a_failed_change_stops_later_changes_and_the_model_is_told(folder: Path):
    """Reading actions still run. The model learns which ran, which failed and why, and which did not run."""
    first = decision(
        "",
        action("write_file", path="one.txt", content="1\n"),
        action("edit_file", path="missing.txt", edits=[{"find": "a", "replace": "b"}]),
        action("write_file", path="three.txt", content="3\n"),
        action("read_file", path="one.txt"),
        action("delete_file", path="one.txt"),
    )
    async with engine(folder, first, decision("I see.")) as duck:
        assert await duck.app.chat.say("go") == "done"
        ran, failed, read = duck.of(ActionFinished)
        assert [one.outcome for one in (ran, failed, read)] == ["ok", "failed", "ok"]
        assert failed.not_run == ("file_ops.write_file", "file_ops.delete_file")
        told = "\n".join(entry.text for entry in duck.state.transcript)
        assert "missing.txt" in failed.text
        assert "Not run: file_ops.write_file, file_ops.delete_file" in told
    assert not (folder / "three.txt").exists()


async def test_A4_a_failed_look_stops_nothing_and_is_told_before_the_work_counts_as_done(folder: Path):
    first = decision(
        "All done!",
        action("read_file", path="missing.txt"),
        action("write_file", path="one.txt", content="1\n"),
        next_step="done",
    )
    async with engine(folder, first, decision("It is not there.")) as duck:
        assert await duck.app.chat.say("go") == "done"
        assert [one.outcome for one in duck.of(ActionFinished)] == ["failed", "ok"]
        assert len(duck.of(DecisionMade)) == 2
    assert (folder / "one.txt").exists()


@every_row(
    ("later", "runs"),
    [
        ("git commit -m x", False),
        ("echo x > made.txt", False),
        ("make test; git commit -m x", False),
        ("cat one.txt", True),
        ("make test", True),
    ],
)
async def test_A4_tests_that_fail_hold_back_what_the_answer_would_have_recorded(
    folder: Path, later: str, runs: bool
):
    """The commit that a model sends beside its tests is not made; looks and other tests still run."""
    (folder / "Makefile").write_text("test:\n\texit 1\n")
    first = decision(
        "",
        run("make test"),
        run(later),
        action("write_file", path="three.txt", content="3\n"),
        action("list_files"),
    )
    async with engine(folder, first, decision("I see.")) as duck:
        await duck.app.chat.say("go")
        failed = duck.of(ActionFinished)[0]
        assert (failed.outcome, "shell.run" in failed.not_run) == ("ok", not runs)
        assert "file_ops.write_file" in failed.not_run
        ran = [one.operation for one in duck.of(ActionFinished)[1:3]]
        assert ran[: 1 + runs] == ["shell.run"] * runs + ["file_ops.list_files"]
        told = "\n".join(entry.text for entry in duck.state.transcript)
        assert "Not run: " in told
    assert not (folder / "three.txt").exists()


async def test_a_failed_action_overrules_the_models_done(folder: Path):
    """A4: done with a failed action is not done; the model decides again."""
    first = decision("All done!", action("read_file", path="missing.txt"), next_step="done")
    async with engine(folder, first, decision("It is not there.")) as duck:
        await duck.app.chat.say("read it")
        assert len(duck.of(DecisionMade)) == 2


def doubtful(field: str = "goal_consistency") -> str:
    write = action("write_file", path="a.txt", content="x\n")
    return decision("", action("list_files"), write, **{field: "no: not what was asked"})


@every_row("field", ["goal_consistency", "constraint_check"])
async def test_A5_a_doubt_goes_back_to_the_model_once_and_then_to_the_user(folder: Path, field: str):
    """Nothing that changes anything runs before; what only looks does."""
    answers = (doubtful(field), doubtful(field), decision("ok"))
    async with engine(folder, *answers, mode="auto", attended=True) as duck:
        assert await duck.app.chat.say("go") == "awaiting_approval"
        assert [one.operation for one in duck.of(ActionFinished)] == ["file_ops.list_files"] * 2
        assert any("You had a doubt: no: not what was asked" in one.text for one in duck.state.transcript)
        assert duck.state.approval.rationale == "no: not what was asked"
        assert not (folder / "a.txt").exists()
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "done"
    assert (folder / "a.txt").exists()


async def test_A5_a_model_that_drops_its_doubt_goes_on_unasked(folder: Path):
    write = decision("", action("write_file", path="a.txt", content="x\n"))
    async with engine(folder, doubtful(), write, decision("ok"), mode="auto", attended=True) as duck:
        assert await duck.app.chat.say("go") == "done"
    assert (folder / "a.txt").exists()


async def test_A5_where_no_user_is_there_a_doubt_is_reported_and_the_mode_decides(folder: Path):
    async with engine(folder, doubtful(), doubtful(), decision("ok"), mode="auto") as duck:
        assert await duck.app.chat.say("go") == "done"
        (told,) = [one for one in duck.of(ErrorReported) if one.key == "decision.doubt"]
        assert told.values == {"doubt": "no: not what was asked"}
    assert (folder / "a.txt").exists()


async def test_bad_output_runs_nothing_and_ends_in_a_sentence(folder: Path):
    """A6: the same fault twice ends in an error the user can read, and the session continues."""
    half = '{"next_step": "continue", "actions": [{"operation": "file_ops.write_file", "args": {"path"'
    async with engine(folder, half, "sorry, what?", "pardon?", decision("Here I am.")) as duck:
        assert await duck.app.chat.say("go") == "provider_error"
        assert duck.of(ActionStarted) == []
        (error,) = duck.of(ErrorReported)
        assert error.key == "llm.bad_answer"
        assert duck.of(RequestFinished)[-1].exit_code == 4
        assert await duck.app.chat.say("and now?") == "done"


async def test_an_unknown_operation_is_repaired_once(folder: Path):
    """A6: the repair request carries the exact error."""
    wrong = decision("", {"operation": "file_ops.wirte_file", "args": {"path": "a", "content": "b"}})
    right = decision("", action("write_file", path="a", content="b"), next_step="done")
    async with engine(folder, wrong, right) as duck:
        assert await duck.app.chat.say("go") == "done"
    assert (folder / "a").read_text() == "b"


async def test_a_transition_that_is_not_permitted_is_refused_and_told(folder: Path):
    """D4, D3: state unchanged, recorded with its reason, told to the model; the actions still run."""
    jump = decision("", action("write_file", path="a", content="b"), step="EXECUTION", next_step="continue")
    back = decision("", action("read_file", path="a"), step="PLANNING", next_step="continue")
    ends = decision("", action("read_file", path="a"), step="DONE", next_step="continue")
    async with engine(folder, jump, back, ends, decision("ok")) as duck:
        assert await duck.app.chat.say("go") == "done"
        assert [(r.start, r.end) for r in duck.of(TransitionRefused)] == [
            (Step.EXECUTION, Step.PLANNING),
            (Step.EXECUTION, Step.DONE),
        ]
        assert len(duck.of(ActionFinished)) == 3
        assert any("The step stays EXECUTION" in entry.text for entry in duck.state.transcript)


async def test_done_after_a_change_goes_through_review(folder: Path):
    """D2, D3: the program's own walk to DONE, and PLANNING again with a new request."""
    write = decision("", action("write_file", path="a", content="b"), step="EXECUTION", next_step="done")
    async with engine(folder, write, decision("hi")) as duck:
        await duck.app.chat.say("go")
        await duck.app.chat.say("hello")
        walked = [(t.start, t.end) for t in duck.of(Transition)]
        assert walked == [
            (Step.PLANNING, Step.EXECUTION),
            (Step.EXECUTION, Step.REVIEW),
            (Step.REVIEW, Step.DONE),
            (Step.DONE, Step.PLANNING),
            (Step.PLANNING, Step.DONE),
        ]


async def test_status_follows_from_what_happened(folder: Path):
    """D1: set by the program."""
    failing = decision("", action("read_file", path="missing"))
    asking = decision("Which one?", next_step="pending_user")
    async with engine(folder, failing, asking) as duck:
        seen: list[Status] = []
        duck.app.session.subscribe(lambda _: seen.append(duck.state.status))
        assert await duck.app.chat.say("go") == "pending_user"
        assert Status.IN_PROGRESS in seen
        assert Status.ERROR in seen
        assert duck.state.status == Status.REQUIRES_USER_INPUT


async def test_a_question_to_the_user_keeps_the_request_open(folder: Path):
    asking = decision("Which colour?", next_step="pending_user")
    async with engine(folder, asking, decision("Blue it is.")) as duck:
        assert await duck.app.chat.say("paint it") == "pending_user"
        request = duck.state.request
        assert await duck.app.chat.say("blue") == "done"
        assert request is not None
        assert duck.of(RequestFinished)[-1].request_id == request.request_id


async def test_I7_at_the_maximum_the_user_is_asked(folder: Path):
    again = [decision("", action("write_file", path="a", content=f"{n}\n")) for n in range(5)]
    async with engine(folder, *again, max_loops=3) as duck:
        assert await duck.app.chat.say("go") == "consultation"
        assert len(duck.of(DecisionMade)) == 3
        assert duck.of(ConsultationRequested)[-1].kind == "over_exertion"
        assert duck.of(RequestFinished)[-1].exit_code == 3


async def test_a_provider_that_fails_ends_the_request_and_not_the_session(folder: Path):
    async with engine(folder, {"for": "Decision", "error": 500}, decision("Back.")) as duck:
        assert await duck.app.chat.say("go") == "provider_error"
        assert await duck.app.chat.say("again") == "done"


async def test_cancelling_while_the_model_thinks_writes_down_an_interruption(folder: Path, tmp_path: Path):
    gate = Gate(tmp_path / "gate")
    async with engine(folder, gate.hold(decision("late")), decision("Hello again.")) as duck:
        work = asyncio.ensure_future(duck.app.chat.say("go"))
        await gate.wait_until_asked()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert duck.of(RequestFinished)[-1].outcome == "interrupted"
        assert await duck.app.chat.say("are you there?") == "done"


async def test_rules_and_files_reach_the_model(folder: Path):
    """L3: AGENTS.md is read, always."""
    (folder / "AGENTS.md").write_text("Use tabs.\n")
    async with engine(folder, decision("ok"), decision("ok")) as duck:
        await duck.app.chat.say("hello")
        assert duck.state.files_note == "Files here: AGENTS.md"
        (folder / "new.txt").write_text("x")
        await duck.app.chat.say("hello")
        notes = [event.note for event in duck.events if event.type == "user_message"]
        assert notes == ["Files here: AGENTS.md", "Files here: AGENTS.md, new.txt"]


async def test_what_waits_for_approval_is_shown_and_not_done(folder: Path):
    """G3: in mode ask every change asks."""
    write = decision("", action("write_file", path="a.txt", content="new\n"))
    async with engine(folder, write, decision("Done."), mode="ask") as duck:
        assert await duck.app.chat.say("go") == "awaiting_approval"
        (asked,) = duck.of(ApprovalRequested)
        assert "+new" in asked.approval.difference
        assert duck.state.step == Step.AWAITING_APPROVAL
        assert duck.state.status == Status.REQUIRES_USER_INPUT
        assert not (folder / "a.txt").exists()
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "done"
    assert (folder / "a.txt").read_text() == "new\n"


async def test_a_no_is_told_to_the_model_with_its_reason(folder: Path):
    write = decision(
        "", action("write_file", path="a.txt", content="x\n"), action("write_file", path="b", content="y")
    )
    async with engine(folder, write, decision("I leave it."), mode="ask") as duck:
        await duck.app.chat.say("go")
        assert await duck.app.chat.answer(AnswerApproval(yes=False, reason="wrong file")) == "done"
        (refused,) = duck.of(ActionFinished)
        assert (refused.outcome, refused.not_run) == ("refused", ("file_ops.write_file",))
        assert any("The user said no: wrong file" in entry.text for entry in duck.state.transcript)
    assert not (folder / "a.txt").exists()


async def test_an_approval_does_not_hold_when_the_file_has_changed_meanwhile(folder: Path):
    """G5: bound to what was shown; if that changed, it asks again."""
    target = folder / "a.txt"
    target.write_text("old\n")
    write = decision("", action("write_file", path="a.txt", content="new\n"))
    async with engine(folder, write, decision("Done."), mode="ask") as duck:
        await duck.app.chat.say("go")
        target.write_text("somebody else's\n")
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "awaiting_approval"
        assert target.read_text() == "somebody else's\n"
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "done"
    assert target.read_text() == "new\n"


async def test_plan_mode_changes_nothing(folder: Path):
    """G3: plan is read only."""
    write = decision("", action("write_file", path="a.txt", content="x\n"))
    async with engine(folder, write, decision("I only plan."), mode="plan") as duck:
        assert await duck.app.chat.say("go") == "done"
        assert duck.of(ActionFinished)[0].outcome == "refused"
    assert not (folder / "a.txt").exists()


async def test_a_write_that_changes_nothing_does_not_ask(folder: Path):
    (folder / "a.txt").write_text("same\n")
    write = decision(
        "It is so already.", action("write_file", path="a.txt", content="same\n"), next_step="done"
    )
    async with engine(folder, write, mode="ask") as duck:
        assert await duck.app.chat.say("go") == "done"
        assert duck.of(ApprovalRequested) == []


async def test_L3_rules_that_can_not_be_read_are_said_to_be_missing(folder: Path):
    (folder / "AGENTS.md").write_bytes(b"\x00\x01binary")
    async with engine(folder, decision("ok")) as duck:
        (problem,) = duck.of(ErrorReported)
        assert (problem.key, problem.values["name"]) == ("rules.unreadable", "AGENTS.md")
