"""Evidence that an evaluator sees (J2)."""

import subprocess
from pathlib import Path
from typing import Any

from duckflow.domain.events import Evaluated, LimitSet, RequirementsFound
from duckflow.domain.questions.approval import AnswerApproval
from fakes.engine import action, decision, engine
from fakes.model_server import ModelServer
from fakes.plays import asked_for, play

LINES = "".join(f"line {number}\n" for number in range(1, 2_001))


def shell(command: str) -> dict[str, Any]:
    return {"operation": "shell.run", "args": {"command": command}}


def edit(path: str, find: str, replace: str) -> dict[str, Any]:
    return action("edit_file", path=path, edits=[{"find": find, "replace": replace}])


async def judge_reads(folder: Path, *decisions: str, **others: Any) -> tuple[str, Any]:
    """Return the first question for a verdict, and the engine afterwards."""
    script = play(*decisions, **others)
    with ModelServer(script) as server:
        async with engine(folder, server=server, mode="auto") as duck:
            assert await duck.app.chat.say("Mend line 1000 and say why") == "done"
        for one in server.requests:
            if asked_for(one.body) == "SatisfactionEvaluation":
                return one.body["messages"][-1]["content"], duck
    raise AssertionError("nobody was asked to judge")


def in_git(folder: Path, ignored: str) -> None:
    (folder / ".gitignore").write_text(ignored)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)


async def test_J2_the_judge_sees_the_difference_and_the_last_run_not_whole_files_or_old_looks(folder):
    (folder / "long.txt").write_text(LINES)
    text, duck = await judge_reads(
        folder,
        decision("", action("read_file", path="long.txt")),
        decision("", shell("grep -n 'line 1000$' long.txt; echo before the change")),
        decision("", edit("long.txt", "line 1000\n", "the thousandth line\n")),
        decision("", shell("sed -n 1000p long.txt")),
        decision("It is mended."),
    )
    assert "-line 1000\n+the thousandth line\n" in text
    assert "@@ -997,7 +997,7 @@" in text
    assert "$ sed -n 1000p long.txt\nshell.run: ok\nexit code 0\nthe thousandth line" in text
    assert "before the change" not in text
    assert "line 1500" not in text
    assert len(text) < 3_000
    of_file = next(one for one in duck.of(Evaluated)[0].checks if "long.txt" in one.text)
    assert f"[{of_file.evidence_id}] check of long.txt" in text


async def test_J2_the_difference_is_that_of_the_whole_request_and_of_new_and_removed_files(folder):
    for name in ("a.txt", "gone.txt", "back.txt"):
        (folder / name).write_text(f"{name} as it was\n")
    text, _ = await judge_reads(
        folder,
        decision(
            "",
            edit("a.txt", "as it was", "in between"),
            edit("a.txt", "in between", "at the end"),
            action("write_file", path="new.txt", content="all of it is new\n"),
            action("delete_file", path="gone.txt"),
            edit("back.txt", "as it was", "for a moment"),
            edit("back.txt", "for a moment", "as it was"),
        ),
        decision("Done."),
    )
    assert "-a.txt as it was\n+a.txt at the end\n" in text
    assert "in between" not in text.partition("[reply]")[0].partition("check of a.txt")[2]
    assert "+all of it is new" in text
    assert "-gone.txt as it was" in text
    assert "for a moment" not in text


async def test_J2_large_changes_are_kept_and_shown_in_bounds_and_every_file_has_its_part(folder):
    big = "".join(f"print({number})\n" for number in range(5_000))
    text, duck = await judge_reads(
        folder,
        decision("", *(action("write_file", path=f"big{n}.py", content=big) for n in range(3))),
        decision("", action("write_file", path="small.py", content="x = 1\ny = 2\n")),
        decision("Done."),
    )
    assert all(f"+++ b/big{n}.py" in text for n in range(3))
    assert text.count("added and 0 removed lines") == 3
    assert "+x = 1\n+y = 2" in text
    assert len(text) < 70_000
    assert sum(len(one.text) for one in duck.of(Evaluated)[0].checks) < 130_000


async def test_J2_caches_and_what_git_ignores_are_not_for_the_judge(folder):
    in_git(folder, "*.log\nout/\n")
    text, _ = await judge_reads(
        folder,
        decision(
            "",
            shell(
                "mkdir -p pkg/__pycache__ out; echo x > pkg/a.py; echo c > pkg/__pycache__/a.cpython-311.pyc;"
                " echo l > run.log; echo o > out/o.txt; echo k > pkg/kept.txt"
            ),
        ),
        decision("Done."),
    )
    seen = text.partition("check of ")[1] + text.partition("check of ")[2]
    assert "pkg/a.py" in seen
    assert "pkg/kept.txt" in seen
    assert not any(name in seen for name in ("cpython", "check of run.log", "out/o.txt"))


async def test_J2_if_only_an_ignored_file_was_wanted_it_is_what_is_judged(folder):
    in_git(folder, "*.local\n")
    text, _ = await judge_reads(
        folder, decision("", action("write_file", path="a.local", content="mine\n")), decision("Done.")
    )
    assert "+mine" in text


async def test_J2_a_long_request_reaches_the_judge_once_and_whole(folder):
    request = "\n".join(f"{number}. the report has column {number}" for number in range(400))
    script = play(decision("", action("write_file", path="a.txt", content="x\n")), decision("Done."))
    with ModelServer(script) as server:
        async with engine(folder, server=server, mode="auto") as duck:
            assert await duck.app.chat.say(request) == "done"
        asked = {asked_for(one.body): one.body["messages"][-1]["content"] for one in server.requests}
    for output in ("RequirementList", "SatisfactionEvaluation"):
        assert asked[output].count("the report has column 399") == 1, output
        assert request in asked[output], output


async def test_J1_an_answer_whose_kind_nobody_named_costs_one_small_question(folder):
    """The requirements are asked for with the kind of task: if it is talk, there is nothing to judge."""
    listed = {"requirements": [{"requirement": "say hello"}], "profile": "general_chat"}
    with ModelServer(play(decision("Hello!"), RequirementList=[listed])) as server:
        async with engine(folder, server=server) as duck:
            assert await duck.app.chat.say("Hello") == "done"
            assert duck.state.finished.profile == "general_chat"
            assert duck.of(RequirementsFound)[0].requirements == ()
        assert [asked_for(one.body) for one in server.requests] == ["Decision", "RequirementList"]


async def test_J1_an_answer_of_an_unknown_kind_is_judged(folder):
    with ModelServer(play(decision("It counts words."))) as server:
        async with engine(folder, server=server) as duck:
            assert await duck.app.chat.say("What does wc do?") == "done"
        outputs = [asked_for(one.body) for one in server.requests]
        assert outputs == ["Decision", "RequirementList", "SatisfactionEvaluation"]


async def test_I2_the_kind_of_task_that_comes_with_the_requirements_sets_the_limit_again(folder):
    listed = {"requirements": [{"requirement": "a.txt"}], "profile": "debugging"}
    turns = [decision("", action("write_file", path="a.txt", content=f"{n}\n")) for n in range(3)]
    with ModelServer(play(*turns, decision("Done."), RequirementList=[listed])) as server:
        async with engine(folder, server=server) as duck:
            assert await duck.app.chat.say("Mend it") == "done"
            limits = [(one.limit.profile, one.limit.base) for one in duck.of(LimitSet)]
    assert limits == [(None, 8), ("debugging", 14)]


async def test_J3_a_command_that_failed_goes_back_to_the_model_before_any_verdict(folder):
    script = play(
        decision("All is well.", shell("exit 3"), next_step="done"),
        decision("It fails."),
        RequirementList=[{"requirements": [{"requirement": "how it ends", "asks_for": "information"}]}],
    )
    with ModelServer(script) as server:
        async with engine(folder, server=server, mode="auto") as duck:
            assert await duck.app.chat.say("Try it") == "done"
        outputs = [asked_for(one.body) for one in server.requests]
    assert outputs.count("Decision") == 2
    assert outputs[-1] == "SatisfactionEvaluation"


async def test_J3_what_the_user_refused_is_told_to_the_judge_as_their_wish(folder):
    (folder / "a.txt").write_text("a\n")
    script = play(
        decision("", action("write_file", path="b.txt", content="b\n")),
        decision("", action("delete_file", path="a.txt")),
        decision("b.txt is there, a.txt stays."),
    )
    with ModelServer(script) as server:
        async with engine(folder, server=server, mode="edits") as duck:
            assert await duck.app.chat.say("Make b.txt and remove a.txt") == "awaiting_approval"
            refusal = AnswerApproval(yes=False, reason="keep a.txt")
            assert await duck.app.chat.answer(refusal) == "done"
            assert duck.state.finished.failing == ()
        text = server.requests[-1].body["messages"][-1]["content"]
    assert "The user did not want this done, which lowers no score:" in text
    assert "keep a.txt" in text
    assert "not made good" not in text


async def test_J2_the_run_of_a_command_that_changed_files_itself_is_the_last_run(folder):
    text, _ = await judge_reads(
        folder, decision("", shell("echo x > made.txt; echo tests passed")), decision("Done.")
    )
    assert "exit code 0\ntests passed" in text
    assert "before the last change" not in text


async def test_J2_words_of_the_user_after_a_run_are_no_change_of_a_file(folder):
    """The judge reads that they came later, not that the run is older than the work."""
    (folder / "a.txt").write_text("a\n")
    script = play(
        decision("", action("write_file", path="b.txt", content="b\n"), shell("echo tests passed")),
        decision("", action("delete_file", path="a.txt")),
        decision("b.txt is there, a.txt stays."),
    )
    with ModelServer(script) as server:
        async with engine(folder, server=server, mode="edits") as duck:
            assert await duck.app.chat.say("Make b.txt and remove a.txt") == "awaiting_approval"
            await duck.app.chat.answer(AnswerApproval(yes=False, reason="keep a.txt"))
        text = server.requests[-1].body["messages"][-1]["content"]
    assert "(before the user's last message)\nshell.run: ok\nexit code 0\ntests passed" in text
    assert "before the last change" not in text


async def test_J2_removing_what_a_test_run_left_behind_makes_the_run_no_older(folder):
    text, _ = await judge_reads(
        folder,
        decision("", shell("echo x > wanted.txt; echo t > left.tmp; echo tests passed")),
        decision("", shell("rm left.tmp")),
        decision("Done."),
    )
    assert "exit code 0\ntests passed" in text
    assert "before the last change" not in text
    assert "check of left.tmp" not in text
