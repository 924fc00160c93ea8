"""Agents on copies (O1 to O3): real processes, real mounts, a model server that plays each agent its part."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from duckflow.app.places import COPIES
from duckflow.config.places import state_dir
from duckflow.domain.events import AgentEnded, VerifySet
from fakes.agents_at_work import (
    Player,
    agents,
    casting,
    command,
    duckflow,
    environment,
    of_type,
    writes,
)
from fakes.engine import action, decision, engine
from fakes.model_server import Answer, Fault, ModelServer, Reply
from fakes.plays import asked_for, play


def test_two_agents_work_and_their_changes_are_joined(folder: Path):
    """O2: each on its own copy, at the same time; both changes arrive, as the effects of one action."""
    lead = play(
        decision("Two agents do it.", agents("work", tasks=[{"task": "PARTA: a.txt"}, "PARTB: b.txt"])),
        decision("Both are there."),
    )
    parts = {"PARTA": writes("a.txt", "a\n"), "PARTB": writes("b.txt", "b\n")}
    with ModelServer(casting(lead, parts)) as server:
        code, events, errors = duckflow(folder, server, "Write both files", "--mode", "auto")
    assert code == 0, (errors, events[-3:])
    assert (folder / "a.txt").read_text() == "a\n"
    assert (folder / "b.txt").read_text() == "b\n"
    assert [one["outcome"] for one in of_type(events, "agent_ended")] == ["done", "done"]


def test_changes_to_the_same_lines_go_to_an_agent_with_both_sides(folder: Path):
    """O2: changes that fit together are merged; an agent gets both versions of the rest; nothing is lost."""
    (folder / "greet.py").write_text("# top\n\ndef greet():\n    return 'hello'\n\n# bottom\n")
    first = "# top A\n\ndef greet():\n    return 'hello A'\n\n# bottom\n"
    second = "# top\n\ndef greet():\n    return 'hello B'\n\n# bottom B\n"
    both = "# top A\n\ndef greet():\n    return 'hello A and B'\n\n# bottom B\n"
    tasks = [{"task": "PARTA of greet.py"}, {"task": "PARTB of greet.py"}]
    lead = play(decision("Two agents do it.", agents("work", tasks=tasks)), decision("Both are there."))
    seen: list[str] = []
    joiner = writes("greet.py", both)

    def join(body: dict[str, Any]) -> Reply:
        seen.append(json.dumps(body))
        return joiner(body)

    parts = {"Join the work": join, "PARTA": writes("greet.py", first), "PARTB": writes("greet.py", second)}
    with ModelServer(casting(lead, parts)) as server:
        code, events, errors = duckflow(folder, server, "Greet twice", "--mode", "auto")
    assert code == 0, (errors, events[-3:])
    assert (folder / "greet.py").read_text() == both
    assert "hello A'" in seen[0]
    assert "hello B'" in seen[0]
    names = [one["name"] for one in of_type(events, "agent_ended")]
    assert (sorted(names[:2]), names[2:]) == (["part 1", "part 2"], ["join"])


def test_a_conflict_that_nobody_joins_is_named_and_both_versions_are_told(folder: Path):
    """O2: the first version stays; the model and the user are shown the other."""
    (folder / "greet.py").write_text("print('hello')\n")
    tasks = [{"task": "PARTA of greet.py"}, {"task": "PARTB of greet.py"}]
    lead = play(decision("Two agents do it.", agents("work", tasks=tasks)), decision("One is there."))
    parts = {
        "Join the work": play(decision("I can't.")),
        "PARTA": writes("greet.py", "print('A')\n"),
        "PARTB": writes("greet.py", "print('B')\n"),
    }
    with ModelServer(casting(lead, parts)) as server:
        _, events, _ = duckflow(folder, server, "Greet twice", "--mode", "auto")
    ended = next(one for one in of_type(events, "action_finished") if one["operation"] == "agent.work")
    assert "Not joined" in ended["text"]
    assert "print('B')" in ended["text"]
    assert "agents.left" in [one["key"] for one in ended["told"]]
    assert (folder / "greet.py").read_text() == "print('A')\n"


def test_what_one_agent_moves_deletes_or_replaces_and_another_edits_is_not_lost(folder: Path):
    """O2: edits follow a move; of what can't be merged, an agent and the model read what the other did."""
    for name in ("moved", "kept", "gone", "binary", "link", "bits"):
        (folder / f"{name}.txt").write_text("one\ntwo\nthree\n")
    (folder / "other.txt").write_text("one\ntwo\nthree\n")
    first = (
        "mv moved.txt there.txt; sed -i s/two/A/ kept.txt; rm gone.txt; printf 'a\\0' > binary.txt; "
        "rm link.txt; ln -s other.txt link.txt; chmod 600 bits.txt; echo A > new"
    )
    second = (
        "sed -i s/two/B/ moved.txt gone.txt binary.txt link.txt bits.txt; mv kept.txt away.txt; "
        "mkdir new; echo B > new/b"
    )

    def runs(said: str) -> Player:
        command = {"operation": "shell.run", "args": {"command": said}}
        return play(decision("I do it.", command), decision("It is done."))

    lead = play(decision("Two.", agents("work", tasks=["PARTA", "PARTB"])), decision("There."))
    seen: list[str] = []

    def join(body: dict[str, Any]) -> Reply:
        seen.append(json.dumps(body))
        return play(decision("I can't."))(body)

    parts = {"Join the work": join, "PARTA": runs(first), "PARTB": runs(second)}
    with ModelServer(casting(lead, parts)) as server:
        code, events, errors = duckflow(folder, server, "Do it", "--mode", "auto")
    assert code == 0, (errors, events[-3:])
    there = {path.name: path for path in folder.iterdir()}
    assert sorted(there) == [
        *("away.txt", "binary.txt", "bits.txt", "link.txt", "new", "other.txt", "there.txt")
    ]
    assert there["there.txt"].read_text() == "one\nB\nthree\n"
    assert there["away.txt"].read_text() == "one\nA\nthree\n"
    assert there["other.txt"].read_text() == "one\ntwo\nthree\n", "not written through the link"
    assert (there["bits.txt"].read_text(), there["bits.txt"].stat().st_mode & 0o777) == (
        "one\nB\nthree\n",
        0o600,
    )
    ended = next(one for one in of_type(events, "action_finished") if one["operation"] == "agent.work")
    for path in ("gone.txt", "binary.txt", "link.txt", "new/b"):
        assert f"{path}, part 2 has changed it:\n--- " in ended["text"]
        assert f"{path}: The file is as another agent left it; part 2 has changed it:" in seen[0]
    assert ended["text"].count("\n-two\n+B\n") == 3


def test_in_mode_ask_there_is_one_question_for_all_agents_and_one_undo(folder: Path):
    """O2: the joint difference is one question; a yes applies it, and undo takes back all of it."""
    (folder / "old.txt").write_text("old\n")
    tasks = [{"task": "PARTA"}, {"task": "PARTB"}]
    lead = play(decision("Two agents do it.", agents("work", tasks=tasks)), decision("Both are there."))
    parts = {"PARTA": writes("a.txt", "a\n"), "PARTB": writes("old.txt", "new\n")}
    with ModelServer(casting(lead, parts)) as server:
        code, events, errors = duckflow(folder, server, "Write both files", "--mode", "ask")
        assert code == 3, errors
        assert not (folder / "a.txt").exists()
        asked = of_type(events, "approval_requested")
        assert len(asked) == 1
        assert asked[0]["approval"]["kind"] is None
        session = of_type(events, "session_started")[0]["session_id"]
        code, events, errors = duckflow(folder, server, "", "--resume", session, "--answer", "yes")
    assert code == 0, errors
    assert ((folder / "a.txt").read_text(), (folder / "old.txt").read_text()) == ("a\n", "new\n")


def test_the_try_with_the_best_checks_is_kept(folder: Path):
    """O2: of several tries at one task the program keeps the one whose checks pass."""
    (folder / "test_add.py").write_text(
        "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
    )
    wrong, right = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"
    lead = play(
        decision("Three tries.", agents("work", tasks=[{"task": "PARTA: calc.py"}], keep="best")),
        decision("It is there."),
    )
    tries: dict[str, Player] = {}

    def player(body: dict[str, Any]) -> Reply:
        """Create a player for each agent; agents are told apart by the order of their first requests."""
        text = json.dumps(body)
        wrote = "I write it." in text
        if asked_for(body) != "Decision" or wrote:
            return play(decision("It is there."))(body)
        tries[str(len(tries))] = player
        content = right if len(tries) == 2 else wrong
        return play(decision("I write it.", action("write_file", path="calc.py", content=content)))(body)

    with ModelServer(casting(lead, {"PARTA": player})) as server:
        code, events, errors = duckflow(folder, server, "Add add to calc.py", "--mode", "auto")
    assert code == 0, (errors, events[-3:])
    assert (folder / "calc.py").read_text() == right
    ended = next(one for one in of_type(events, "action_finished") if one["operation"] == "agent.work")
    assert "was chosen" in ended["text"]


def test_explorers_answer_and_change_nothing(folder: Path):
    """O1: read-only, each with its own context; the findings returned are limited in length."""
    (folder / "app.py").write_text("PORT = 8000\n")
    lead = play(
        decision("Two look.", agents("explore", questions=["PARTA: the port?", "PARTB: the host?"])),
        decision("8000, and no host."),
    )
    parts = {
        "PARTA": play(
            decision("I look.", action("read_file", path="app.py")), decision("app.py:1 PORT = 8000")
        ),
        "PARTB": play(
            decision("", action("write_file", path="x", content="x")), decision("not found " * 2000)
        ),
    }
    with ModelServer(casting(lead, parts)) as server:
        code, events, errors = duckflow(folder, server, "Which port and host?", "--mode", "plan")
    assert code == 0, (errors, events[-3:])
    ended = next(one for one in of_type(events, "action_finished") if one["operation"] == "agent.explore")
    assert "app.py:1 PORT = 8000" in ended["text"]
    assert len(ended["text"]) < 8_000
    assert sorted(path.name for path in folder.iterdir()) == ["app.py"]


def test_a_custom_agent_gives_its_instructions_and_its_model(folder: Path):
    """O3: a Markdown file defines an agent; an unknown name is refused with a list of the known ones."""
    own = Path(os.environ["HOME"], ".claude/agents")
    own.mkdir(parents=True)
    front = "---\nname: Tester\ndescription: writes tests\nmodel: openai:other\ntools: Read, Edit\n---\n"
    (own / "tester.md").write_text(f"{front}Never use mocks.\n")
    lead = play(
        decision("", agents("work", tasks=[{"task": "PARTA", "agent": "stranger"}])),
        decision("", agents("work", tasks=[{"task": "PARTA", "agent": "tester"}])),
        decision("It is there."),
    )
    with ModelServer(casting(lead, {"PARTA": writes("a.txt", "a\n")})) as server:
        code, events, errors = duckflow(folder, server, "Write a.txt", "--mode", "auto")
        asked = [one.body for one in server.requests if "Never use mocks." in json.dumps(one.body)]
    assert code == 0, (errors, events[-3:])
    assert {body["model"] for body in asked} == {"other"}
    refused = next(one for one in of_type(events, "action_finished") if one["outcome"] == "failed")
    assert "tester" in refused["text"]


def test_an_agent_that_fails_is_reported_and_the_others_count(folder: Path):
    """O2: a provider's error, or a process that ends at once, is that agent's outcome only."""
    tasks = [{"task": "PARTA"}, {"task": "PARTB"}]
    lead = play(decision("", agents("work", tasks=tasks)), decision("One is there."))
    parts = {"PARTA": lambda _: Fault(401, "bad key"), "PARTB": writes("b.txt", "b\n")}
    with ModelServer(casting(lead, parts)) as server:
        _, events, _ = duckflow(folder, server, "Write both", "--mode", "auto")
    outcomes = {one["name"]: one["outcome"] for one in of_type(events, "agent_ended")}
    assert outcomes == {"part 1": "provider_error", "part 2": "done"}
    assert (folder / "b.txt").read_text() == "b\n"


def test_stopping_the_request_stops_its_agents_and_leaves_no_copy(folder: Path):
    """O2: cancelled in the middle, the folder is as before; no process and no copy is left."""
    lead = play(decision("", agents("work", tasks=[{"task": "PARTA"}])))
    with (
        ModelServer(casting(lead, {"PARTA": lambda _: Answer("x", fault="stall")})) as server,
        subprocess.Popen(
            command(folder, "Write a.txt", "--mode", "auto"),
            env=environment(server),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stdout
        for line in process.stdout:
            if '"agent_started"' in line:
                break
        while not any("[your role]" in json.dumps(one.body) for one in server.requests):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = [json.loads(line) for line in process.stdout]
        assert process.wait(60) == 130
        assert [one["outcome"] for one in of_type(said, "agent_ended")] == ["interrupted"]
    assert list(folder.iterdir()) == []
    assert list((state_dir() / COPIES).iterdir()) == []


def test_J3_older_failures_and_a_missing_test_program_do_not_count_against_a_try(folder: Path):
    """O2: the request did not ask for the project's tests, so only new failures count against a try."""
    (folder / "test_old.py").write_text("def test_old():\n    assert False\n")
    (folder / ".venv/bin").mkdir(parents=True)
    python = folder / ".venv/bin/python"
    for runner in (f'exec {sys.executable} "$@"', "echo 'python3: No module named pytest'; exit 1"):
        python.write_text(f"#!/bin/sh\n{runner}\n")
        python.chmod(0o755)
        task = {"task": "PARTA: calc.py"}
        lead = play(decision("", agents("work", tasks=[task], keep="best", tries=2)), decision("Done."))
        write = action("write_file", path="calc.py", content=f"RUNNER = {runner!r}\n")

        def player(body: dict[str, Any], write: dict[str, Any] = write) -> Reply:
            wrote = asked_for(body) != "Decision" or "I write it." in json.dumps(body)
            return play(decision("There.") if wrote else decision("I write it.", write))(body)

        with ModelServer(casting(lead, {"PARTA": player})) as server:
            code, events, errors = duckflow(folder, server, "Write calc.py", "--mode", "auto")
        assert [one["outcome"] for one in of_type(events, "agent_ended")] == ["done", "done"], runner
        assert code == 0, (errors, events[-3:])


async def test_J3_tests_that_the_user_does_not_want_are_no_check_of_a_try(folder: Path):
    """O2: after a no to the project's tests, tries do not run them either."""
    (folder / "Makefile").write_text("test:\n\t! test -e calc.py\n")
    task = {"task": "PARTA: calc.py"}
    lead = play(decision("", agents("work", tasks=[task], keep="best", tries=2)), decision("Done."))
    write = action("write_file", path="calc.py", content="ONE = 1\n")

    def player(body: dict[str, Any]) -> Reply:
        wrote = asked_for(body) != "Decision" or "I write it." in json.dumps(body)
        return play(decision("There.") if wrote else decision("I write it.", write))(body)

    with ModelServer(casting(lead, {"PARTA": player})) as server:
        async with engine(folder, server=server, mode="auto", attended=True) as duck:
            duck.app.session.record(VerifySet(command=""))
            await duck.app.chat.say("Write calc.py")
            assert [one.outcome for one in duck.of(AgentEnded)] == ["done", "done"]
