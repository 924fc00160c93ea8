"""Work that is done stays done, whatever the model's last answer was (A6, M3)."""

from pathlib import Path
from typing import Any

from duckflow.domain.events import ErrorReported, Evaluated, Reply, RequestFinished, VerifySet
from duckflow.domain.questions.consultation import ChooseWay
from fakes.engine import action, decision, engine
from fakes.model_server import Answer, Fault, ModelServer
from fakes.plays import asked_for, play
from fakes.rows import every_row

WRITE = decision("", action("write_file", path="a.py", content="x = 1\n"))
RUN = decision("", {"operation": "shell.run", "args": {"command": "echo hello"}})
USELESS = ["I am done, I think."] * 9
GONE = [Fault(401, "no such key")] * 9


def judged(score: float) -> dict[str, Any]:
    scored = [{"requirement": "1", "score": score, "evidence": ["e1", "e2"]}]
    return {"requirement_scores": scored, "missing_aspects": [] if score == 1 else ["b.py is missing"]}


async def work(folder: Path, *decisions: Any, verify: str = "", checks: bool = False, **others: Any):
    with ModelServer(play(*decisions, **others)) as server:
        wanted = {"after_edit": False, "before_verdict": checks}
        llm = {"native_tools": False}
        async with engine(folder, server=server, mode="auto", checks=wanted, llm=llm) as duck:
            if verify:
                duck.app.session.record(VerifySet(command=verify))
            outcome = await duck.app.chat.say("Make a.py with x = 1")
        return outcome, duck, [asked_for(one.body) for one in server.requests]


@every_row(
    ("before", "after", "score", "outcome", "code"),
    [
        (WRITE, USELESS, 1.0, "done", 0),
        (WRITE, USELESS, 0.4, "not_satisfied", 1),
        (RUN, USELESS, 1.0, "done", 0),
        (WRITE, [Answer("{", stop="length")] * 9, 1.0, "done", 0),
    ],
)
async def test_A6_an_unusable_last_answer_leaves_the_verdict_to_decide(
    folder, before, after, score, outcome, code
):
    ended, duck, _ = await work(folder, before, *after, SatisfactionEvaluation=[judged(score)])
    assert ended == outcome
    finished = duck.of(RequestFinished)[-1]
    assert (finished.outcome, finished.exit_code) == (outcome, code)
    (error,) = duck.of(ErrorReported)
    assert error.key == ("llm.bad_last_answer" if after is USELESS else "llm.still_cut")
    said = duck.of(Reply)[-1].text
    assert "last answer could not be used" in said
    assert ("a.py" if before == WRITE else "`echo hello` (0)") in said
    assert [one.evaluation.done for one in duck.of(Evaluated)] == [code == 0]


async def test_A6_a_judge_that_can_not_be_understood_either_leaves_it_not_judged(folder):
    ended, duck, _ = await work(folder, WRITE, *USELESS, SatisfactionEvaluation=["well"] * 9)
    assert (ended, duck.of(RequestFinished)[-1].exit_code) == ("not_satisfied", 1)
    assert duck.of(Evaluated)[-1].evaluation.by == "nobody"
    assert (folder / "a.py").read_text() == "x = 1\n"


@every_row(("command", "outcome"), [("true", "done"), ("false", "not_satisfied")])
async def test_M3_without_any_model_the_verifying_command_decides_and_nobody_is_asked(
    folder, command, outcome
):
    ended, duck, asked = await work(folder, WRITE, *GONE, verify=command)
    assert ended == outcome
    assert "SatisfactionEvaluation" not in asked
    assert duck.of(ErrorReported)[0].key != "llm.bad_last_answer"
    assert "stopped answering" in duck.of(Reply)[-1].text


@every_row(("after", "outcome"), [(USELESS, "done"), (GONE, "not_satisfied")])
async def test_J2_tests_settle_what_no_judge_can_but_not_for_a_model_that_was_cut_short(
    folder, after, outcome
):
    (folder / "test_a.py").write_text("from a import x\n\n\ndef test_x():\n    assert x == 1\n")
    verdicts = ["I can't say."] * 9
    ended, duck, _ = await work(folder, WRITE, *after, checks=True, SatisfactionEvaluation=verdicts)
    assert ended == outcome
    assert [one.state for one in duck.of(Evaluated)[-1].results if one.kind == "test"] == ["passed"]


async def test_M3_a_lost_model_leaves_the_request_open_and_it_goes_on_where_it_was(folder):
    more = decision("", action("write_file", path="b.py", content="y = 2\n"))
    with ModelServer(play(WRITE, GONE[0], more, decision("Both are there."))) as server:
        async with engine(folder, server=server, mode="auto") as duck:
            assert await duck.app.chat.say("Make a.py and b.py") == "not_satisfied"
            asked = duck.state.consultation
            assert asked is not None
            assert asked.choices[0] == "go_on"
            assert asked.situation == "consultation.escalation_model"
            assert await duck.app.chat.choose(ChooseWay(choice="go_on")) == "done"
            assert (folder / "b.py").exists()
            assert duck.state.finished is not None
            assert duck.state.finished.changed == ("a.py", "b.py")


@every_row("turns", [USELESS, GONE, [decision("", action("read_file", path="none.txt")), *USELESS]])
async def test_M3_only_where_nothing_was_done_it_is_an_error_of_the_provider(folder, turns):
    ended, duck, asked = await work(folder, *turns)
    assert (ended, duck.of(RequestFinished)[-1].exit_code) == ("provider_error", 4)
    assert duck.of(Evaluated) == []
    assert "SatisfactionEvaluation" not in asked


async def test_J6_nothing_done_since_the_last_verdict_is_not_judged_again(folder):
    plan = {"name": "Another way", "goal": "a.py", "risk": "low", "steps": [{"name": "b"}]}
    ended, duck, asked = await work(
        folder,
        WRITE,
        decision("There."),
        *USELESS,
        SatisfactionEvaluation=[judged(0.4)],
        MissingInfoAnalysis=[{"missing": [{"what": "b.py"}]}],
        PlanDraft=[plan],
    )
    assert ended == "not_satisfied"
    assert asked.count("SatisfactionEvaluation") == 1
    assert len(duck.of(Evaluated)) == 1
