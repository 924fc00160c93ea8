"""H5: whole requests, lived by the pacemaker's functions alone."""

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from duckflow.config.pacing import DynamicLimits, PacemakerSettings
from duckflow.domain.decision import TaskProfile
from duckflow.domain.pacing.vitals import Vitals
from duckflow.pacemaker.rules import Consult, Go, Replan
from fakes.pacing import Duck, edit, fail, loop, plan, read, run, use, write
from fakes.rows import every_row

STAGNATION = Consult(kind="stagnation", cause="focus")
CONFUSION = Consult(kind="confusion", cause="focus")
ORACLE = Consult(kind="oracle", cause="vitals")
FOR_EVER = {
    "reading a file": loop(read("a")),
    "reading two files": loop(read("a"), read("b")),
    "searching": loop(use("file_ops.search", "a:1: x", pattern="x")),
    "running the tests": loop(run("pytest", "1 failed in 0.31s")),
    "a failing action": loop(fail(read("a"))),
    "a refused action": loop(fail(write("a", "x"), "The user said no.", "refused")),
    "putting in the same line": loop(edit("a", "end", "x\nend")),
    "announcing": loop(),
    "telling the same plan": plan("Read parser.py", "Fix the bug"),
}


@every_row("one", FOR_EVER.values(), ids=FOR_EVER.keys())
@every_row("focus", [0.7, 0.75, 0.8, 0.9, 1.0])
def test_H5_an_action_repeated_for_ever_runs_four_times(one, focus):
    duck = Duck(Vitals(focus=focus))
    assert duck.live_on(one) == 4
    assert [type(move) for move in duck.moves] == [Go, Go, Replan, Consult]
    acts = duck.history[-1].acts
    kind = STAGNATION if acts else CONFUSION
    assert duck.moves[-1] == (ORACLE if any(act.failed for act in acts) else kind), "failures lower mood, too"


def test_H5_a_file_written_with_the_same_content_for_ever_is_written_four_times():
    duck = Duck()
    duck.live(loop(write("a", "x")))
    assert duck.live_on(loop(write("a", "x", changed=False))) == 3
    assert duck.moves[-1] == STAGNATION


@given(
    focus=st.floats(0.7, 1), profile=st.sampled_from([None, *get_args(TaskProfile)]), mood=st.floats(0.7, 1)
)
def test_H5_it_runs_four_times_whatever_the_task_and_however_the_duck_feels(focus, profile, mood):
    duck = Duck(Vitals(mood=mood, focus=focus), profile=profile, confidence=mood)
    assert duck.live_on(FOR_EVER["reading a file"]) == 4


def test_H5_and_four_times_again_after_the_user_said_go_on():
    duck = Duck()
    assert duck.live_on(FOR_EVER["running the tests"]) == 4
    duck.answer()
    assert isinstance(duck.live(loop(*FOR_EVER["running the tests"].did, answered=True)), Go)
    assert duck.live_on(FOR_EVER["running the tests"]) == 3


def test_H5_two_that_take_turns_for_ever_are_stopped():
    duck = Duck()
    for count in range(20):
        move = duck.live(loop(write("a", str(count % 2))))
        if isinstance(move, Consult):
            break
    assert move == STAGNATION
    assert count == 5


@every_row("paths", [9, 14, 20])
def test_I7_batch_work_is_never_interrupted_before_the_maximum(paths):
    duck = Duck(profile="file_operation")
    moves = [duck.live(loop(edit(f"f{place}", "a", "b"))) for place in range(paths - 1)]
    assert moves == [Go()] * (paths - 1)


def test_I7_at_the_maximum_the_user_is_asked_even_if_all_goes_well():
    duck = Duck()
    moves = [duck.live(loop(read(f"f{place}"))) for place in range(20)]
    assert moves[-1] == Consult(kind="over_exertion", cause="limit")
    assert set(moves[:-1]) == {Go()}


def test_I7_a_higher_maximum_lets_it_go_on():
    duck = Duck(table=PacemakerSettings(dynamic_limits=DynamicLimits(max_loops=60)))
    assert all(duck.live(loop(read(f"f{place}"))) == Go() for place in range(59))


def test_I7_work_that_stops_getting_on_is_stopped_at_the_limit():
    """Ever other arguments, ever the same failures: no repetition, and no progress either."""
    duck = Duck(profile="simple_question", confidence=1.0)
    first = duck.limit
    for place in range(30):
        move = duck.live(loop(fail(read(f"missing{place}"), f"missing{place} is not there")))
        if not isinstance(move, Go):
            break
    assert (place + 1, move) == (first, Consult(kind="stagnation", cause="limit"))


def test_H5_errors_that_pile_up_end_in_a_halt():
    duck = Duck(profile="research")
    for place in range(20):
        duck.unresolved = place
        move = duck.live(loop(read(f"f{place}")))
        if not isinstance(move, Go):
            break
    assert move == Consult(kind="over_exertion", cause="stamina")


def test_H5_a_doubtful_model_asks_once_and_then_goes_on():
    duck = Duck(confidence=0.6)
    moves = [duck.live(loop(read(f"f{place}"))) for place in range(5)]
    assert moves == [Consult(kind="lost_confidence", cause="mood"), *[Go()] * 4]


def test_H5_a_doubtful_model_that_repeats_itself_gets_the_health_report():
    duck = Duck(confidence=0.6)
    duck.live(loop(read("a")))
    assert duck.live_on(loop(read("a"))) == 2
    assert duck.moves[-1] == ORACLE
