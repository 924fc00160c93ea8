"""Whole requests: the duck knows how it is doing, and done means satisfied. Over HTTP (H, I, J)."""

import json
from pathlib import Path
from typing import Any

from duckflow.domain.events import (
    ActionFinished,
    AttemptPlanned,
    ConsultationRequested,
    DecisionMade,
    ErrorReported,
    Evaluated,
    LimitSet,
    RequestFinished,
    RequirementsFound,
    Transition,
    UsageReported,
    VerifySet,
    VitalsChanged,
)
from duckflow.domain.questions.consultation import ChooseWay
from duckflow.domain.transitions import Step
from fakes.engine import action, decision, engine
from fakes.model_server import ModelServer
from fakes.plays import asked_for, play
from fakes.rows import every_row


def write(path: str, content: str, **fields: Any) -> str:
    return decision("", action("write_file", path=path, content=content), **fields)


def read(path: str, **fields: Any) -> str:
    return decision("", action("read_file", path=path), **fields)


def verdict(score: float, *evidence: str, missing: tuple[str, ...] = ()) -> dict[str, Any]:
    scored = [{"requirement": "1", "score": score, "evidence": list(evidence)}]
    return {"requirement_scores": scored, "missing_aspects": list(missing), "quality_assessment": "so so"}


def outputs(server: ModelServer) -> list[str]:
    return [asked_for(request.body) for request in server.requests]


async def test_J1_a_chat_question_costs_exactly_one_model_call(folder: Path):
    with ModelServer(play(decision("Paris.", task_profile="simple_question"))) as server:
        async with engine(folder, server=server) as duck:
            assert await duck.app.chat.say("What is the capital of France?") == "done"
            assert duck.of(RequirementsFound) == []
        assert outputs(server) == ["Decision"]


async def test_J1_a_file_task_that_succeeds_at_once_costs_two_calls_more(folder: Path):
    done = decision("", action("write_file", path="a.py", content="x = 1\n"), next_step="done")
    made = json.dumps({**json.loads(done), "reply": "There.", "task_profile": "file_operation"})
    with ModelServer(play(made)) as server:
        async with engine(folder, server=server) as duck:
            assert await duck.app.chat.say("Create a.py with x = 1") == "done"
            assert duck.of(Evaluated)[-1].evaluation.done
        assert sorted(outputs(server)) == ["Decision", "RequirementList", "SatisfactionEvaluation"]


async def test_J2_done_goes_through_review_and_the_verdict_ends_it(folder: Path):
    script = play(write("a.py", "x = 1\n", step="EXECUTION"), decision("There."))
    with ModelServer(script) as server:
        async with engine(folder, server=server) as duck:
            assert await duck.app.chat.say("Create a.py") == "done"
            walked = [(t.start, t.end) for t in duck.of(Transition) if t.by == "program"]
            assert walked[-2:] == [(Step.EXECUTION, Step.REVIEW), (Step.REVIEW, Step.DONE)]


async def test_J2_J4_what_does_not_satisfy_is_tried_again_another_way(folder: Path):
    """The next attempt knows what is missing, has a strategy, and may not repeat what failed."""
    first = write("a.py", "x = 1\n")
    script = play(
        first,
        decision("Done."),
        first,
        write("a.py", "x = 2\n"),
        decision("Done now."),
        SatisfactionEvaluation=[
            verdict(0.4, "e1", missing=("x must be 2",)),
            verdict(0.9, "e4"),
        ],
        PlanDraft=[
            {
                "name": "Set the value directly",
                "risk": "low",
                "success_criteria": [],
                "steps": [{"name": "write", "description": "2"}],
            }
        ],
    )
    with ModelServer(script) as server:
        async with engine(folder, server=server) as duck:
            assert await duck.app.chat.say("Create a.py where x is 2") == "done"
            scores = [one.evaluation.overall_score for one in duck.of(Evaluated)]
            assert scores == [0.4, 0.9]
            (planned,) = duck.of(AttemptPlanned)
            assert (planned.number, planned.plan.strategy) == (2, "Set the value directly")
            told = server.requests[-3].body["messages"]
            assert "x must be 2" in json.dumps(told)
            assert "MissingInfoAnalysis" not in [asked_for(one.body) for one in server.requests]
            refused = [one for one in duck.of(ActionFinished) if one.outcome == "refused"]
            assert len(refused) == 1
            assert "failed_before" in [sign for one in duck.of(VitalsChanged) for sign in one.signs]
            assert duck.state.finished is not None
            assert duck.state.finished.objective is not None
            assert duck.state.finished.objective.strategies == ("Set the value directly",)
    assert (folder / "a.py").read_text() == "x = 2\n"


async def test_J2_an_evaluator_that_talks_nonsense_is_no_judge(folder: Path):
    turns = [one for n in range(5) for one in (write("a.py", f"x = {n}\n"), decision(f"Done {n}."))]
    script = play(*turns, SatisfactionEvaluation=["What a fine day."] * 20)
    with ModelServer(script) as server:
        async with engine(folder, server=server) as duck:
            assert await duck.app.chat.say("Create a.py") == "not_judged"
            (judged,) = duck.of(Evaluated)
            assert (judged.evaluation.by, judged.evaluation.done) == ("nobody", False)
            ended = duck.of(RequestFinished)[-1]
            assert (ended.exit_code, ended.satisfaction) == (1, None)


async def test_J6_a_judge_who_is_never_content_is_asked_three_times_and_then_the_user(folder: Path):
    turns = [one for n in range(5) for one in (write("a.py", f"x = {n}\n"), decision(f"Done {n}."))]
    no = {"requirement_scores": [{"requirement": "1", "score": 0.1, "evidence": ["e1"]}]}
    with ModelServer(play(*turns, SatisfactionEvaluation=[no] * 20)) as server:
        async with engine(folder, server=server) as duck:
            assert await duck.app.chat.say("Create a.py") == "not_satisfied"
            assert len(duck.of(Evaluated)) == 3
            (asked,) = duck.of(ConsultationRequested)
            assert (asked.kind, len(asked.consultation.choices)) == ("escalation", 5)
            assert duck.of(RequestFinished)[-1].exit_code == 1


async def test_H5_the_same_action_for_ever_runs_four_times(folder: Path):
    """FIELD: the same call forever. Stagnation is named, long before the limit."""
    (folder / "a.txt").write_text("a\n")
    with ModelServer(play(*[read("a.txt", confidence=0.9)] * 20)) as server:
        async with engine(folder, server=server) as duck:
            assert await duck.app.chat.say("look at a.txt") == "consultation"
            assert len(duck.of(DecisionMade)) == 4
            assert duck.of(ConsultationRequested)[-1].kind == "stagnation"
            assert duck.state.request is not None
            assert duck.state.request.replanned
            assert duck.of(RequestFinished)[-1].exit_code == 3


@every_row("confidence", [None, 0.8, 0.9, 1.0])
async def test_H5_an_action_that_fails_each_time_runs_four_times(folder: Path, confidence: float | None):
    with ModelServer(play(*[read("missing.txt", confidence=confidence)] * 20)) as server:
        async with engine(folder, server=server) as duck:
            assert await duck.app.chat.say("look at it") == "consultation"
            assert len(duck.of(DecisionMade)) == 4
            assert duck.of(ConsultationRequested)[-1].kind == "stagnation"


async def test_I7_a_batch_of_fifteen_files_is_given_more_loops_and_done(folder: Path):
    """FIELD: loop alarm on honest batch work."""
    files = [write(f"part{n}.py", f"value = {n}\n", task_profile="file_operation") for n in range(15)]
    with ModelServer(play(*files, decision("All fifteen."))) as server:
        async with engine(folder, server=server) as duck:
            assert await duck.app.chat.say("Write fifteen parts") == "done"
            assert duck.of(ConsultationRequested) == []
            assert not any(one.signs for one in duck.of(VitalsChanged))
            limits = [(one.extended_from, one.limit.limit) for one in duck.of(LimitSet)]
            assert limits == [(None, 9), (9, 13), (13, 19)]


async def test_H3_ordinary_work_is_never_interrupted(folder: Path):
    """Confidence 0.85, two failures among the last five actions, the same look again after each edit."""
    rounds: list[str] = []
    for n in range(4):
        edit = action("write_file", path="a.py", content=f"x = {n}\n")
        rounds += [
            decision("", edit, confidence=0.85),
            read("a.py", confidence=0.85),
            read(f"missing{n}.txt", confidence=0.85) if n % 2 else read("a.py", start=1, confidence=0.85),
        ]
    with ModelServer(play(*rounds, decision("Done.", confidence=0.85))) as server:
        async with engine(folder, server=server) as duck:
            outcome = await duck.app.chat.say("Improve a.py step by step")
            assert (outcome, duck.of(ConsultationRequested)) == ("done", [])


async def test_H5_low_confidence_asks_once_until_mood_was_well_again(folder: Path):
    steps = [write(f"{n}.txt", f"{n}\n", confidence=0.4) for n in range(6)]
    with ModelServer(play(*steps, decision("Done.", confidence=0.9))) as server:
        async with engine(folder, server=server) as duck:
            assert await duck.app.chat.say("write") == "consultation"
            assert duck.of(ConsultationRequested)[-1].kind == "lost_confidence"
            assert len(duck.of(DecisionMade)) == 1


async def test_H5_two_vitals_low_at_once_call_the_oracle(folder: Path):
    (folder / "a.txt").write_text("a\n")
    looks = [read("a.txt", confidence=0.9), read("a.txt", confidence=0.9), read("a.txt", confidence=0.3)]
    with ModelServer(play(*looks)) as server:
        async with engine(folder, server=server) as duck:
            assert await duck.app.chat.say("look") == "consultation"
            (asked,) = duck.of(ConsultationRequested)
            assert (asked.kind, len(asked.consultation.choices)) == ("oracle", 3)


async def test_I9_tokens_are_warned_of_and_then_asked_about(folder: Path):
    steps = [write(f"{n}.txt", f"{n}\n") for n in range(20)]
    with ModelServer(play(*steps)) as server:
        async with engine(folder, server=server, budget={"max_tokens": 100}) as duck:
            assert await duck.app.chat.say("write") == "consultation"
            assert [one.key for one in duck.of(ErrorReported)] == ["limit.budget.tokens_near"]
            assert duck.of(ConsultationRequested)[-1].kind == "over_exertion"
            used = sum(one.tokens.input_tokens + one.tokens.output_tokens for one in duck.of(UsageReported))
            assert used >= 100
            assert len(duck.of(DecisionMade)) < 20


async def test_H7_vitals_are_in_the_log_of_the_session(folder: Path):
    with ModelServer(play(write("a.txt", "a\n", confidence=0.5), decision("so", confidence=0.5))) as server:
        async with engine(folder, server=server) as duck:
            await duck.app.chat.say("go")
            await duck.app.chat.choose(ChooseWay(choice="go_on"))
            kept = [one.vitals for one in duck.of(VitalsChanged)]
            assert duck.state.vitals_over_time == tuple(kept)
            assert kept[-1].mood == 0.5


CHECK = "grep -q 'value = 42' answer.py || { echo 'FAILED test_a.py::test_the_answer_is_right'; exit 1; }"


async def test_J3_J5_a_liar_is_never_believed_and_the_report_names_the_failing_test(folder: Path):
    """FIELD: says done, is not. The verifying command decides, not the claim."""
    turns = [one for n in range(4) for one in (write("answer.py", f"value = {n}\n"), decision("All green!"))]
    script = play(*turns, SatisfactionEvaluation=[verdict(1.0, "e1")] * 9)
    with ModelServer(script) as server:
        async with engine(folder, server=server) as duck:
            duck.app.session.record(VerifySet(command=CHECK))
            assert await duck.app.chat.say("Make the test pass") == "not_satisfied"
            assert [one.evaluation.overall_score for one in duck.of(Evaluated)] == [0.79, 0.79, 0.79]
            (asked,) = duck.of(ConsultationRequested)
            assert asked.kind == "escalation"
            assert "test_the_answer_is_right" in str(asked.consultation.values)
            assert duck.of(RequestFinished)[-1].exit_code == 1
            told = json.dumps(server.requests[-1].body, ensure_ascii=False)
            assert "test_the_answer_is_right" in told


async def test_J3_a_command_that_ran_and_nothing_changed_since_is_not_run_twice(folder: Path):
    run = {"operation": "shell.run", "args": {"command": "true"}}
    script = play(write("a.py", "x = 1\n"), decision("", run), decision("Done."))
    with ModelServer(script) as server:
        async with engine(folder, server=server, mode="auto") as duck:
            duck.app.session.record(VerifySet(command="true"))
            assert await duck.app.chat.say("Create a.py") == "done"
            ran = [one for one in duck.of(ActionFinished) if one.operation == "shell.run"]
            assert [one.exit_code for one in ran] == [0]


async def test_J3_tests_of_the_project_that_can_not_start_say_nothing_of_the_work(folder: Path):
    """The project's own, where somebody could be asked: no pytest is no failing test."""
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / "test_a.py").write_text("def test_a(): pass\n")
    for said, outcome, kept in (
        ("/usr/bin/python3.11: No module named pytest", "done", ""),
        ("1 failed", "not_satisfied", None),
        ("a test says: No module named pytest", "not_satisfied", None),
    ):
        python = folder / ".venv/bin/python"
        python.write_text(f"#!/bin/sh\necho '{said}'; exit 1\n")
        python.chmod(0o755)
        turns = [write("a.py", f"x = '{said}', {n}\n") for n in range(3)]
        answers = [one for turn in turns for one in (turn, decision("Done."))]
        async with engine(folder, *answers, attended=True) as duck:
            assert await duck.app.chat.say("Create a.py") == outcome, said
            assert duck.of(VerifySet)[-1].command == (
                ".venv/bin/python -m pytest -q" if kept is None else kept
            )
