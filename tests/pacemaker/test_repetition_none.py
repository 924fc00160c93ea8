"""H3: work that looks alike and is none the less progress. Not one false alarm."""

from hypothesis import given
from hypothesis import strategies as st

from duckflow.domain.pacing.limits import LoopTrace
from duckflow.pacemaker.repetition import find_signs, same_plan
from duckflow.pacemaker.trace import without_noise
from fakes.pacing import edit, fail, loop, plan, read, run, signs_of, trace_all, use, write
from fakes.rows import every_row

FAILING = "1 failed, 4 passed in 0.31s"
TESTS = run("pytest", FAILING)

# In none of these loops, at no point, anything may be found.
NOTHING = [
    (
        "a look and an edit in one list, then the tests again",
        [loop(TESTS), loop(read("b"), edit("a", "p", "q")), loop(TESTS)],
    ),
    ("numbers that differ by a fraction", [loop(use("mcp.x.zoom", by=by)) for by in (1, 1.5, 1.75)]),
    (
        "building and testing, with fewer errors each time",
        [
            step
            for count in "321"
            for step in (loop(run("build", f"{count} errors", changed=("o",))), loop(TESTS))
        ],
    ),
    ("work put off until a task reports", [loop(next_step="defer")] * 3),
    (
        "the user wants it again and again",
        [loop(TESTS), *[loop(TESTS, said=True)] * 3, loop(read("a"))],
    ),
    (
        "what was done before the user last spoke does not count",
        [loop(read("a"), said=True), loop(read("b"), said=True), loop(read("a"))],
    ),
    ("one of two has something new", [loop(read("a"), read("b", text)) for text in "123"]),
    (
        "a change that can't be made twice",
        [loop(edit("a", "p", "q")), loop(fail(edit("a", "p", "q"), "no p"))],
    ),
    (
        "a list that stopped and then ran through",
        [loop(fail(read("a")), left=(read("b").action,)), loop(read("a"), read("b"))],
    ),
    (
        "in turn, and the user changed a file meanwhile",
        [
            loop(run("make gen", "ok", changed=("g",))),
            loop(TESTS),
            loop(run("make gen", "ok", changed=("g",))),
            loop(TESTS, looks=(read("a", "2"),)),
        ],
    ),
    (
        "the user changed a file before another look",
        [loop(TESTS), loop(read("b"), looks=(read("a"),)), loop(TESTS)],
    ),
    (
        "two notes after work, then work",
        [loop(read("a")), *[loop(delta={"goal": one}) for one in "xy"], loop(read("b"))],
    ),
    (
        "goal first, constraints next, then work",
        [loop(delta={"goal": "x"}), loop(delta={"constraints": ("c",)}), loop(read("a"))],
    ),
    (
        "two failures under one plan",
        [loop(fail(read(path)), delta={"plan_brief": ("Read it", "Mend it")}) for path in "ab"],
    ),
    ("one loop", [loop(read("a"))]),
    ("several files are read", [loop(read(path)) for path in "abcdef"]),
    ("several empty files are read", [loop(read(f"{path}/__init__.py", "")) for path in "abcdef"]),
    ("a long file is read in parts", [loop(read("a", start=at, end=at + 99)) for at in (1, 100, 200, 300)]),
    ("several files get the same content", [loop(write(path, "x")) for path in "abcdef"]),
    ("the same edit in several files", [loop(edit(path, "old", "new")) for path in "abcdef"]),
    ("several edits of one file", [loop(edit("a", find, "new")) for find in "pqrstu"]),
    (
        "several commands with the same output",
        [loop(run(f"pytest tests/{one}", "1 passed")) for one in "abcde"],
    ),
    (
        "several searches that find nothing",
        [loop(use("file_ops.search", "", pattern=one)) for one in "abcde"],
    ),
    (
        "edit, test, edit, test, and still red",
        [step for find in "pqrs" for step in (loop(edit("a", find, "x")), loop(TESTS))],
    ),
    (
        "test, edit, test",
        [loop(TESTS), loop(edit("a", "p", "q")), loop(TESTS), loop(edit("a", "r", "s")), loop(TESTS)],
    ),
    ("edit and test in one list", [loop(edit("a", find, "x"), TESTS) for find in "pqrs"]),
    ("write whole files and test", [loop(write("a", text), TESTS) for text in "pqrs"]),
    (
        "a file is read again after an edit",
        [loop(read("a", "1")), loop(edit("a", "1", "2")), loop(read("a", "2"))],
    ),
    (
        "a file is read again after another one was written",
        [loop(read("a")), loop(write("b", "1")), loop(read("a"))],
    ),
    (
        "a command that gives something else",
        [loop(run("git status", text)) for text in ("clean", "M a", "A b")],
    ),
    ("a count that grows", [loop(run("wc -l log", f"{count} log")) for count in (10, 20, 30, 40)]),
    ("a command that changes files each time", [loop(run("step", "", changed=("a",)))] * 4),
    (
        "the user changed the file meanwhile",
        [loop(TESTS), loop(read("a", "1")), loop(TESTS, looks=(read("a", "2"),))],
    ),
    (
        "the user changed a file that was edited and read before",
        [
            loop(edit("a", "p", "q")),
            loop(read("a", "q")),
            loop(TESTS),
            loop(TESTS, looks=(read("a", "user's"),)),
        ],
    ),
    (
        "the background finished something",
        [loop(use("task.status", "2 of 5")), loop(use("task.status", "2 of 5"), tasks=1)],
    ),
    ("five loops back", [loop(read("a")), *[loop(read(path)) for path in "bcde"], loop(read("a"))]),
    ("a failure, then it works", [loop(fail(read("a"))), loop(read("a"))]),
    ("a failure, then another", [loop(fail(read("a"))), loop(fail(read("b")))]),
    ("the same failure on three files", [loop(fail(read(path))) for path in "abc"]),
    (
        "the same failure twice, then it works, and again",
        [
            loop(fail(edit("a", "p", "x"), "a: not found")),
            loop(fail(edit("a", "q", "x"), "a: not found")),
            loop(edit("a", "r", "x")),
            loop(fail(edit("a", "s", "x"), "a: not found")),
            loop(edit("a", "t", "x")),
        ],
    ),
    (
        "three failures on one file, each another",
        [loop(fail(edit("a", text, "x"), f"a: {text} not found")) for text in ("p", "q", "r")],
    ),
    ("a plan, then the work", [plan("Read a", "Fix b"), loop(read("a")), loop(edit("b", "1", "2"))]),
    (
        "a plan that is sent along with all the work",
        [loop(read(path), delta={"plan_brief": ("Read all", "Then sum up")}) for path in "abcde"],
    ),
    ("goal first, plan next, then work", [loop(delta={"goal": "x"}), plan("Do y"), loop(read("a"))]),
    ("a thought between two actions", [loop(read("a")), loop(), loop(read("b")), loop(), loop(read("c"))]),
    ("a step is taken while nothing is done", [loop(delta={"goal": "x"}), loop(step=True), loop(read("a"))]),
    (
        "another plan after the first",
        [plan("Read parser.py", "Fix the bug"), plan("Write a letter to the author of lexer.py")],
    ),
    (
        "the same plan for another file",
        [plan("Edit src/a.py and run the tests"), plan("Edit src/b.py and run the tests"), loop(read("a"))],
    ),
    (
        "the plan is told again after it got on",
        [
            plan("Read parser.py", "Fix the bug"),
            loop(read("parser.py")),
            plan("Read parser.py", "Fix the bug"),
        ],
    ),
    ("waiting for the background", [loop(tasks=1), loop(tasks=1), loop(tasks=1)]),
    ("a question to the user", [loop(next_step="pending_user"), loop(next_step="pending_user", said=True)]),
    ("work put off twice", [loop(next_step="defer"), loop(next_step="defer", said=True)]),
    ("the user wants it once more", [loop(TESTS), loop(TESTS, said=True), loop(read("a"))]),
    (
        "three in turn, each with something new",
        [
            step
            for at in (1, 2)
            for step in (loop(read("a", start=at)), loop(run(f"x{at}")), loop(write("b", f"{at}")))
        ],
    ),
    (
        "two in turn, and one of them finds more each time",
        [
            step
            for at in (1, 2, 3)
            for step in (loop(run("build", f"{at} errors", changed=("o",))), loop(run("cat log", f"{at}")))
        ],
    ),
    (
        "several plan steps get their tasks",
        [loop(use("task_tool.generate_list", step_id=f"step_{at}")) for at in range(5)],
    ),
    (
        "plan steps are ticked off",
        [loop(use("plan_tool.update_step", step_id=f"s{at}", status="completed")) for at in range(5)],
    ),
    ("several things are remembered", [loop(use("memory.remember", text=f"{at}")) for at in range(5)]),
    (
        "files are deleted one by one",
        [loop(use("file_ops.delete_file", f"deleted {one}", path=one)) for one in "abcd"],
    ),
    (
        "a first goal and its work",
        [loop(read("a"), delta={"goal": "x"}), loop(read("b"), delta={"goal": "x"})],
    ),
]


@every_row("loops", [case[1] for case in NOTHING], ids=[case[0] for case in NOTHING])
def test_H3_work_that_gets_on_raises_no_alarm_at_any_point(loops):
    for end in range(1, len(loops) + 1):
        assert signs_of(*loops[:end]) == (), end


def test_there_are_enough_cases_of_this_too():
    assert len(NOTHING) >= 30


names = st.text("abcdefgh", min_size=1, max_size=3)
did = st.one_of(
    st.builds(read, names, names),
    st.builds(write, names, names),
    st.builds(run, names, names),
    st.builds(edit, names, names, names),
    st.builds(fail, st.builds(read, names)),
)


@given(st.lists(st.builds(loop, did), max_size=8))
def test_H3_a_list_that_was_not_there_before_is_never_called_a_repetition(loops):
    for end in range(1, len(loops) + 1):
        now = trace_all(loops[:end])[-1]
        before = [trace.calls for trace in trace_all(loops[: end - 1])]
        if now.calls not in before:
            assert not {"repeated", "alternating"} & set(signs_of(*loops[:end]))


@given(st.permutations([loop(read(path), edit(path, "a", "b"), run(f"test {path}")) for path in "abcdefgh"]))
def test_H3_batch_work_raises_no_alarm_in_any_order(loops):
    assert all(signs_of(*loops[:end]) == () for end in range(1, len(loops) + 1))


def test_nothing_to_compare_with_is_no_sign():
    assert find_signs((), LoopTrace()) == ()


@every_row(
    ("one", "other", "same"),
    [
        ((), (), False),
        (("Read a.py",), (), False),
        (("Read a.py",), ("read A.py!",), True),
        (("Read a.py", "then b.py"), ("Read b.py", "then a.py"), True),
        (("Fix the bug in the parser",), ("Fix the bug in the lexer",), True),
        (("Fix the bug in parser.py",), ("Fix the bug in lexer.py",), False),
        (("rename old_name",), ("rename new_name",), False),
        (("Draw the picture", "colour it"), ("Sell the house", "buy a boat"), False),
        (("Read a.py",), ("Read a.py", "Write tests for all of it", "Publish a new version"), False),
        (("設定を読む",), ("結果を書く",), False),
        (("設定を読む",), ("設定を読む。",), True),
        (("犬が猫を追う",), ("猫が犬を追う",), False),
        (("版",), ("版",), True),
        (("_", "..."), ("_", "..."), False),
        (("mend three things",), ("mend three things right now",), True),
        (("mend three things",), ("mend three things right now please",), False),
    ],
)
def test_two_plans_are_the_same_by_their_names_and_most_of_their_words(one, other, same):
    """Without names, one other word among six is other wording; it counts only where nothing was done."""
    assert same_plan(one, other) is same
    assert same_plan(other, one) is same


@every_row(
    ("text", "other", "same"),
    [
        ("Ran 3 tests in 0.001s", "Ran 3 tests in 0.102s", True),
        ("Ran 3 tests in 0.001s", "Ran 4 tests in 0.001s", False),
        ("ok pkg 3 ms", "ok pkg 12 ms", True),
        ("took 3 seconds", "took 1 second", True),
        ("3 source files", "4 source files", False),
        ("3 errors", "2 errors", False),
        ("12:00:01 done", "12:00:09 done", True),
        ("version 1.2", "version 1.3", False),
        ("exit code 1", "exit code 2", False),
        ("/tmp/a1/x: no", "/tmp/b2/x: no", True),
        ("src/a: no", "src/b: no", False),
        ("40 %", "60 %", False),
        ("1" * 50_000 + "x", "1" * 50_000 + "y", False),
    ],
)
def test_only_what_differs_from_run_to_run_is_left_out_of_a_result(text, other, same):
    assert (without_noise(text) == without_noise(other)) is same
