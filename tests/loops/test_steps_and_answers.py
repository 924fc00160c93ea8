"""Steps around a question, its reason, and what an answer changes."""

from pathlib import Path

from duckflow.domain.events import (
    ApprovalRequested,
    ConsultationRequested,
    DecisionMade,
    MemoryKept,
    RequestFinished,
    Transition,
)
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.domain.questions.consultation import ChooseWay
from duckflow.domain.transitions import Status, Step, Transitions
from fakes.engine import action, decision, engine
from fakes.rows import every_row

WRITE = action("write_file", path="a.txt", content="x\n")


def prompts(duck) -> str:
    return "\n".join(entry.text for entry in duck.state.transcript)


async def test_D2_from_awaiting_approval_to_done_the_program_takes_steps_of_the_table(folder: Path):
    waits = decision("May I?", WRITE, step="AWAITING_APPROVAL")
    async with engine(folder, waits, decision("Done.")) as duck:
        assert await duck.app.chat.say("go") == "done"
    moves = [(event.start, event.end) for event in duck.of(Transition)]
    assert moves[0] == (Step.PLANNING, Step.AWAITING_APPROVAL)
    assert moves[-1][1] == Step.DONE
    wrong = [move for move in moves if not Transitions().permit(*move, on_error=True)]
    assert not wrong


async def test_D1_requires_user_input_ends_with_the_answer(folder: Path):
    async with engine(folder, decision("", WRITE), decision("Done."), mode="ask") as duck:
        await duck.app.chat.say("go")
        assert duck.state.status == Status.REQUIRES_USER_INPUT
        seen = []
        duck.app.session.subscribe(lambda _: seen.append(duck.state.status))
        await duck.app.chat.answer(AnswerApproval(yes=True))
    assert seen[0] == Status.IN_PROGRESS


async def test_C1_the_reason_of_a_background_approval_is_the_task_s_own(folder: Path):
    tasks = [{"operation": "file_ops.write_file", "args": {"path": "a.txt", "content": "x"}}]
    start = {"operation": "task_loop.run", "args": {"task_list": tasks}}
    report = {"for": "TaskReport", "text": '{"status": "success", "summary": "done"}'}
    script = (decision("The weather is nice.", start, next_step="done"), decision("Done."), report)
    async with engine(folder, *script, mode="ask") as duck:
        await duck.app.chat.say("Write the letter x")
        await duck.app.tasks.wait()
        (asked,) = duck.of(ApprovalRequested)
        assert asked.approval.intent == "Write the letter x"


@every_row(
    ("choice", "told"), [("cut_rules", "[AGENTS.md]\nBe kind"), ("leave_rules_out", ""), ("stop", None)]
)
async def test_F3_L3_rules_over_their_limit_are_asked_about_and_the_answer_counts(folder: Path, choice, told):
    (folder / "AGENTS.md").write_text("Be kind. " * 10_000)
    async with engine(folder, decision("Hello.", task_profile="general_chat")) as duck:
        assert await duck.app.chat.say("hi") == "consultation"
        (asked,) = duck.of(ConsultationRequested)
        assert (asked.kind, asked.consultation.choices) == ("rules", ("cut_rules", "leave_rules_out", "stop"))
        assert not duck.of(DecisionMade), "nothing was sent before the answer"
        outcome = await duck.app.chat.choose(ChooseWay(choice=choice))
        assert outcome == ("stopped" if told is None else "done")
        if told is not None:
            shown = (await duck.app.model.preview(duck.state)).request.messages[0].text
            assert ("Be kind" in shown) == bool(told)
            assert told in shown


async def test_J7_what_the_user_accepts_below_the_line_is_accepted_and_not_done(folder: Path):
    scores = '[{"requirement": "1", "score": 0.3, "evidence": ["e1"]}]'
    verdict = f'{{"requirement_scores": {scores}, "missing_aspects": ["a rhyme"]}}'
    judged = [{"for": "SatisfactionEvaluation", "text": verdict}] * 3
    tries = [
        decision("", {**WRITE, "args": {"path": "a.txt", "content": f"{place}\n"}}) for place in range(3)
    ]
    script = [one for each in tries for one in (each, decision("Done."))]
    async with engine(folder, *script, *judged) as duck:
        assert await duck.app.chat.say("Write a poem into a.txt") == "not_satisfied"
        assert await duck.app.chat.choose(ChooseWay(choice="accept")) == "accepted"
    ended = duck.of(RequestFinished)[-1]
    assert (ended.outcome, ended.exit_code) == ("accepted", 0)
    assert duck.of(MemoryKept) == []


async def test_M3_after_a_provider_error_the_next_message_keeps_the_objective(folder: Path):
    failed = {"for": "Decision", "error": 500}
    async with engine(folder, failed, decision("Done.", task_profile="general_chat")) as duck:
        assert await duck.app.chat.say("Count the files") == "provider_error"
        first = duck.state.request.request_id
        await duck.app.chat.say("go on")
        assert duck.state.finished.request_id == first
        assert duck.state.finished.objective.request.startswith("Count the files")
