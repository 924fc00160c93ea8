"""J3: tests that failed behind an exit code 0 count as failed everywhere, and the user sees it."""

from pathlib import Path

from duckflow.domain.events import ActionFinished
from duckflow.ui.views.events import Describer
from fakes.engine import action, decision, engine

TESTS = (
    "#!/bin/sh\necho 'FAILED test_a.py::test_x - assert 4 == 3'\necho '1 failed, 2 passed in 0.10s'\nexit 1\n"
)
COMMAND = "./pytest -q || true"


async def test_J3_tests_that_failed_behind_exit_code_0_are_shown_told_and_prove_nothing(folder: Path):
    script = folder / "pytest"
    script.write_text(TESTS)
    script.chmod(0o755)
    run = {"operation": "shell.run", "args": {"command": COMMAND}}
    turn = decision("All is well.", action("write_file", path="a.txt", content="a\n"), run, next_step="done")
    async with engine(folder, turn, decision("One test fails."), mode="auto") as duck:
        await duck.app.chat.say("Write a.txt and run the tests")
        ran = next(one for one in duck.of(ActionFinished) if one.operation == "shell.run")
        assert (ran.exit_code, ran.tests_failed) == (0, "1 failed, 2 passed in 0.10s")
        assert "Tests failed, whatever the exit code says: 1 failed, 2 passed in 0.10s" in ran.text
        describe = Describer()
        shown = [one for one in map(describe, duck.events) if one]
        (line,) = [one for one in shown if one.kind == "action" and COMMAND in one.text]
        assert (line.text, line.tone) == (
            f"⚠ $ {COMMAND}: tests failed (1 failed, 2 passed in 0.10s)",
            "warning",
        )
        assert not any("Run without errors" in one.text for one in shown)
        entry = next(one for one in duck.state.transcript if one.evidence_id == ran.evidence_id)
        assert entry.supports == "nothing"
        assert duck.state.reply == "One test fails.", "the model saw it before it could be done"
