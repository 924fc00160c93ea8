"""The user's no: guidance for the model, never a failure (G1, H4, J3)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from duckflow.domain.events import (
    ActionFinished,
    ApprovalRequested,
    ConsultationRequested,
    DecisionMade,
    Evaluated,
    Transition,
    VitalsChanged,
)
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.domain.questions.consultation import CHOICES, ChooseWay
from duckflow.domain.transitions import Status
from duckflow.loops.judging.consultation import CARRY_ON, consult
from fakes.engine import Watched, action, decision, engine
from fakes.rows import every_row

YES, NO = AnswerApproval(yes=True), AnswerApproval(yes=False)


def write(path: str, content: str = "x\n", **fields: Any) -> str:
    return decision("", action("write_file", path=path, content=content), **fields)


def no(reason: str) -> AnswerApproval:
    return AnswerApproval(yes=False, reason=reason)


def told(duck: Watched) -> str:
    return "\n".join(entry.text for entry in duck.state.transcript)


def shown(duck: Watched) -> Sequence[str]:
    """Return the files of the drafts that the user saw."""
    return [str(one.approval.action.args.get("path")) for one in duck.of(ApprovalRequested)]


async def test_G1_H4_J3_a_no_with_a_reason_is_guidance_and_the_alternative_counts_fully(tmp_path: Path):
    reason = '「別の場所に」 print("goodbye'
    answers = [write("a.txt"), write("b.txt"), decision("done")]
    async with engine(tmp_path, *answers, mode="ask") as duck:
        assert await duck.app.chat.say("write a.txt") == "awaiting_approval"
        assert await duck.app.chat.answer(no(reason)) == "awaiting_approval"
        assert f"The user said no: {reason}" in told(duck).split("\n")
        request = duck.state.request
        assert request is not None
        assert (request.failing, request.recoveries, request.loops) == ((), 0, 1)
        assert request.objective.request == f"write a.txt\n\n{reason}"
        assert await duck.app.chat.answer(YES) == "done"
        (verdict,) = duck.of(Evaluated)
        assert (verdict.evaluation.overall_score, verdict.evaluation.missing_aspects) == (1.0, ())
        assert duck.of(ConsultationRequested) == []
        assert not any(one.signs or one.vitals.focus < 0.7 for one in duck.of(VitalsChanged))
        assert not any(one.recovery for one in duck.of(Transition))


async def test_G1_a_question_put_off_with_a_stop_is_asked_again_when_the_user_goes_on(tmp_path: Path):
    async with engine(tmp_path, write("a.txt"), write("a.txt"), decision("done"), mode="ask") as duck:
        assert await duck.app.chat.say("write a.txt") == "awaiting_approval"
        assert await duck.app.chat.decline() == "interrupted"
        assert (duck.state.refused, duck.state.asks_instead) == ((), False)
        assert "The user said no" not in told(duck)
        assert duck.state.request is not None
        assert duck.state.request.objective.current.declined == (), "nothing was turned down"
        assert await duck.app.chat.say("go on") == "awaiting_approval"
        assert shown(duck) == ["a.txt", "a.txt"]
        assert await duck.app.chat.answer(YES) == "done"


async def test_G1_any_number_of_refusals_ends_in_no_consultation_and_costs_no_stamina(tmp_path: Path):
    drafts = [write(f"{number}.txt") for number in range(12)]
    async with engine(tmp_path, *drafts, mode="ask", max_loops=6) as duck:
        outcome = await duck.app.chat.say("write something")
        for number in range(11):
            assert outcome == "awaiting_approval", number
            outcome = await duck.app.chat.answer(no(f"not {number}"))
        assert len(duck.of(ApprovalRequested)) == 12
        assert duck.state.vitals.stamina == 1.0
        assert duck.state.status is Status.REQUIRES_USER_INPUT
        assert duck.of(ConsultationRequested) == []


async def test_G1_after_a_bare_no_nothing_else_runs_and_the_user_is_asked_what_to_do_instead(tmp_path: Path):
    both = decision(
        "", action("write_file", path="a.txt", content="x"), action("write_file", path="b.txt", content="x")
    )
    answers = [both, write("c.txt"), decision("done")]
    async with engine(tmp_path, *answers, mode="ask") as duck:
        await duck.app.chat.say("write a and b")
        assert await duck.app.chat.answer(NO) == "consultation"
        assert len(duck.of(DecisionMade)) == 1
        asked = duck.state.consultation
        assert asked is not None
        assert (asked.kind, asked.choices) == ("instead", ("stop",))
        assert duck.state.queue == ()
        vitals = duck.state.vitals
        assert await duck.app.chat.answer_in_words("write c.txt") == "awaiting_approval"
        assert "write c.txt" in told(duck)
        assert await duck.app.chat.answer(YES) == "done"
        assert duck.state.vitals.focus >= vitals.focus
        assert sorted(path.name for path in tmp_path.iterdir()) == ["c.txt"]


async def test_G1_after_a_bare_no_the_user_can_stop(tmp_path: Path):
    for said in ("1", "stop", "ストップ"):
        async with engine(tmp_path, write("a.txt"), mode="ask") as duck:
            await duck.app.chat.say("write a")
            await duck.app.chat.answer(NO)
            assert await duck.app.chat.answer_in_words(said) == "stopped", said
            assert len(duck.of(DecisionMade)) == 1


async def test_G1_a_refused_draft_is_not_shown_again_the_model_is_told_once_then_the_user_is_asked(
    tmp_path: Path,
):
    (tmp_path / "note.txt").write_text("old\n")
    edit = {"edits": [{"find": "old", "replace": "new"}]}
    same = decision("", {"operation": "file_ops.edit_file", "args": {"path": "note.txt", **edit}})
    other = decision("", {"operation": "file_ops.edit_file", "args": {"path": "./note.txt", **edit}})
    look = decision("", action("read_file", path="note.txt"))
    answers = [same, look, other, look, same, write("b.txt")]
    async with engine(tmp_path, *answers, mode="ask") as duck:
        await duck.app.chat.say("change the note")
        assert await duck.app.chat.answer(no("leave the note alone")) == "consultation"
        assert shown(duck) == ["note.txt"]
        again = [one for one in duck.of(ActionFinished) if one.declined == "before"]
        assert len(again) == 2
        assert "said no to exactly this before" in again[0].text
        asked = duck.state.consultation
        assert asked is not None
        assert asked.situation == "consultation.instead_again"
        assert asked.choices == ("reconsider", "stop")
        assert await duck.app.chat.answer_in_words("write b.txt") == "awaiting_approval"
        assert shown(duck) == ["note.txt", "b.txt"]


async def test_G1_the_same_lines_at_another_place_are_another_draft(tmp_path: Path):
    (tmp_path / "calc.py").write_text("def total(prices):\n    result = sum(prices)\n    return result\n")
    check = "    if not prices:\n        raise ValueError\n"
    late = f"def total(prices):\n    result = sum(prices)\n{check}    return result\n"
    early = f"def total(prices):\n{check}    result = sum(prices)\n    return result\n"
    async with engine(tmp_path, write("calc.py", late), write("calc.py", early), mode="ask") as duck:
        await duck.app.chat.say("refuse empty lists")
        assert await duck.app.chat.answer(no("check that first")) == "awaiting_approval"
        assert shown(duck) == ["calc.py", "calc.py"]


async def test_G1_C4_a_refused_draft_stays_refused_after_a_stop(tmp_path: Path):
    """Words since then may want it after all: the model, which knows them, must propose it twice."""
    again = [write("a.txt")] * 2
    for words, asked in (("go on", False), ("write a.txt as you proposed first", True)):
        answers = [write("a.txt"), write("b.txt"), *again, decision("done")]
        async with engine(tmp_path, *answers, mode="ask") as duck:
            assert await duck.app.chat.say("write something") == "awaiting_approval"
            assert await duck.app.chat.answer(no("another name")) == "awaiting_approval"
            assert await duck.app.chat.decline() == "interrupted"
            outcome = await duck.app.chat.say(words)
            assert outcome == ("awaiting_approval" if asked else "consultation"), words
            assert shown(duck) == ["a.txt", "b.txt", *(["a.txt"] if asked else [])], words


async def test_G1_words_after_a_bare_no_can_bring_the_draft_back(tmp_path: Path):
    answers = [write("a.txt")] * 3 + [decision("done")]
    async with engine(tmp_path, *answers, mode="ask") as duck:
        assert await duck.app.chat.say("write a.txt") == "awaiting_approval"
        assert await duck.app.chat.answer(NO) == "consultation"
        assert await duck.app.chat.answer_in_words("oh, that was a slip: do it") == "awaiting_approval"
        assert shown(duck) == ["a.txt", "a.txt"]
        assert await duck.app.chat.answer(YES) == "done"


async def test_G1_the_user_can_look_at_a_refused_draft_again(tmp_path: Path):
    async with engine(tmp_path, *[write("a.txt")] * 4, decision("done"), mode="ask") as duck:
        await duck.app.chat.say("write a")
        assert await duck.app.chat.answer(no("hm")) == "consultation"
        assert await duck.app.chat.choose(ChooseWay(choice="reconsider")) == "awaiting_approval"
        assert shown(duck) == ["a.txt", "a.txt"]
        assert await duck.app.chat.answer(YES) == "done"


async def test_G1_stopping_at_a_question_asks_nothing(tmp_path: Path):
    async with engine(tmp_path, write("a.txt"), mode="ask") as duck:
        await duck.app.chat.say("write a")
        assert await duck.app.chat.decline() == "interrupted"
        assert duck.state.question is None
        assert duck.of(ConsultationRequested) == []


@every_row("kind", CHOICES)
async def test_I6_every_list_of_choices_includes_stopping(tmp_path: Path, kind):
    assert "stop" in CHOICES[kind]
    assert "stop" in CARRY_ON
    async with engine(tmp_path) as duck:
        for cause in ("limit", "budget", "model", "again", ""):
            assert "stop" in consult(duck.state, kind, cause).consultation.choices
