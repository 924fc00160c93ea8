"""H5, I7, I9: the next move, rule by rule and in their order."""

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from duckflow.config.settings import DynamicLimits, PacemakerSettings, Thresholds
from duckflow.domain.decision import NextStep
from duckflow.domain.pacing.vitals import Vitals
from duckflow.pacemaker.budget import BudgetLevel
from duckflow.pacemaker.rules import (
    Consult,
    Extend,
    Go,
    Replan,
    Situation,
    low_vitals,
    next_move,
    stays_confident,
)
from fakes.rows import every_row

TABLE = PacemakerSettings()
WELL = Vitals(mood=0.9, focus=0.9, stamina=0.9)
SPENT = BudgetLevel(level="spent", resource="tokens", used=10, maximum=10)
NEAR = BudgetLevel(level="near", resource="cost", used=9, maximum=10)
STAGNATION = Consult(kind="stagnation", cause="focus")
CONFUSION = Consult(kind="confusion", cause="focus")
ORACLE = Consult(kind="oracle", cause="vitals")
ASK_MOOD = Consult(kind="lost_confidence", cause="mood")
BUDGET = Consult(kind="over_exertion", cause="budget")
NO_PROGRESS = Consult(kind="stagnation", cause="limit")
HALT = Consult(kind="over_exertion", cause="stamina")
AT_MAXIMUM = Consult(kind="over_exertion", cause="limit")


def situation(*, mood=0.9, focus=0.9, stamina=0.9, **how) -> Situation:
    vitals = Vitals(mood=mood, focus=focus, stamina=stamina)
    return Situation(**{"vitals": vitals, "loops": 2, "limit": 8, **how})


MOVES = [
    ("all is well", {}, Go()),
    ("just well enough", {"mood": 0.7, "focus": 0.3, "stamina": 0.1}, Go()),
    ("focus is low", {"focus": 0.29}, Replan()),
    ("focus is low by repetition", {"focus": 0.2, "repeated": True}, Replan()),
    ("again, by repetition", {"focus": 0.1, "repeated": True, "replanned": True}, STAGNATION),
    ("again, by something else", {"focus": 0.1, "replanned": True}, CONFUSION),
    ("a replan alone is no reason", {"replanned": True, "repeated": True}, Go()),
    ("stamina is low", {"stamina": 0.09}, HALT),
    ("mood is low", {"mood": 0.69}, ASK_MOOD),
    ("mood is low, and was asked about", {"mood": 0.6, "confident": False}, Go()),
    ("mood is low at the end", {"mood": 0.6, "next_step": "done"}, Go()),
    ("mood is low before a question", {"mood": 0.6, "next_step": "pending_user"}, Go()),
    ("mood and focus", {"mood": 0.65, "focus": 0.25, "stamina": 0.40}, ORACLE),
    ("mood and focus, when mood was asked about", {"mood": 0.6, "focus": 0.2, "confident": False}, ORACLE),
    ("mood and stamina", {"mood": 0.6, "stamina": 0.05}, ORACLE),
    ("focus and stamina", {"focus": 0.2, "stamina": 0.05}, ORACLE),
    ("all three", {"mood": 0.1, "focus": 0.1, "stamina": 0.0}, ORACLE),
    ("two low, after a replan", {"mood": 0.1, "focus": 0.1, "replanned": True, "repeated": True}, ORACLE),
    ("the limit, with progress", {"loops": 8, "progressed": True}, Extend(limit=12)),
    ("the limit, with progress, tired", {"loops": 8, "progressed": True, "stamina": 0.02}, Extend(limit=12)),
    (
        "the limit, with progress, two low",
        {"loops": 8, "progressed": True, "mood": 0, "focus": 0},
        Extend(limit=12),
    ),
    ("the limit, without progress", {"loops": 8}, NO_PROGRESS),
    ("the limit, without progress, two low", {"loops": 8, "mood": 0.1, "focus": 0.1}, ORACLE),
    ("the limit, without progress, focus low", {"loops": 8, "focus": 0.1}, NO_PROGRESS),
    ("past the limit", {"loops": 9}, NO_PROGRESS),
    (
        "the formula's maximum, with progress",
        {"loops": 20, "limit": 20, "progressed": True},
        Extend(limit=30),
    ),
    ("near the hard limit", {"loops": 150, "limit": 150, "progressed": True}, Extend(limit=200)),
    ("the hard limit, with progress", {"loops": 200, "limit": 200, "progressed": True}, AT_MAXIMUM),
    ("the hard limit, without", {"loops": 200, "limit": 200}, NO_PROGRESS),
    ("the budget", {"budget": SPENT}, BUDGET),
    (
        "the budget before all else",
        {"budget": SPENT, "mood": 0, "focus": 0, "loops": 8, "progressed": True},
        BUDGET,
    ),
    ("the budget, nearly", {"budget": NEAR}, Go()),
]


@every_row(("how", "move"), [case[1:] for case in MOVES], ids=[case[0] for case in MOVES])
def test_H5_the_next_move(how, move):
    assert next_move(situation(**how), TABLE) == move


def test_I7_the_hard_limit_can_be_set():
    near = PacemakerSettings(dynamic_limits=DynamicLimits(hard_max_loops=25))
    assert next_move(situation(loops=20, limit=20, progressed=True), near) == Extend(limit=25)
    assert next_move(situation(loops=25, limit=25, progressed=True), near) == AT_MAXIMUM


def test_the_thresholds_are_settable():
    calm = PacemakerSettings(thresholds=Thresholds(mood=0.2, focus=0.1, stamina=0.0))
    assert next_move(situation(mood=0.3, focus=0.2, stamina=0.0), calm) == Go()


def test_H5_confidence_is_asked_about_again_only_after_it_was_well():
    confident, asked = True, []
    for mood in (0.9, 0.6, 0.5, 0.69, 0.7, 0.6, 0.6):
        now = situation(mood=mood, confident=confident)
        move = next_move(now, TABLE)
        asked.append(move == ASK_MOOD)
        confident = stays_confident(now, move, TABLE.thresholds)
    assert asked == [False, True, False, False, False, True, False]


def test_H5_the_oracles_question_was_about_mood_too():
    now = situation(mood=0.5, focus=0.1)
    assert stays_confident(now, next_move(now, TABLE), TABLE.thresholds) is False
    assert stays_confident(situation(focus=0.1), Replan(), TABLE.thresholds) is True
    assert stays_confident(situation(mood=0.5), BUDGET, TABLE.thresholds) is True
    assert stays_confident(situation(mood=0.5, confident=False), BUDGET, TABLE.thresholds) is False
    assert stays_confident(situation(mood=0.5, next_step="done"), Go(), TABLE.thresholds) is True


@every_row(
    ("vitals", "low"),
    [
        (WELL, ()),
        (Vitals(mood=0.65, focus=0.25, stamina=0.40), ("mood", "focus")),
        (Vitals(mood=0.7, focus=0.3, stamina=0.1), ()),
        (Vitals(mood=0, focus=0, stamina=0), ("mood", "focus", "stamina")),
    ],
)
def test_which_vitals_are_low(vitals, low):
    assert low_vitals(vitals, TABLE.thresholds) == low


shares = st.floats(0, 1)
situations = st.builds(
    Situation,
    vitals=st.builds(Vitals, mood=shares, focus=shares, stamina=shares),
    next_step=st.sampled_from(get_args(NextStep)),
    loops=st.integers(0, 30),
    limit=st.integers(1, 20),
    progressed=st.booleans(),
    repeated=st.booleans(),
    replanned=st.booleans(),
    confident=st.booleans(),
    budget=st.sampled_from([BudgetLevel(), NEAR, SPENT]),
)


@given(situations)
def test_H5_whatever_the_situation_there_is_one_move_and_it_fits(now):
    move = next_move(now, TABLE)
    low = low_vitals(now.vitals, TABLE.thresholds)
    match move:
        case Go():
            assert now.loops < now.limit
            assert set(low) <= {"mood"}
        case Extend(limit=limit):
            assert now.progressed
            assert now.limit < limit <= 200
        case Replan():
            assert low == ("focus",)
            assert not now.replanned
        case Consult(cause="stamina"):
            assert low == ("stamina",)
        case Consult(kind="oracle"):
            assert len(low) > 1
        case Consult():
            assert low or now.loops >= now.limit or now.budget.level == "spent"


@given(situations)
def test_H5_the_work_never_goes_on_at_its_limit_without_more_loops_or_a_question(now):
    if now.loops >= now.limit:
        assert isinstance(next_move(now, TABLE), Extend | Consult)
