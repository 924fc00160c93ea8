"""Effects of each choice of a consultation on the state and the next prompt (I6, H6, J5)."""

import asyncio
from pathlib import Path

from duckflow.domain.events import (
    ConsultationAnswered,
    ConsultationRequested,
    Reply,
    RequestFinished,
    UsageReported,
    VitalsChanged,
)
from duckflow.domain.questions.consultation import CHOICES, EFFECTS, ChooseWay
from duckflow.domain.transitions import Step
from duckflow.i18n.catalogue import set_language
from duckflow.loops.judging.consultation import WISHES, consult
from duckflow.ui.views.events import consultation_text
from fakes.consulted import REQUEST, TRIED_DIGEST, consulted, no_advice
from fakes.model_server import Answer
from fakes.rows import every_row
from fakes.sent_prompts import written

EVERY = [(kind, choice) for kind, choices in CHOICES.items() for choice in choices]
GOES_ON = [(kind, choice) for kind, choice in EVERY if not (EFFECTS[choice].ends or EFFECTS[choice].analyses)]
WORDS = "the file is b.py"

STATE = {
    "cut_rules": lambda s: (s.rules_use == "cut", plan(s) == "plan_1"),
    "leave_rules_out": lambda s: (s.rules_use == "none", plan(s) == "plan_1"),
    "more_information": lambda s: (WORDS in objective(s).request, requirements(s) == [], plan(s) == "plan_1"),
    "go_on": lambda s: (
        requirements(s) == ["it prints hello"],
        plan(s) == "plan_1",
        s.step == Step.EXECUTION,
    ),
    "another_approach": lambda s: (forbidden(s), plan(s) == "plan_1", s.step == Step.PLANNING),
    "detail": lambda s: (WORDS in objective(s).request, requirements(s) == []),
    "divide": lambda s: (s.active_plan.name == "In parts", len(s.active_plan.steps) == 3),
    "other_source": lambda s: (requirements(s) == ["it prints hello"], "never made" in s.reply),
    "most_important": lambda s: (
        requirements(s) == [WORDS, "it prints hello"],
        [one.priority for one in objective(s).requirements] == [1, 3],
        plan(s) is None,
    ),
    "reset": lambda s: (plan(s) is None, s.items.plan_brief == (), s.items.goal == "print hello"),
    "sort_out": lambda s: (plan(s) == "plan_1", requirements(s) == ["it prints hello"]),
    "another_angle": lambda s: (forbidden(s), plan(s) == "plan_1"),
    "simplify": lambda s: (plan(s) is None, requirements(s) == [], not forbidden(s)),
    "different_way": lambda s: (forbidden(s), plan(s) is None),
    "instruct": lambda s: (WORDS in objective(s).request, requirements(s) == []),
    "second_opinion": lambda s: ("never made" in s.reply,),
    "more_detail": lambda s: (WORDS in objective(s).request, requirements(s) == []),
}
"""Conditions that hold after each choice that continues the work, and not all before it."""


def objective(state):
    return state.request.objective


def requirements(state):
    return [one.requirement for one in objective(state).requirements]


def plan(state):
    return state.active_plan_id


def forbidden(state):
    failed = objective(state).failed_attempts
    return sum(tried.digest == TRIED_DIGEST for attempt in failed for tried in attempt.tried) == 2


def last_prompt(server):
    return written(server.requests[-1].body)


@every_row(("kind", "choice"), GOES_ON)
async def test_I6_H6_J5_each_choice_changes_the_state_and_the_next_prompt(tmp_path: Path, kind, choice):
    async with consulted(tmp_path, kind) as (duck, server):
        seen = []
        duck.app.session.subscribe(lambda _: seen.append(duck.state))
        assert await duck.app.chat.choose(ChooseWay(choice=choice, text=WORDS)) == "pending_user"
        told = WISHES[choice].partition("{")[0].strip()
        assert told in last_prompt(server)
        assert WORDS in last_prompt(server)
        checks = [STATE[choice](state) for state in seen if state.consultation is None]
        assert any(all(one) for one in checks), checks
        assert duck.state.request.request_id == "r_1"
        assert duck.state.transcript[0].text.startswith(REQUEST)


def test_I6_every_choice_that_goes_on_is_tested_above_and_tells_the_model_something_of_its_own():
    assert set(STATE) == {choice for _, choice in GOES_ON}
    going_on = [WISHES[choice] for choice in STATE]
    assert len(set(going_on)) == len(going_on)
    assert set(WISHES) == {
        choice for choice, effect in EFFECTS.items() if effect.ends in (None, "pending_user")
    }


@every_row(("kind", "choice"), [one for one in EVERY if one[0] != "instead"])  # a no lowers no vitals
async def test_H3_every_answer_brings_focus_and_strength_and_counts_anew(tmp_path: Path, kind, choice):
    async with consulted(tmp_path, kind) as (duck, _):
        grants = duck.state.request.grants
        duck.events.clear()
        await duck.app.chat.choose(ChooseWay(choice=choice, text=WORDS))
        first = next(event for event in duck.of(VitalsChanged) if event.cause == "answer")
        assert first.vitals.focus == 0.8
        order = [
            type(event) for event in duck.events if isinstance(event, ConsultationAnswered | VitalsChanged)
        ]
        assert order[:2] == [ConsultationAnswered, VitalsChanged]
        request = duck.state.request or duck.state.finished
        assert request.grants == grants + 1
        assert request.objective.iterations == 0


@every_row(("kind", "choice"), [("stagnation", "stop"), ("escalation", "stop"), ("instead", "stop")])
async def test_I6_stop_ends_the_request_without_asking_a_model(tmp_path: Path, kind, choice):
    async with consulted(tmp_path, kind) as (duck, server):
        assert await duck.app.chat.choose(ChooseWay(choice=choice)) == "stopped"
        assert server.requests == []
        assert duck.state.request is None
        assert duck.state.finished.outcome == "stopped"
        assert duck.of(RequestFinished)[-1].exit_code == 1


@every_row("kind", ["over_exertion", "escalation"])
async def test_I6_J5_accept_ends_with_what_is_there(tmp_path: Path, kind):
    async with consulted(tmp_path, kind) as (duck, server):
        assert await duck.app.chat.choose(ChooseWay(choice="accept")) == "accepted"
        assert server.requests == []
        assert (duck.state.step, duck.state.finished.outcome) == (Step.DONE, "accepted")
        assert duck.of(RequestFinished)[-1].exit_code == 0


@every_row(("kind", "choice"), [("over_exertion", "analyse"), ("escalation", "technical_help")])
async def test_I6_J5_the_cause_is_looked_for_and_the_next_message_goes_on(tmp_path: Path, kind, choice):
    async with consulted(tmp_path, kind) as (duck, server):
        assert await duck.app.chat.choose(ChooseWay(choice=choice, text="why?")) == "pending_user"
        (asked,) = server.requests
        assert "gone.txt does not exist" in written(asked.body)
        assert "why?" in written(asked.body)
        (reply,) = duck.of(Reply)
        assert "gone.txt was never made." in reply.text
        assert "2. Do without it" in reply.text
        assert [(one.tier, one.output) for one in duck.of(UsageReported)] == [
            ("evaluator", "FailureAnalysis")
        ]
        assert duck.state.consultation is None
        await duck.app.chat.say("make it then")
        assert duck.state.request.request_id == "r_1"
        prompt = last_prompt(server)
        assert prompt.index("gone.txt was never made.") < prompt.index("make it then")


async def test_I6_without_a_model_the_facts_are_the_analysis(tmp_path: Path):
    async with consulted(tmp_path, "over_exertion", no_advice) as (duck, _):
        assert await duck.app.chat.choose(ChooseWay(choice="analyse")) == "pending_user"
        (reply,) = duck.of(Reply)
        assert "gone.txt does not exist" in reply.text
        assert "nothing is printed" in reply.text


async def test_I6_a_small_model_is_not_asked_for_advice(tmp_path: Path):
    async with consulted(tmp_path, "oracle", small=True) as (duck, server):
        await duck.app.chat.choose(ChooseWay(choice="second_opinion"))
        assert not [one for one in server.requests if "FailureAnalysis" in written(one.body)]
        assert "it prints hello" in duck.of(Reply)[0].text


async def test_H6_a_second_opinion_is_shown_and_told_and_the_work_goes_on(tmp_path: Path):
    async with consulted(tmp_path, "oracle") as (duck, server):
        assert await duck.app.chat.choose(ChooseWay(choice="second_opinion")) == "pending_user"
        opinion, decided = (written(one.body) for one in server.requests)
        assert "fresh eyes" in opinion
        assert "gone.txt was never made." in duck.of(Reply)[0].text
        assert "gone.txt was never made." in decided


async def test_I6_a_plan_that_can_not_be_had_does_not_stop_the_work(tmp_path: Path):
    async with consulted(tmp_path, "lost_confidence", no_advice) as (duck, server):
        assert await duck.app.chat.choose(ChooseWay(choice="divide")) == "pending_user"
        assert "do the smallest part first" in last_prompt(server)
        assert duck.state.active_plan_id == "plan_1"


async def test_I6_taking_stock_says_what_there_is_to_both(tmp_path: Path):
    async with consulted(tmp_path, "confusion") as (duck, server):
        await duck.app.chat.choose(ChooseWay(choice="sort_out"))
        stock = duck.of(Reply)[0].text
        for part in ("print hello", "it prints hello (40 %)", "gone.txt", "nothing is printed"):
            assert part in stock
        assert stock in last_prompt(server)


async def test_H6_rest_keeps_everything_and_the_next_message_goes_on(tmp_path: Path):
    async with consulted(tmp_path, "oracle") as (duck, server):
        assert await duck.app.chat.choose(ChooseWay(choice="rest")) == "pending_user"
        assert server.requests == []
        assert duck.of(RequestFinished)[-1].exit_code == 3
        assert objective(duck.state).requirements
        await duck.app.chat.say("good morning")
        assert duck.state.request.request_id == "r_1"
        assert "good morning" in last_prompt(server)


@every_row(("kind", "choice"), [one for one in EVERY if EFFECTS[one[1]].needs_words])
async def test_I6_where_words_are_needed_they_are_asked_for_and_the_next_message_brings_them(
    tmp_path: Path, kind, choice
):
    async with consulted(tmp_path, kind) as (duck, server):
        assert await duck.app.chat.choose(ChooseWay(choice=choice)) == "pending_user"
        assert server.requests == []
        assert "next message" in duck.of(Reply)[-1].text
        assert duck.state.consultation is None
        assert requirements(duck.state) == []
        await duck.app.chat.say(WORDS)
        assert duck.state.request.request_id == "r_1"
        assert WORDS in objective(duck.state).request
        prompt = last_prompt(server)
        assert prompt.index("they say it in their next message") < prompt.index(WORDS)


async def test_I6_words_without_a_number_are_more_on_the_request(tmp_path: Path):
    async with consulted(tmp_path, "confusion") as (duck, server):
        await duck.app.chat.choose(ChooseWay(text=WORDS))
        assert WORDS in objective(duck.state).request
        assert requirements(duck.state) == []
        assert WORDS in last_prompt(server)


async def test_an_answer_that_was_interrupted_leaves_the_question_open(tmp_path: Path):
    """Advice takes a while; Ctrl-C meanwhile must not lose the question."""
    stalls = Answer("", fault="stall")
    async with consulted(tmp_path, "over_exertion", lambda _: stalls) as (duck, server):
        work = asyncio.ensure_future(duck.app.chat.choose(ChooseWay(choice="analyse")))
        while not server.requests:
            await asyncio.sleep(0.01)
        work.cancel()
        await asyncio.wait([work])
        assert work.cancelled()
        assert duck.state.consultation is not None


@every_row("kind", CHOICES)
@every_row("language", ["en", "ja"])
async def test_I6_every_question_can_be_read_and_has_its_reasons(tmp_path: Path, kind, language):
    set_language(language)
    async with consulted(tmp_path, kind) as (duck, _):
        (asked,) = duck.of(ConsultationRequested)
        shown = consultation_text(asked.consultation)
        situation, _, ways = shown.rpartition("\n  1. ")
        assert len(ways.splitlines()) == len(CHOICES[kind])
        if kind == "oracle":
            assert len(asked.consultation.findings) == 4
        elif kind == "escalation":
            assert len(asked.consultation.findings) == 5
            assert all(part in situation for part in (REQUEST, "40 %", "nothing is printed", "Half of it"))
        elif kind != "instead":  # the user has just seen what it is about
            assert "gone.txt" in situation
        if kind != "escalation":
            assert not any(character.isdigit() for character in situation)


async def test_I6_a_cause_that_is_known_is_told(tmp_path: Path):
    async with consulted(tmp_path, "stagnation") as (duck, _):
        causes = ("limit", "budget", "errors", "stamina", "focus")
        asked = [consult(duck.state, "over_exertion", cause).consultation for cause in causes]
        texts = [consultation_text(one) for one in asked]
        assert len(set(texts)) == len(causes)


async def test_I6_another_models_view_is_offered_only_with_another_model(tmp_path: Path):
    async with consulted(tmp_path, "stagnation") as (duck, _):
        for kind, choice in (("oracle", "second_opinion"), ("lost_confidence", "other_source")):
            assert choice in consult(duck.state, kind).consultation.choices
            assert choice not in consult(duck.state, kind, alone=True).consultation.choices
        assert duck.app.model.alone
