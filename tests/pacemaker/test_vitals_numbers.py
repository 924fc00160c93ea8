"""H1 to H4, H7: how mood, focus and stamina follow from what was observed."""

from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from duckflow.domain.frozen import replace
from duckflow.domain.pacing.limits import LoopTrace, PastAction
from duckflow.domain.pacing.vitals import FocusEvent, Vitals, sparkline
from duckflow.pacemaker.vitals import (
    GAINS,
    begin,
    crosses_window,
    focus_after,
    mood_of,
    stamina_of,
    turns_away,
)
from fakes.pacing import fail, loop, read, trace_all
from fakes.rows import every_row

OK, NO, REFUSED = "ok", "failed", "refused"

shares = st.floats(0, 1)
focus_events = st.lists(st.sampled_from(get_args(FocusEvent)), max_size=6).map(tuple)
outcomes_seen = st.lists(st.booleans(), max_size=8)


def mood(confidence=None, *outcomes, **how) -> float:
    past = PastAction(call="c", operation="o", target="t", result="r")
    acts = [replace(past, failed=ok is NO, refused=ok is REFUSED) for ok in outcomes]
    return mood_of(confidence, [LoopTrace(acts=(act,)) for act in acts], **how)


def focus(start, *events) -> float:
    return focus_after(start, events)


def stamina(loops, limit, unresolved=0, progressed=0) -> float:
    return stamina_of(loops, limit, unresolved, progressed=progressed)


def test_H1_all_are_full_at_the_start_and_none_can_leave_its_bounds():
    assert Vitals() == Vitals(mood=1.0, focus=1.0, stamina=1.0)
    for wrong in (-0.01, 1.01, float("nan")):
        with pytest.raises(ValidationError):
            Vitals(focus=wrong)


@every_row(
    ("confidence", "outcomes", "expected"),
    [
        (1.0, (), 1.0),
        (0.9, (), 0.9),
        (0.9, (OK, OK), 0.9),
        (0.9, (OK,) * 5, 0.9),
        (0.9, (NO,), 0.846),
        (1.0, (NO,), 0.94),
        (1.0, (NO, NO), 0.88),
        (1.0, (NO,) * 5, 0.7),
        (1.0, (NO,) * 9, 0.7),
        (0.5, (NO,) * 5, 0.35),
        (1.0, (NO, OK, OK, OK, OK, OK), 1.0),
        (1.0, (OK, NO, OK, OK, OK, OK), 0.94),
        (0.0, (OK,), 0.0),
        (0.9, (REFUSED,) * 5, 0.9),
        (1.0, (NO, REFUSED, REFUSED, REFUSED, REFUSED, REFUSED), 0.94),
        (None, (), 0.8),
        (None, (NO,), 0.752),
        (None, (NO, NO, NO), 0.656),
    ],
)
def test_H2_mood_is_confidence_dampened_by_the_failures_among_the_last_five(confidence, outcomes, expected):
    assert mood(confidence, *outcomes) == expected


def test_H2_a_small_models_confidence_says_nothing():
    assert mood(1.0, small=True) == mood(0.1, small=True) == 0.8


def test_H2_praise_lifts_mood_for_the_next_request_and_not_past_one():
    assert mood(0.8, praised=True) == 0.9
    assert mood(0.95, praised=True) == 1.0
    assert mood(1.0, NO, praised=True) == 1.0
    assert mood(None, praised=True) == 0.9


@every_row(
    ("start", "events", "expected"),
    [
        (0.5, (), 0.5),
        (0.5, ("task_finished",), 0.6),
        (0.5, ("new_content",), 0.6),
        (0.5, ("new_evidence",), 0.6),
        (0.5, GAINS, 0.6),
        (0.95, ("new_evidence",), 1.0),
        (1.0, ("repetition",), 0.6),
        (0.6, ("repetition",), 0.2),
        (0.7, ("repetition",), 0.3),
        (0.3, ("repetition",), 0.0),
        (1.0, ("repetition", "repetition"), 0.6),
        (1.0, ("window_crossed",), 0.85),
        (1.0, ("direction_changed",), 0.7),
        (0.8, ("direction_changed", "window_crossed", "new_evidence"), 0.45),
        (1.0, ("direction_changed", "new_evidence"), 0.8),
        (0.1, ("replanned",), 0.5),
        (0.9, ("replanned",), 0.5),
        (0.1, ("consultation_answered",), 0.8),
        (1.0, ("consultation_answered",), 0.8),
        (0.1, ("new_request",), 0.7),
        (0.7, ("new_request",), 0.7),
        (0.9, ("new_request",), 0.9),
        (0.2, ("replanned", "repetition"), 0.1),
    ],
)
def test_H3_focus_moves_as_promised(start, events, expected):
    assert focus(start, *events) == expected


@every_row(
    ("loops", "progressed", "limit", "unresolved", "expected"),
    [
        (0, 0, 8, 0, 1.0),
        (1, 0, 8, 0, 0.9),
        (1, 1, 8, 0, 0.975),
        (4, 0, 8, 0, 0.6),
        (4, 2, 8, 0, 0.75),
        (8, 0, 8, 0, 0.2),
        (8, 8, 8, 0, 0.8),
        (8, 0, 12, 0, 0.466666667),
        (8, 8, 12, 0, 0.866666667),
        (0, 0, 8, 1, 0.92),
        (4, 0, 8, 2, 0.44),
        (8, 8, 8, 1, 0.72),
        (8, 0, 8, 2, 0.04),
        (8, 0, 8, 9, 0.0),
        (15, 15, 15, 0, 0.8),
        (0, 0, 0, 0, 1.0),
        (2, 0, 0, 0, 0.0),
    ],
)
def test_H4_stamina_goes_with_loops_that_bring_nothing_and_with_errors_of_tools(
    loops, progressed, limit, unresolved, expected
):
    assert stamina(loops, limit, unresolved, progressed) == expected


def test_H3_H4_a_new_request_finds_focus_and_strength_again():
    tired = Vitals(mood=0.85, focus=0.1, stamina=0.2)
    assert begin(tired, False) == Vitals(mood=0.85, focus=0.7, stamina=1.0)
    assert begin(tired, True) == Vitals(mood=0.95, focus=0.7, stamina=1.0)


@every_row(
    ("before", "now", "crosses"),
    [
        (0, 799, False),
        (0, 800, True),
        (799, 800, True),
        (800, 801, False),
        (900, 100, False),
        (100, 2000, True),
    ],
)
def test_H3_a_prompt_becomes_crowded_once(before, now, crosses):
    assert crosses_window(before, now, 1000) is crosses


@every_row(
    ("goal", "new_goal", "turns"),
    [
        ("make a game", "write a letter", True),
        ("make a game", "Make a game.", False),
        ("make a game", None, False),
        ("make a game", "", False),
        ("", "make a game", False),
        ("ゲームを作る", "手紙を書く", True),
        ("ゲームを作る", "ゲームを、作る。", False),
    ],
)
def test_H3_another_goal_is_a_change_of_direction_and_the_first_one_is_not(goal, new_goal, turns):
    assert turns_away(goal, new_goal) is turns


def test_H2_what_failed_is_read_off_the_traces_of_which_the_newest_count():
    loops = (
        loop(fail(read("a")), read("b")),
        loop(fail(read("c"))),
        loop(read("d"), fail(read("e"), outcome="refused"), read("f")),
    )
    assert mood_of(1.0, trace_all(loops)) == mood(1.0, OK, NO, OK, NO, OK) == 0.88


@given(
    st.none() | shares, outcomes_seen, st.booleans(), shares, focus_events,
    st.integers(0, 100), st.integers(0, 40), st.integers(0, 40),
)  # fmt: skip
def test_H1_no_observation_drives_a_vital_out_of_its_bounds(
    confidence, outcomes, praised, start, events, loops, limit, unresolved
):
    found = (
        mood(confidence, *outcomes, praised=praised),
        focus(start, *events),
        stamina(loops, limit, unresolved),
    )
    assert all(0 <= value <= 1 for value in found)


@given(st.integers(0, 60), st.integers(1, 40), st.integers(0, 30), st.integers(0, 30))
def test_H4_more_errors_or_loops_never_give_strength_and_a_longer_limit_never_takes_it(
    loops, limit, unresolved, more
):
    now = stamina(loops, limit, unresolved)
    assert stamina(loops, limit, unresolved + more) <= now
    assert stamina(loops + more, limit, unresolved) <= now
    assert stamina(loops, limit + more, unresolved) >= now


@given(shares, shares, st.lists(st.booleans(), max_size=5))
def test_H2_less_confidence_or_another_failure_never_lifts_mood(low, high, outcomes):
    low, high = sorted((low, high))
    assert mood(low, *outcomes) <= mood(high, *outcomes)
    for place, outcome in enumerate(outcomes):
        if outcome:
            worse = [*outcomes[:place], NO, *outcomes[place + 1 :]]
            assert mood(high, *worse) <= mood(high, *outcomes)


@given(shares, shares, focus_events)
@example(0.7, 0.69, ("repetition",))
def test_H3_who_was_more_focused_stays_so(one, other, events):
    low, high = sorted((one, other))
    assert focus(low, *events) <= focus(high, *events)


@given(shares)
def test_H3_getting_on_never_lowers_focus_and_repeating_never_raises_it(start):
    start = round(start, 9)
    assert all(focus(start, gain) >= start for gain in GAINS)
    assert all(focus(start, loss) <= start for loss in ("repetition", "window_crossed", "direction_changed"))


def test_H7_vitals_over_time_are_a_row_of_bars():
    assert sparkline([0, 0.5, 1], 10) == "▁▅█"
    assert sparkline([0.1, 0.9, 1.0], 2) == "▇█"
    assert sparkline([], 5) == sparkline([1.0], 0) == ""


@given(st.lists(shares, max_size=30), st.integers(0, 20))
def test_H7_a_chart_is_never_wider_than_asked(values, width):
    assert len(sparkline(values, width)) == min(len(values), width)
