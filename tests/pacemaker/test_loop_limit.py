"""I1, I2, I4, I7: how many loops a request may take, and when that becomes more."""

from typing import get_args

from hypothesis import example, given
from hypothesis import strategies as st

from duckflow.config.settings import DynamicLimits
from duckflow.domain.decision import TaskProfile
from duckflow.domain.pacing.limits import Adjustment
from duckflow.domain.pacing.vitals import Vitals
from duckflow.pacemaker.limit import BASE_LOOPS, compute_limit, extend, score_of
from fakes.rows import every_row

USUAL_LIMITS = DynamicLimits()
LOW, USUAL, HIGH = (Vitals(mood=value, focus=value, stamina=value) for value in (0.3, 0.6, 1.0))
COMPLEXITIES = (0.0, 0.5, 1.0)

# For each profile: low, usual and high vitals, and for each of them the complexities 0, 0.5 and 1.
LIMITS = [
    ("simple_question", ((3, 4, 4), (5, 6, 7), (6, 7, 8))),
    ("code_analysis", ((8, 10, 11), (12, 14, 16), (14, 17, 20))),
    ("file_operation", ((5, 6, 7), (8, 9, 11), (9, 11, 13))),
    ("complex_reasoning", ((12, 15, 17), (18, 20, 20), (20, 20, 20))),
    ("multi_step_task", ((10, 12, 14), (15, 18, 20), (18, 20, 20))),
    ("general_chat", ((4, 5, 5), (6, 7, 8), (7, 8, 10))),
    ("creative_writing", ((7, 8, 9), (10, 12, 14), (12, 14, 16))),
    ("debugging", ((9, 11, 13), (14, 16, 19), (16, 20, 20))),
    ("research", ((11, 13, 15), (16, 19, 20), (19, 20, 20))),
]
CELLS = [
    (profile, vitals, complexity, limit)
    for profile, rows in LIMITS
    for vitals, row in zip((LOW, USUAL, HIGH), rows, strict=True)
    for complexity, limit in zip(COMPLEXITIES, row, strict=True)
]

shares = st.floats(0, 1)
any_vitals = st.builds(Vitals, mood=shares, focus=shares, stamina=shares)
profiles = st.sampled_from([None, *get_args(TaskProfile)])


def limit_of(profile, vitals, complexity, used=0) -> int:
    return compute_limit(profile, vitals, complexity, USUAL_LIMITS, used).limit


@every_row(("profile", "vitals", "complexity", "limit"), CELLS)
def test_I2_the_limit_of_every_profile_at_three_levels_of_vitals_and_complexity(
    profile, vitals, complexity, limit
):
    assert limit_of(profile, vitals, complexity) == limit


def test_the_table_above_is_whole():
    assert len(CELLS) == 81
    assert {profile for profile, _ in LIMITS} == set(get_args(TaskProfile))


def test_I1_nine_profiles_have_their_base_loops_and_an_unknown_task_has_eight():
    assert BASE_LOOPS == {
        "simple_question": 5,
        "code_analysis": 12,
        "file_operation": 8,
        "complex_reasoning": 18,
        "multi_step_task": 15,
        "general_chat": 6,
        "creative_writing": 10,
        "debugging": 14,
        "research": 16,
        None: 8,
    }
    assert set(BASE_LOOPS) == {*get_args(TaskProfile), None}
    assert compute_limit(None, USUAL, 0.0, USUAL_LIMITS).limit == 8
    assert compute_limit("dancing", USUAL, 0.0, USUAL_LIMITS).base == 8


def test_I2_the_worked_example_of_a_code_analysis():
    """Mood 0.75, focus 0.80, stamina 0.65, complexity 0.6: fourteen loops."""
    limit = compute_limit("code_analysis", Vitals(mood=0.75, focus=0.80, stamina=0.65), 0.6, USUAL_LIMITS)
    assert (limit.limit, limit.base, limit.vitals_score, limit.vitals_factor) == (14, 12, 0.75, 1.0)
    assert (limit.complexity_factor, limit.product) == (1.24, 14.88)
    assert limit.adjustments == (Adjustment(source="complexity", percent=24),)
    assert (limit.fallback, limit.used) == (None, 0)


@every_row(
    ("vitals", "score", "factor"),
    [
        (Vitals(), 1.0, 1.2),
        (Vitals(mood=0.92, focus=0.85, stamina=0.98), 0.904, 1.2),
        (Vitals(mood=0.65, focus=0.25, stamina=0.40), 0.44, 1.0),
        (Vitals(mood=0.8, focus=0.8, stamina=0.8), 0.8, 1.0),
        (Vitals(mood=0.8, focus=0.8, stamina=0.81), 0.802, 1.2),
        (Vitals(mood=0.4, focus=0.4, stamina=0.4), 0.4, 1.0),
        (Vitals(mood=0.4, focus=0.4, stamina=0.39), 0.398, 0.7),
        (Vitals(mood=0, focus=0, stamina=0), 0.0, 0.7),
        (Vitals(mood=1, focus=0, stamina=0), 0.4, 1.0),
        (Vitals(mood=0, focus=1, stamina=0), 0.4, 1.0),
        (Vitals(mood=0, focus=0, stamina=1), 0.2, 0.7),
    ],
)
def test_I2_the_score_is_exact_at_its_bounds(vitals, score, factor):
    limit = compute_limit("debugging", vitals, 0.0, USUAL_LIMITS)
    assert (limit.vitals_score, limit.vitals_factor) == (score, factor)


def test_a_product_that_is_a_whole_number_on_paper_is_one_here():
    """18 × 1.2 × 1.25 is 27, which floating point alone misses."""
    far = DynamicLimits(max_loops=40)
    assert int(18 * 1.2 * (1 + 0.625 * 0.4)) == 26
    assert compute_limit("complex_reasoning", HIGH, 0.625, far).limit == 27


def test_I2_adjustments_are_in_per_cent():
    def shown(vitals, complexity):
        found = compute_limit("debugging", vitals, complexity, USUAL_LIMITS).adjustments
        return {one.source: one.percent for one in found}

    assert shown(HIGH, 1.0) == {"vitals": 20, "complexity": 40}
    assert shown(LOW, 0.3) == {"vitals": -30, "complexity": 12}
    assert shown(USUAL, 0.0) == {}


@every_row(("used", "limit"), [(0, 3), (2, 3), (3, 3), (4, 4), (17, 17)])
def test_I2_a_new_profile_never_sets_it_below_the_loops_used(used, limit):
    assert limit_of("simple_question", LOW, 0.0, used) == limit


def test_the_maximum_is_settable_and_counts_more_than_the_minimum():
    def bounded(most):
        limits = DynamicLimits(max_loops=most)
        return [
            compute_limit(profile, USUAL, 0.0, limits).limit for profile in ("simple_question", "research")
        ]

    assert bounded(12) == [5, 12]
    assert bounded(2) == [2, 2]
    assert bounded(40) == [5, 16]


@every_row("complexity", [float("nan"), float("inf"), float("-inf"), None, "much"])
def test_I4_whatever_goes_wrong_the_configured_maximum_holds(complexity):
    limit = compute_limit("research", USUAL, complexity, USUAL_LIMITS, used=2)
    assert limit.limit == 20
    assert limit.fallback


def test_I4_without_vitals_or_without_a_table_there_is_still_a_limit():
    own = DynamicLimits(max_loops=33)
    assert compute_limit("research", None, 0.0, own).limit == 33
    nothing = compute_limit("research", USUAL, 0.0, None)
    assert (nothing.limit, bool(nothing.fallback)) == (15, True)
    assert compute_limit("research", USUAL, 0.0, None, used=18).limit == 18


@given(profile=profiles, vitals=any_vitals, complexity=shares, used=st.integers(0, 20))
@example(profile="complex_reasoning", vitals=HIGH, complexity=1.0, used=0)
@example(profile="simple_question", vitals=LOW, complexity=0.0, used=0)
def test_I2_the_limit_is_always_between_its_bounds(profile, vitals, complexity, used):
    limit = compute_limit(profile, vitals, complexity, USUAL_LIMITS, used)
    assert 3 <= limit.limit <= 20
    assert limit.limit >= used
    assert limit.fallback is None


@given(profile=profiles, vitals=any_vitals, low=shares, high=shares)
def test_more_complexity_never_gives_fewer_loops(profile, vitals, low, high):
    low, high = sorted((low, high))
    assert limit_of(profile, vitals, low) <= limit_of(profile, vitals, high)


@given(profile=profiles, one=any_vitals, other=any_vitals, complexity=shares)
def test_better_vitals_never_give_fewer_loops(profile, one, other, complexity):
    if score_of(one) > score_of(other):
        one, other = other, one
    assert limit_of(profile, one, complexity) <= limit_of(profile, other, complexity)


@every_row(
    ("limit", "used", "progressed", "maximum", "extended"),
    [
        (8, 8, True, 20, 12),
        (12, 12, True, 20, 18),
        (18, 18, True, 20, 20),
        (20, 20, True, 20, None),
        (5, 5, True, 20, 7),
        (3, 3, True, 20, 4),
        (1, 1, True, 20, 2),
        (8, 9, True, 20, 12),
        (8, 7, True, 20, None),
        (8, 8, False, 20, None),
        (20, 20, True, 40, 30),
        (25, 25, True, 20, None),
    ],
)
def test_I7_a_limit_that_is_reached_grows_by_half_while_the_work_gets_on(
    limit, used, progressed, maximum, extended
):
    assert extend(limit, used, progressed, maximum) == extended


@given(
    limit=st.integers(1, 100), used=st.integers(0, 100), progressed=st.booleans(), maximum=st.integers(1, 100)
)
def test_I7_an_extension_is_more_and_never_past_the_maximum(limit, used, progressed, maximum):
    extended = extend(limit, used, progressed, maximum)
    if extended is not None:
        assert progressed
        assert limit < extended <= maximum
