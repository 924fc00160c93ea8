"""G3, G5: commands' changes in caches and build folders, and to their own files, are judged and shown."""

import re
from pathlib import Path
from typing import Any

import pytest

from fakes.engine import decision, engine
from fakes.repository import git, make_repository


def run(command: str) -> dict[str, Any]:
    return {"operation": "shell.run", "args": {"command": command}}


async def test_G5_a_question_names_what_could_run_in_a_cache_and_counts_the_rest(folder: Path):
    planted = "git init -q __pycache__/x; git -C __pycache__/x config core.pager ./evil"
    command = (
        f"echo 1 > a.txt; mkdir __pycache__; echo 1 | tee __pycache__/a.pyc > __pycache__/b.pyc; {planted}"
    )
    async with engine(folder, decision("", run(command)), decision("Done."), mode="ask") as duck:
        assert await duck.app.chat.say("go") == "awaiting_approval"
        assert duck.state.approval is not None
        shown = duck.state.approval.difference
        assert "pager = ./evil" in shown
        assert re.search(r"files in tool caches: \d+", shown)


async def test_G3_sources_in_a_folder_with_the_name_of_a_build_folder_are_judged_like_others(folder: Path):
    make_repository(folder)
    (folder / "build").mkdir()
    (folder / "build/deploy.sh").write_text("echo deploy\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "sources")
    for command in ("echo evil >> build/deploy.sh", "echo evil > build/new.sh"):
        async with engine(folder, decision("", run(command)), decision("Done."), mode="auto") as duck:
            assert await duck.app.chat.say("go") == "awaiting_approval", command
            assert duck.state.approval is not None
            assert duck.state.approval.reasons == ("executable",)


@pytest.mark.xfail(strict=True, reason="known gap: see docs/safety.md")
async def test_G3_a_compiled_file_that_does_not_fit_its_source_asks(folder: Path):
    """Python runs it in place of the source, if the source's time and size stand in it."""
    (folder / "a.py").write_text("x = 1\n")
    command = "mkdir __pycache__; echo evil > __pycache__/a.cpython-311.pyc"
    async with engine(folder, decision("", run(command)), decision("Done."), mode="auto") as duck:
        assert await duck.app.chat.say("go") == "awaiting_approval"


async def test_G3_a_file_that_the_user_changed_is_no_longer_its_own_to_delete(folder: Path):
    steps = [run("echo 1 > made; echo 1 > other"), run("rm other"), run("rm made")]
    answers = [one for step in steps for one in (decision("", step), decision("Done."))]
    async with engine(folder, *answers, mode="edits") as duck:
        assert await duck.app.chat.say("go") == "done"
        assert await duck.app.chat.say("go on") == "done"
        (folder / "made").write_text("a whole evening of work\n")
        assert await duck.app.chat.say("go on") == "awaiting_approval"
    assert not (folder / "other").exists()
    assert (folder / "made").exists()
