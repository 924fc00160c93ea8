"""H5: whole requests, lived by the pacemaker's functions alone."""

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from duckflow.config.settings import DynamicLimits, PacemakerSettings
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


@every_row("paths", [9, 14, 20, 60, 199])
def test_I7_batch_work_is_never_interrupted_before_the_hard_limit(paths):
    duck = Duck(profile="file_operation")
    moves = [duck.live(loop(edit(f"f{place}", "a", "b"))) for place in range(paths - 1)]
    assert moves == [Go()] * (paths - 1)


def test_I7_at_the_hard_limit_the_user_is_asked_even_if_all_goes_well():
    duck = Duck(table=PacemakerSettings(dynamic_limits=DynamicLimits(hard_max_loops=50)))
    moves = [duck.live(loop(read(f"f{place}"))) for place in range(50)]
    assert moves[-1] == Consult(kind="over_exertion", cause="limit")
    assert set(moves[:-1]) == {Go()}


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


RECORDED = {
    "django": ("debugging", (0.9, 0.9, 0.9, 0.95, 0.95), "rrrsc eeeccc eeecc - -"),
    "pytest": ("debugging", (0.8, 0.9, 0.9, 0.95, 0.9), "rsc ecc ewc ecc ec"),
    "sphinx": ("code_analysis", (0.8, 0.85, 0.85, 0.9), "rssc cc cc ec eeec eec eec cc ec c c - -"),
    "a setting": ("multi_step_task", (0.9,), "ccc ccccc cccc ccc eeec eeeeeeeecc ecc ec c ec - -"),
    "a setting, native": (None, (None,), "sssc rrrrrrrsc rrrrrrrrrsc rccc eeecc eeeeeeeecc eeecc c -"),
    "fifteen loops of talk": ("general_chat", (0.75,), "r s c rr sc ec ec eec r c ec w ec c ec"),
    "sixty loops": ("simple_question", (None,), "r ec c " * 20),
}
"""Runs of strong models: task profile, confidence in each loop, and the actions of each loop by letter."""


def recorded_loop(actions: str, number: int):
    makes = {
        "r": lambda name: read(f"{name}.py", f"text of {name}"),
        "s": lambda name: use("file_ops.search", f"{name}.py:1: x", pattern=name),
        "c": lambda name: run("pytest", f"{name} failed"),
        "e": lambda name: edit("window.py", "old", f"new {name}"),
        "w": lambda name: write(f"{name}.py", "new"),
    }
    did = [makes[letter](f"n{number}_{place}") for place, letter in enumerate(actions) if letter != "-"]
    return loop(*did, next_step="continue" if did else "done")


@every_row(("profile", "confidence", "loops"), RECORDED.values(), ids=RECORDED.keys())
def test_H4_I7_flawless_work_keeps_its_strength_and_nobody_is_asked(profile, confidence, loops):
    duck = Duck(profile=profile)
    for number, actions in enumerate(loops.split()):
        duck.confidence = confidence[min(number, len(confidence) - 1)]
        assert duck.live(recorded_loop(actions, number)) == Go(), number
        assert (duck.vitals.mood >= 0.7, duck.vitals.focus >= 0.9, duck.vitals.stamina >= 0.7) == (True,) * 3


def test_H4_a_no_and_a_command_that_fails_cost_nothing():
    duck, calm = Duck(), Duck()
    for place in range(5):
        duck.live(
            loop(
                fail(write(f"f{place}", "x"), "The user said no.", "refused"),
                run("pytest", f"{place} failed"),
            )
        )
        calm.live(loop(run("pytest", f"{place} failed")))
    assert duck.vitals == calm.vitals
