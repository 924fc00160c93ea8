"""Errors send the work back to planning, a few times, and then the user is asked (D5)."""

from pathlib import Path

from duckflow.domain.events import ConsultationRequested, RequestFinished, Transition
from duckflow.domain.questions.consultation import ChooseWay
from duckflow.domain.transitions import Step
from fakes.engine import action, decision, engine
from fakes.rows import every_row


def failing(path: str = "missing.txt") -> str:
    return decision("", action("read_file", path=path), step="EXECUTION", confidence=1.0)


def working(path: str) -> str:
    return decision("", action("write_file", path=path, content="x\n"), step="EXECUTION")


def recoveries(duck) -> int:
    return sum(1 for transition in duck.of(Transition) if transition.recovery)


async def test_D5_an_error_goes_back_to_planning(tmp_path: Path):
    async with engine(tmp_path, failing(), decision("I give it up.")) as duck:
        assert await duck.app.chat.say("go") == "done"
        back = [(t.start, t.end) for t in duck.of(Transition) if t.recovery]
        assert back == [(Step.EXECUTION, Step.PLANNING)]


async def test_D5_after_three_times_the_user_is_asked(tmp_path: Path):
    async with engine(tmp_path, *map(failing, "abcde")) as duck:
        assert await duck.app.chat.say("go") == "consultation"
        assert recoveries(duck) == 3
        (asked,) = duck.of(ConsultationRequested)
        assert (asked.kind, len(asked.consultation.choices)) == ("over_exertion", 5)
        assert asked.consultation.values["failing"] == "a, b, c, d"
        assert duck.of(RequestFinished)[-1].exit_code == 3
        assert duck.state.consultation is not None


async def test_D5_an_error_that_was_made_good_does_not_count(tmp_path: Path):
    """Ordinary work is never interrupted: fail, mend, fail elsewhere, mend."""
    rounds = [one for name in "abcdef" for one in (failing(name), working(name))]
    async with engine(tmp_path, *rounds, decision("All written.")) as duck:
        assert await duck.app.chat.say("go") == "done"
        assert recoveries(duck) == 6
        assert duck.of(ConsultationRequested) == []


@every_row(
    ("choice", "told"),
    [
        ("simplify", "The user wants it simpler"),
        ("different_way", "Do not repeat what failed: missing.txt"),
    ],
)
async def test_I6_what_was_chosen_reaches_the_model(tmp_path: Path, choice: str, told: str):
    async with engine(tmp_path, *[failing()] * 4, decision("As you wish.")) as duck:
        await duck.app.chat.say("go")
        assert await duck.app.chat.choose(ChooseWay(choice=choice, text="and be quick")) == "done"
        said = [entry.text for entry in duck.state.transcript if entry.role == "user"]
        assert told in said[-1]
        assert said[-1].endswith("and be quick")
        assert duck.state.consultation is None


async def test_I6_accept_ends_with_what_is_there(tmp_path: Path):
    async with engine(tmp_path, *[failing()] * 4) as duck:
        await duck.app.chat.say("go")
        assert await duck.app.chat.choose(ChooseWay(choice="accept")) == "accepted"
        assert duck.of(RequestFinished)[-1].exit_code == 0
        assert duck.state.step == Step.DONE


async def test_words_of_the_users_own_are_an_answer_too(tmp_path: Path):
    async with engine(tmp_path, *[failing()] * 4, decision("Of course.")) as duck:
        await duck.app.chat.say("go")
        assert await duck.app.chat.choose(ChooseWay(text="the file is called present.txt")) == "done"
        assert duck.state.transcript[-2].text == "the file is called present.txt"


async def test_an_open_consultation_survives_a_restart(tmp_path: Path):
    async with engine(tmp_path, *[failing()] * 4) as duck:
        await duck.app.chat.say("go")
        session_id = duck.state.session_id
    async with engine(tmp_path, decision("Simpler, then."), session=session_id) as duck:
        assert duck.state.consultation is not None
        assert await duck.app.chat.choose(ChooseWay(choice="simplify")) == "done"
