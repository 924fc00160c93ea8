"""`duckflow run` as a program: real processes, a real model server, exit codes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fakes import warm
from fakes.engine import action, decision, write_script
from fakes.model_server import Answer, Fault, ModelServer, free_port
from fakes.plays import play

COMMAND = [sys.executable, "-m", "duckflow"]
WRITE = decision("I write it.", action("write_file", path="hello.py", content="print('hello')\n"))


def duckflow(
    *args: object, env: dict[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    return warm.run(
        [*COMMAND, *map(str, args)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, **(env or {})},
        timeout=300,
        check=False,
        **options,
    )


def lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def scripted(folder: Path, *answers: str | dict[str, Any]) -> str:
    return f"scripted:{write_script(folder.parent / 'script.jsonl', answers)}"


def test_a_task_over_the_openai_wire_is_done(folder: Path):
    """M3, K2: text mode, exit code 0; replies on standard output, the work on standard error."""
    with ModelServer(play(WRITE, decision("It is there."))) as server:
        done = duckflow(
            "run", "Create hello.py", "--model", "openai:any", "--mode", "edits", "--workspace", folder,
            env={"OPENAI_BASE_URL": f"{server.url}/v1"},
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "I write it.\nIt is there.\n"), done.stderr
    assert "hello.py" in done.stderr
    assert (folder / "hello.py").read_text() == "print('hello')\n"
    assert server.requests[0].body["messages"][0]["role"] == "system"
    assert "read_file" in [tool["function"]["name"] for tool in server.requests[0].body["tools"]]
    assert "Output: " not in server.requests[0].body["messages"][-1]["content"]


def test_a_task_over_the_anthropic_wire_is_done(folder: Path):
    """M3, K2."""
    with ModelServer(play(WRITE, decision("It is there."))) as server:
        done = duckflow(
            "run", "Create hello.py", "--model", "anthropic:any", "--mode", "edits", "--workspace", folder,
            env={"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (folder / "hello.py").exists()


def test_json_prints_every_event_as_a_line(folder: Path):
    """M3, N: seq, at and type on each; the last one tells the outcome."""
    done = duckflow(
        "run", "Create hello.py", "--json", "--mode", "edits", "--workspace", folder,
        "--model", scripted(folder, WRITE, decision("It is there.")),
    )  # fmt: skip
    events = lines(done)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert all(event["at"] and event["type"] for event in events)
    # Requirements are found during the work, so their place is not fixed.
    beside = ("requirements", "usage")
    assert [event["type"] for event in events if event["type"] not in beside] == [
        "session_started",
        "user_message",
        "vitals",
        "decision",
        "reply",
        "limit_set",
        "transition",
        "action_started",
        "action_finished",
        "vitals",
        "decision",
        "reply",
        "vitals",
        "transition",
        "evaluation",
        "transition",
        "request_finished",
    ]
    assert (events[-1]["outcome"], events[-1]["exit_code"]) == ("done", 0)
    made = next(event for event in events if event["type"] == "decision")
    assert made["decision"]["actions"][0]["operation"] == "file_ops.write_file"


def test_it_stops_at_a_question_and_goes_on_with_an_answer(folder: Path):
    """M3: exit code 3, resumable; --answer is the answer to what it stopped at."""
    asked = duckflow(
        "run", "Create hello.py", "--json", "--workspace", folder, "--model", scripted(folder, WRITE)
    )
    assert asked.returncode == 3
    assert lines(asked)[-1]["outcome"] == "awaiting_approval"
    assert not (folder / "hello.py").exists()
    session = lines(asked)[0]["session_id"]

    reminded = duckflow("run", "--resume", session, "--workspace", folder, "--model", scripted(folder))
    assert reminded.returncode == 3
    assert "+print('hello')" in reminded.stderr
    assert f"--resume {session}" in reminded.stderr

    answered = duckflow(
        "run", "--resume", session, "--answer", "yes", "--workspace", folder,
        "--model", scripted(folder, decision("It is there.")),
    )  # fmt: skip
    assert answered.returncode == 0, answered.stderr
    assert (folder / "hello.py").exists()


def test_an_answer_of_no_goes_to_the_model_with_its_reason(folder: Path):
    asked = duckflow("run", "go", "--json", "--workspace", folder, "--model", scripted(folder, WRITE))
    session = lines(asked)[0]["session_id"]
    refused = duckflow(
        "run", "--resume", session, "--answer", "no, call it main.py", "--json", "--workspace", folder,
        "--model", scripted(folder, decision("As you wish.")),
    )  # fmt: skip
    assert refused.returncode == 0
    finished = [event for event in lines(refused) if event["type"] == "action_finished"]
    assert finished[0]["outcome"] == "refused"
    assert "call it main.py" in finished[0]["text"]


def test_a_question_of_the_models_is_answered_with_a_message(folder: Path):
    asked = duckflow(
        "run", "go", "--json", "--workspace", folder,
        "--model", scripted(folder, decision("Which colour?", next_step="pending_user")),
    )  # fmt: skip
    assert asked.returncode == 3
    session = lines(asked)[0]["session_id"]
    answered = duckflow(
        "run", "--resume", session, "--answer", "blue", "--workspace", folder,
        "--model", scripted(folder, decision("Blue.")),
    )  # fmt: skip
    assert (answered.returncode, answered.stdout) == (0, "Blue.\n")


def test_at_the_maximum_of_loops_it_asks_with_exit_code_3(folder: Path):
    """M3, I7: `--max-loops` is the maximum; nothing is lost, and an answer continues the work."""
    again = [decision("", action("write_file", path="a", content=str(n))) for n in range(5)]
    done = duckflow(
        "run", "go", "--mode", "edits", "--max-loops", "2", "--workspace", folder,
        "--model", scripted(folder, *again),
    )  # fmt: skip
    assert done.returncode == 3
    assert "--resume" in done.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["run"], "nothing to do"),
        (["run", "  "], "nothing to do"),
        (["run", "x", "--answer", "yes"], "--resume"),
        (["run", "x", "--model", "opnai:gpt"], "openai"),
        (["run", "x", "--mode", "wild"], "wild"),
        (["run", "x", "--workspace", "/does/not/exist"], "/does/not/exist"),
        (["run", "--resume", "nothere"], "nothere"),
        (["run", "x", "--nonsense"], "--nonsense"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_a_sentence(args: list[str], words: str, tmp_path: Path):
    """M3."""
    done = duckflow(*args, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 5


def test_a_broken_configuration_is_one_sentence(tmp_path: Path):
    """M5."""
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "duckflow"
    config.mkdir(parents=True)
    (config / "config.toml").write_text("mode = \n")
    done = duckflow("run", "x", cwd=tmp_path)
    assert done.returncode == 2
    assert "config.toml, line 1" in done.stderr
    (config / "config.toml").write_text('modes = "ask"\n')
    done = duckflow("run", "x", cwd=tmp_path)
    assert done.returncode == 2
    assert "mode" in done.stderr


def test_a_projects_file_acts_only_when_trusted(folder: Path):
    """M5, SAFETY 6."""
    (folder / "duckflow.toml").write_text('mode = "plan"\n')
    script = scripted(folder, WRITE, decision("ok"))
    untrusted = duckflow("run", "x", "--json", "--workspace", folder, "--model", script)
    assert lines(untrusted)[0]["mode"] == "ask"
    assert "duckflow.toml" in untrusted.stderr
    trusted = duckflow("run", "x", "--json", "--trust", "--workspace", folder, "--model", script)
    assert lines(trusted)[0]["mode"] == "plan"


def test_G7_a_machine_that_is_the_sandbox_is_said_at_the_start_and_no_project_may_declare_it(folder: Path):
    model = "--model", scripted(folder, decision("ok"))
    said = duckflow("run", "x", "--workspace", folder, *model, env={"DUCKFLOW_SHELL__SANDBOX": "external"})
    assert (said.returncode, "shell.sandbox = external" in said.stderr) == (0, True), said.stderr
    (folder / "duckflow.toml").write_text('shell.sandbox = "external"\n')
    done = duckflow("run", "x", "--trust", "--workspace", folder, *model)
    assert (done.returncode, "shell.sandbox" in done.stderr) == (2, True)


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_a_wrong_key_is_one_sentence_that_names_the_variable(folder: Path, wire: str):
    """M3: exit code 4."""
    variable = f"{wire.upper()}_API_KEY"
    with ModelServer([Fault(401, "bad key")]) as server:
        base = f"{server.url}/v1" if wire == "openai" else server.url
        done = duckflow(
            "run", "x", "--model", f"{wire}:m", "--workspace", folder,
            env={f"{wire.upper()}_BASE_URL": base, variable: "wrong"},
        )  # fmt: skip
    assert done.returncode == 4
    assert variable in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_an_unknown_model_is_one_sentence(folder: Path):
    with ModelServer([Fault(404, "no such model")]) as server:
        done = duckflow(
            "run", "x", "--model", "openai:nosuch", "--workspace", folder,
            env={"OPENAI_BASE_URL": f"{server.url}/v1"},
        )  # fmt: skip
    assert done.returncode == 4
    assert "nosuch" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_an_unreachable_address_is_one_sentence(folder: Path):
    address = f"http://127.0.0.1:{free_port()}/v1"
    done = duckflow(
        "run", "x", "--model", "openai:m", "--workspace", folder,
        env={"OPENAI_BASE_URL": address, "DUCKFLOW_LLM__MAX_RETRIES": "0"},
    )  # fmt: skip
    assert done.returncode == 4
    assert "127.0.0.1" in done.stderr
    assert "Traceback" not in done.stderr


DEEP = '{"a":' * 10_000 + "1" + "}" * 10_000
BAD = {
    "malformed": '{"next_step": done}',
    "truncated": WRITE[:60],
    "duplicate key": '{"next_step": "done", "reply": "a", "reply": "b"}',
    "not a number": '{"next_step": "done", "reply": "a", "confidence": NaN}',
    "5 MB": json.dumps({"next_step": "done", "reply": "x" * 5_000_000}),
    "10,000 deep": DEEP,
    "empty": "",
}


@pytest.mark.parametrize("name", BAD)
def test_an_answer_that_can_not_be_used_runs_nothing_and_costs_one_repair(folder: Path, name: str):
    """A6: exit code 4 and a clear sentence, never a traceback."""
    answer = Answer(BAD[name], streamed=len(BAD[name]) < 1_000_000)
    with ModelServer([answer, answer]) as server:
        done = duckflow(
            "run", "x", "--json", "--model", "openai:m", "--mode", "edits", "--workspace", folder,
            env={"OPENAI_BASE_URL": f"{server.url}/v1"},
        )  # fmt: skip
    assert done.returncode == 4, done.stderr
    assert len(server.requests) == 2
    assert "Traceback" not in done.stderr
    kinds = [event["type"] for event in lines(done)]
    assert "action_started" not in kinds
    assert kinds[-2:] == ["error", "request_finished"]
    assert len(lines(done)[-2]["message"]) < 1_500
    assert list(folder.iterdir()) == []


def test_a_repaired_answer_is_used(folder: Path):
    """A6: the repair request carries the exact error."""
    mended = decision("Mended.", task_profile="general_chat")
    with ModelServer([Answer(BAD["duplicate key"]), Answer(mended)]) as server:
        done = duckflow(
            "run", "x", "--model", "openai:m", "--workspace", folder,
            env={"OPENAI_BASE_URL": f"{server.url}/v1"},
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "Mended.\n")
    assert "reply" in server.requests[1].body["messages"][-1]["content"]


def test_an_interrupted_run_ends_with_130_and_keeps_everything(folder: Path):
    """M3, K4."""
    slow = {"for": "Decision", "text": decision("late"), "delay_s": 60}
    command = [*COMMAND, "run", "x", "--json", "--workspace", str(folder), "--model", scripted(folder, slow)]
    with warm.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        shown = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert json.loads(rest.splitlines()[-1])["outcome"] == "interrupted"
    kept = duckflow("sessions", "show", shown[0]["session_id"], "--json")
    assert [event["seq"] for event in lines(kept)] == [1, 2, 3, 4]


def test_a_kill_between_any_two_events_loses_nothing_that_was_shown(folder: Path):
    """C5, L1: the next start has every event that was shown."""
    answers = [
        decision("One.", action("write_file", path="a", content="1"), step="EXECUTION"),
        decision("Two.", action("write_file", path="b", content="2"), action("read_file", path="a")),
        decision("Three.", action("read_file", path="missing")),
        decision("Done."),
    ]
    script = scripted(folder, *answers)
    whole = lines(
        duckflow("run", "go", "--json", "--mode", "edits", "--workspace", folder, "--model", script)
    )
    assert len(whole) > 20
    command = [*COMMAND, "run", "go", "--json", "--mode", "edits", "--workspace", str(folder)]
    for stop in range(1, len(whole), 6):
        with warm.start([*command, "--model", script], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            shown = [json.loads(process.stdout.readline()) for _ in range(stop)]
            process.kill()
            shown += [json.loads(line) for line in process.stdout if line.endswith("\n")]
        kept = lines(duckflow("sessions", "show", shown[0]["session_id"], "--json"))
        assert kept[: len(shown)] == shown
    resumed = duckflow(
        "run", "--resume", shown[0]["session_id"], "go on", "--mode", "edits", "--workspace", folder,
        "--model", scripted(folder, decision("Here again.")),
    )  # fmt: skip
    assert (resumed.returncode, resumed.stdout) == (0, "Here again.\n")


def test_M3_a_resumed_run_keeps_its_folder_and_mode_and_the_command_says_the_rest(
    folder: Path, tmp_path: Path
):
    model = scripted(folder, WRITE, decision("Done."))
    first = duckflow("run", "go", "--model", model, "--mode", "ask", "--workspace", folder, "--max-loops", 9)
    assert first.returncode == 3
    session = first.stderr.partition("--resume ")[2].split()[0]
    assert f"--resume {session} --model {model} --max-loops 9 --answer yes" in first.stderr
    again = duckflow("run", "--resume", session, "--model", model, "--answer", "yes", "--json", cwd=tmp_path)
    started = lines(again)[0]
    assert (started["mode"], started["workspace"]) == ("ask", str(folder))
    assert (folder / "hello.py").exists()


def test_C1_a_list_in_the_background_ends_although_the_model_asks_the_user(folder: Path):
    tasks = [{"operation": "shell.run", "args": {"command": "sleep 1; echo x > a.txt"}}]
    start = {"operation": "task_loop.run", "args": {"task_list": tasks}}
    asks = decision("Which colour?", start, next_step="pending_user")
    report = {"for": "TaskReport", "text": '{"status": "success", "summary": "done"}'}
    done = duckflow(
        "run",
        "go",
        "--model",
        scripted(folder, asks, report),
        "--mode",
        "auto",
        "--json",
        "--workspace",
        folder,
    )
    reports = [line for line in lines(done) if line["type"] == "task_report"]
    approvals = [line for line in lines(done) if line["type"] == "approval_requested"]
    assert done.returncode == 3
    assert approvals or reports[0]["status"] == "success", "it was not cancelled"


def test_C1_what_the_background_asks_is_asked_once(folder: Path):
    tasks = [{"operation": "file_ops.write_file", "args": {"path": "a.txt", "content": "x"}}]
    start = decision(
        "I start.", {"operation": "task_loop.run", "args": {"task_list": tasks}}, next_step="defer"
    )
    done = duckflow(
        "run", "go", "--model", scripted(folder, start), "--mode", "ask", "--json", "--workspace", folder
    )
    told = duckflow("run", "go", "--model", scripted(folder, start), "--mode", "ask", "--workspace", folder)
    assert told.stderr.count("--resume") == 1, "it goes on by itself until it asks"
    kinds = [line["type"] for line in lines(done)]
    assert (done.returncode, kinds.count("approval_requested")) == (3, 1)
    assert lines(done)[-1]["outcome"] == "awaiting_approval"


def test_I9_a_limit_on_cost_without_a_known_price_is_said_at_the_start(folder: Path):
    with ModelServer([Answer(decision("Hello.", task_profile="general_chat"))]) as server:
        done = duckflow(
            "run", "hi", "--model", "openai:any", "--max-cost", "1", "--workspace", folder,
            env={"OPENAI_BASE_URL": f"{server.url}/v1", "DUCKFLOW_LANGUAGE": "en"},
        )  # fmt: skip
    assert "No price is known for openai:any" in done.stderr


def test_C6_lines_of_standard_input_reach_the_running_task_if_asked_for(folder: Path):
    model = scripted(folder, decision("Done."), decision("Done."))
    (folder.parent / "said.txt").write_text("with this\n")
    for flags, heard in (((), ["Do it"]), (("--steer",), ["Do it", "with this"])):
        with (folder.parent / "said.txt").open() as said:
            done = warm.run(
                [*COMMAND, "run", "Do it", "--json", *flags, "--model", model, "--workspace", str(folder)],
                stdin=said,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
        events = [one.get("event", one) for one in lines(done)]
        assert [one["text"] for one in events if one["type"] == "user_message"] == heard
