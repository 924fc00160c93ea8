"""H3: loops that get nowhere, found by what they do and what comes of it."""

from dataclasses import replace

from duckflow.domain.decision import Action
from fakes.pacing import edit, fail, loop, plan, read, run, signs_of, use, write
from fakes.rows import every_row

FAILING = "1 failed, 4 passed in 0.31s"

# Signs that the last of these loops must show.
FOUND = [
    ("a file is read again", [loop(read("a")), loop(read("a"))], "repeated"),
    ("again after another read", [loop(read("a")), loop(read("b")), loop(read("a"))], "repeated"),
    (
        "the fourth loop back still counts",
        [loop(read("a")), loop(read("b")), loop(read("c")), loop(read("d")), loop(read("a"))],
        "repeated",
    ),
    ("the path is written otherwise", [loop(read("src/a")), loop(read("./src//a"))], "repeated"),
    (
        "the arguments come in another order",
        [loop(use("mcp.x.find", q="a", n=1)), loop(use("mcp.x.find", n=1, q="a"))],
        "repeated",
    ),
    (
        "an argument is given as nothing",
        [loop(use("file_ops.list_files")), loop(use("file_ops.list_files", path=".", pattern=None))],
        "repeated",
    ),
    ("a whole number as a fraction", [loop(read("a", start=1)), loop(read("a", start=1.0))], "repeated"),
    ("a command runs again", [loop(run("pytest", FAILING)), loop(run("pytest", FAILING))], "repeated"),
    ("with other blanks", [loop(run("ls -l  src", "a")), loop(run(" ls -l src ", "a"))], "repeated"),
    (
        "only its time differs",
        [loop(run("pytest", "5 passed in 0.12s")), loop(run("pytest", "5 passed in 1.07s"))],
        "repeated",
    ),
    (
        "only its date differs",
        [loop(run("make", "2026-01-02 10:11:12 ok")), loop(run("make", "2026-01-02 10:11:15 ok"))],
        "repeated",
    ),
    (
        "only an address in memory differs",
        [loop(run("python x.py", "<A at 0x7f01>")), loop(run("python x.py", "<A at 0x7f99>"))],
        "repeated",
    ),
    (
        "only a temporary file differs",
        [loop(run("make", "wrote /tmp/x81h/out")), loop(run("make", "wrote /tmp/q02k/out"))],
        "repeated",
    ),
    (
        "only the evidence pointed at differs",
        [
            loop(use("file_ops.search", "see [e3]", pattern="x")),
            loop(use("file_ops.search", "see [e9]", pattern="x")),
        ],
        "repeated",
    ),
    (
        "only the ids differ",
        [
            loop(use("task_loop.run", "list_1a2b3c4d runs", step_id="s1")),
            loop(use("task_loop.run", "list_99b3cafe runs", step_id="s1")),
        ],
        "repeated",
    ),
    ("the Japanese seconds differ", [loop(run("make", "0.1 秒")), loop(run("make", "0.2 秒"))], "repeated"),
    (
        "the second time the file is only pointed to",
        [loop(read("a", "body")), loop(use("x")), loop(replace(read("a", "body"), text="a: see above"))],
        "repeated",
    ),
    ("a whole list again", [loop(read("a"), read("b")), loop(read("a"), read("b"))], "repeated"),
    ("a failure again", [loop(fail(read("a"))), loop(fail(read("a")))], "repeated"),
    (
        "a failure again, and the rest of the list did not run",
        [
            loop(fail(read("a")), left=(Action(operation="x"),)),
            loop(fail(read("a")), left=(Action(operation="x"),)),
        ],
        "repeated",
    ),
    (
        "a refused change is asked for again",
        [loop(fail(write("a", "x"), "The user said no.", "refused"))] * 2,
        "repeated",
    ),
    (
        "the same file is written again",
        [loop(write("a", "x")), loop(write("a", "x", changed=False))],
        "repeated",
    ),
    (
        "and again",
        [loop(write("a", "x")), *[loop(write("a", "x", changed=False))] * 2],
        "repeated",
    ),
    (
        "the same line is put in again",
        [loop(edit("a", "end", "x\nend")), loop(edit("a", "end", "x\nend"))],
        "repeated",
    ),
    (
        "the same line is put in again, and the program looked at it meanwhile",
        [
            loop(read("a")),
            loop(edit("a", "end", "x\nend")),
            loop(edit("a", "end", "x\nend"), looks=(read("a", "y"),)),
        ],
        "repeated",
    ),
    (
        "the file is written again after the tests",
        [loop(write("a", "x")), loop(run("pytest", FAILING)), loop(write("a", "x", changed=False))],
        "repeated",
    ),
    (
        "two that read take turns",
        [loop(read("a")), loop(read("b")), loop(read("a")), loop(read("b"))],
        "alternating",
    ),
    (
        "done and undone and done and undone",
        [loop(write("a", "1")), loop(write("a", "2")), loop(write("a", "1")), loop(write("a", "2"))],
        "alternating",
    ),
    (
        "an edit there and back",
        [loop(edit("a", "x", "y")), loop(edit("a", "y", "x"))] * 2,
        "alternating",
    ),
    (
        "an edit there and back, and the program looks each time",
        [
            loop(read("a", "x")),
            loop(edit("a", "x", "y")),
            loop(edit("a", "y", "x"), looks=(read("a", "y"),)),
            loop(edit("a", "x", "y"), looks=(read("a", "x"),)),
            loop(edit("a", "y", "x"), looks=(read("a", "y"),)),
        ],
        "alternating",
    ),
    (
        "files are made again and the tests fail as before",
        [loop(run("make gen", "ok", changed=("g",))), loop(run("pytest", FAILING))] * 2,
        "alternating",
    ),
    (
        "the same failure with other arguments a third time",
        [loop(fail(edit("a", find, "x"), "a: not found")) for find in ("p", "q", "r")],
        "failing",
    ),
    (
        "the same failure a third time, with looks in between",
        [
            loop(fail(edit("a", "p", "x"), "a: not found")),
            loop(read("a", start=1)),
            loop(fail(edit("a", "q", "x"), "a: not found")),
            loop(read("a", start=5)),
            loop(fail(edit("a", "r", "x"), "a: not found")),
        ],
        "failing",
    ),
    (
        "the same failure a third time, although other files were changed",
        [
            loop(fail(edit("a", "p", "x"), "a: not found")),
            loop(write("b", "1")),
            loop(fail(edit("a", "q", "x"), "a: not found")),
            loop(write("c", "1")),
            loop(fail(edit("a", "r", "x"), "a: not found")),
        ],
        "failing",
    ),
    (
        "a server that is not there, a third time",
        [loop(fail(use("mcp.x.find", q=q), "timed out after 5 s")) for q in "abc"],
        "failing",
    ),
    ("announced and not done", [loop(), loop()], "announced"),
    ("announced with the same plan", [plan("Write the letter"), plan("Write the letter!")], "announced"),
    (
        "announced with a plan of before",
        [loop(read("a"), delta={"plan_brief": ("Write the letter",)}), loop(), plan("Write the letter!")],
        "announced",
    ),
    ("announced after work", [loop(read("a")), loop(), loop()], "announced"),
    (
        "announced with the same goal noted",
        [loop(delta={"goal": "x"}), loop(delta={"goal": "x"})],
        "announced",
    ),
    (
        "announced a third time, with something noted each time",
        [loop(delta={"goal": goal}) for goal in ("x", "y", "z")],
        "announced",
    ),
    (
        "the same plan in other words",
        [
            plan("Read parser.py", "Fix the bug", "Run the tests"),
            plan("First read parser.py", "then fix the bug", "finally run the tests"),
        ],
        "same_plan",
    ),
    (
        "the same plan after something that failed",
        [
            loop(fail(read("x")), delta={"plan_brief": ("Read parser.py", "Fix the bug")}),
            plan("Read parser.py", "Fix that bug"),
        ],
        "same_plan",
    ),
    (
        "the same plan in Japanese",
        [plan("設定を読み込む", "不具合を直す"), plan("設定を読み込む", "その不具合を直す")],
        "same_plan",
    ),
    ("the same plan, word for word", [plan("Write the letter"), plan("Write the letter")], "same_plan"),
]


@every_row(("loops", "sign"), [case[1:] for case in FOUND], ids=[case[0] for case in FOUND])
def test_H3_a_loop_that_gets_nowhere_is_found(loops, sign):
    assert sign in signs_of(*loops)


@every_row("loops", [case[1] for case in FOUND], ids=[case[0] for case in FOUND])
def test_H3_what_the_user_says_is_a_new_beginning(loops):
    """The very same loop right after the user spoke shows nothing: they may have asked for it."""
    *before, last = loops
    for spoke in ("said", "answered"):
        again = type(last)(**{**vars(last), spoke: True})
        assert signs_of(*before, again) == ()


def test_H3_a_thought_between_two_of_the_same_is_no_sign_itself():
    assert signs_of(loop(read("a")), loop(), loop(read("a")), loop()) == ()


def test_there_are_enough_cases():
    assert len(FOUND) >= 30
    assert {case[2] for case in FOUND} == {"repeated", "alternating", "announced", "failing", "same_plan"}
