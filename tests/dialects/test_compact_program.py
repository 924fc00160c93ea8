"""Decisions that the program makes for a small model, because the words leave no choice (J11)."""

from duckflow.dialects.compact_prompt import Choices
from fakes.model import FakeModel
from fakes.rows import every_row
from fakes.small_folder import SMALL, Decided, decide


async def test_J11_after_tests_that_could_not_start_nothing_more_is_written():
    """The real model wrote a file with the name pytest."""
    model = FakeModel(traits=SMALL)
    decided = (await decide(model, Decided(Choices(wish="change", untested=True)))).decision
    assert "could not start" in decided.reply
    assert (decided.actions, decided.next_step, model.requests) == ((), "done", [])


@every_row(
    ("choices", "words"),
    [
        (Choices(plain="undo"), "/undo"),
        (Choices(plain="about"), "/help"),
        (Choices(plain="changes"), "changed nothing"),
        (Choices(plain="changes", changed=("a.py", "b.py")), "a.py, b.py"),
        (Choices(plain="leave"), "as it is"),
        (Choices(plain="talk", talk="welcome"), "welcome"),
        (Choices(plain="talk", talk="hello"), "Hello!"),
        (Choices(plain="talk", talk="bye"), "Type exit"),
        (Choices(plain="talk"), "What shall I do next?"),
        (Choices(plain="large"), "too large for this small model"),
        (Choices(plain="run", command="python3 guess.py"), "another terminal: python3 guess.py"),
        (Choices(plain="run", command="python3 guess.py", exit_code=0), "It ran"),
        (Choices(plain="run", command="python3 guess.py", exit_code=1), "It failed"),
        (Choices(shows="a.py", content="x = 1\n"), "````\nx = 1\n````"),
        (Choices(lists=True, files=("a.py", "b.py")), "- `a.py`\n- `b.py`"),
        (Choices(lists=True), "no files here"),
        (Choices(missing="b.py"), "no b.py here"),
        (Choices(plain="run"), "type !"),
        (Choices(plain="tests"), "no tests"),
        (Choices(plain="tests", command="pytest", exit_code=0), "passed"),
        (Choices(plain="tests", command="pytest", exit_code=1), "failed"),
        (Choices(plain="tests", command="pytest", exit_code=127), "not be run"),
        (Choices(plain="tests", exit_code=127, own_runs=("- ✓ test_a.py",)), "without it:\n- ✓ test_a.py"),
    ],
)
async def test_J11_what_a_small_model_can_not_do_is_answered_by_the_program(choices: Choices, words: str):
    """Asked to run the tests, the real model said that they had passed; asked to undo, that it had."""
    model = FakeModel(traits=SMALL)
    decided = await decide(model, Decided(choices))
    assert words in decided.decision.reply
    assert (decided.decision.actions, model.requests) == ((), [])


async def test_J11_tests_are_run_when_the_user_asks_for_it():
    decided = await decide(FakeModel(traits=SMALL), Decided(Choices(plain="tests", command="pytest -q")))
    (action,) = decided.decision.actions
    assert (action.operation, action.args) == ("shell.run", {"command": "pytest -q"})
