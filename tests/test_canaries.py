"""SAFETY 14: canaries planted in every place a secret can come from are nowhere a secret may not go."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from duckflow.config.places import state_dir
from duckflow.domain.events import ActionFinished, ApprovalRequested, ErrorReported, UserMessage
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.safety.redaction.redactor import MARKER
from duckflow.store.audit.log import read_entries
from fakes.conversation import conversation, ready
from fakes.engine import action, decision, engine
from fakes.model_server import Answer, Asked, Fault, ModelServer
from fakes.plays import asked_for
from fakes.secret_texts import BASE62, HEX, PEM

ENV = "canary-env-7Kq2vX9mB4"
PROVIDER_KEY = "canary-provider-key-31415926"
FILE = ("ghp_" + BASE62[:36], "hunter2hunter2canary", HEX[:48], PEM.splitlines()[1])
RULE = "glpat-" + BASE62[4:28]
SAID = "sk-" + "ant-api03-" + BASE62[:32]
REPLY = "xoxb-" + "123456789012-" + BASE62[3:27]
WRITTEN = "AKIA" + "Q7Z4M2XN8R5TB3WK"
CANARIES = (ENV, PROVIDER_KEY, *FILE, RULE, SAID, REPLY, WRITTEN)

SECRETS_FILE = f"""# settings of the pond
GITHUB={FILE[0]}
DB_PASSWORD={FILE[1]}
API_TOKEN={FILE[2]}
DEPTH=3
{PEM}
"""
TEST_FILE = f"KEY = '{WRITTEN}'\n"
COMMAND = [sys.executable, "-m", "duckflow"]
ANSWERS = (
    decision("I look.", action("read_file", path="settings.txt")),
    decision("I search.", action("search", pattern="ghp_")),
    decision(f"Your token is {REPLY}, and I change the depth.",
             action("edit_file", path="settings.txt", edits=[{"find": "DEPTH=3", "replace": "DEPTH=4"}])),
    '{"next_step": "done", "reply": broken, ' + REPLY,
    decision("I read the environment.", action("read_file", path="env.txt")),
    decision("Done."),
)  # fmt: skip


@pytest.fixture
def pond(folder: Path) -> Path:
    (folder / "settings.txt").write_text(SECRETS_FILE, "utf-8")
    (folder / "env.txt").write_text(f"a program printed {ENV} and {PROVIDER_KEY}\n", "utf-8")
    (folder / "AGENTS.md").write_text(f"Deploy with {RULE}.\n", "utf-8")
    return folder


@pytest.fixture
def env() -> dict[str, str]:
    return {"OPENAI_API_KEY": PROVIDER_KEY, "POND_SECRET_TOKEN": ENV}


def assert_absent(what: str, content: bytes | str) -> None:
    text = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    leaked = [canary for canary in CANARIES if canary.encode() in text]
    assert not leaked, f"{what} has {leaked}"


def assert_state_is_clean() -> None:
    """Every byte of every file: database, its log, history, whatever else there is."""
    files = [file for file in state_dir().rglob("*") if file.is_file()]
    assert any(file.name == "duckflow.db" for file in files)
    for file in files:
        assert_absent(str(file.name), file.read_bytes())


def assert_requests_are_clean(requests: list[Asked]) -> None:
    assert requests
    for asked in requests:
        headers = {name: value for name, value in asked.headers.items() if name != "authorization"}
        assert_absent("a request", json.dumps(asked.body, ensure_ascii=False) + json.dumps(headers))


def server_for(*answers: str | Fault) -> ModelServer:
    """Answers decisions in turn; other questions get an answer that fits nothing."""
    left = list(answers)

    def choose(body: dict[str, Any]) -> Answer | Fault:
        if asked_for(body) != "Decision":
            return Answer("{}")
        answer = left.pop(0) if left else decision("Done.")
        return answer if isinstance(answer, Fault) else Answer(answer)

    return ModelServer(choose)


def run(folder: Path, env: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *args],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, **env},
        cwd=folder,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(
    ("form", "native"), [((), "true"), (("--json",), "false")], ids=["text, native calls", "json, JSON text"]
)
def test_a_task_leaks_nothing_to_model_screen_or_disk(
    pond: Path, env: dict[str, str], form: tuple[str, ...], native: str
):
    """The whole way: files, rules, a search, a reply, an answer to mend, the user's own words."""
    env["DUCKFLOW_LLM__NATIVE_TOOLS"] = native
    with server_for(*ANSWERS) as server:
        env["OPENAI_BASE_URL"] = f"{server.url}/v1"
        done = run(pond, env, "run", f"Use {SAID} for it", "--model", "openai:any", "--mode", "edits", *form)
    assert_absent("the output", done.stdout + done.stderr)
    assert_requests_are_clean(server.requests)
    assert_state_is_clean()
    shown = json.dumps([asked.body for asked in server.requests])
    assert "[redacted:github-token:" in shown
    assert "[redacted:pond-secret-token:" in shown
    assert "[redacted:anthropic-key:" in shown
    assert (pond / "settings.txt").read_text() == SECRETS_FILE.replace("DEPTH=3", "DEPTH=4")
    if form:  # what is stored is the same
        return
    for command in (
        ["sessions", "list"],
        ["audit", "show"],
        ["audit", "export"],
        ["prompt", "show", "--continue"],
    ):
        assert_absent(command[0], "".join(run(pond, env, *command, *_model(command)).stdout))


def _model(command: list[str]) -> list[str]:
    return ["--model", "relay"] if command[0] == "prompt" else []


def test_a_provider_that_repeats_the_key_leaks_nothing(pond: Path, env: dict[str, str]):
    with server_for(Fault(401, f"the key {PROVIDER_KEY} or {ENV} is wrong")) as server:
        env["OPENAI_BASE_URL"] = f"{server.url}/v1"
        done = run(pond, env, "run", "hello", "--model", "openai:any")
    assert done.returncode == 4
    assert_absent("the output", done.stdout + done.stderr)
    assert_state_is_clean()


def test_an_error_before_the_session_leaks_nothing(pond: Path, env: dict[str, str]):
    env["OPENAI_BASE_URL"] = f"ftp://duck:{ENV}@nowhere"
    done = run(pond, env, "run", "hello", "--model", "openai:any")
    assert done.returncode == 2
    assert "[redacted:" in done.stderr
    assert_absent("the output", done.stdout + done.stderr)


def test_the_conversation_leaks_nothing(pond: Path, env: dict[str, str]):
    """A terminal shows what is typed; from then on it is gone, from the history of lines too."""
    with conversation(pond, *ANSWERS[:3], decision("All done."), env=env) as terminal:
        ready(terminal)
        terminal.type(f"Take {SAID}\r")
        terminal.wait_for("Allow it?")
        shown = terminal.text
        for canary in (*CANARIES[:7], REPLY, WRITTEN):
            assert canary not in "".join(shown.split())
        assert "[redacted:" in shown
        terminal.type("\x03")
        terminal.wait_for("Stopped.")
        terminal.type("\x04")
        terminal.wait_for_end()
    assert_state_is_clean()


async def test_the_user_is_told_once_that_something_was_hidden(folder: Path):
    async with engine(folder, decision("Hello."), decision("Again.")) as duck:
        await duck.app.chat.say(f"my key is {SAID}")
        await duck.app.chat.say(f"once more: {SAID}")
    assert [error.key for error in duck.of(ErrorReported)] == ["redaction.hidden"]
    assert all("[redacted:anthropic-key:" in said.text for said in duck.of(UserMessage))


async def test_a_secret_that_was_read_is_never_written_back(pond: Path):
    """The model copies what it sees into a file: refused, with what to do instead; the file stays."""
    before = (pond / "settings.txt").read_bytes()
    with ModelServer(_copying) as server:
        async with engine(pond, server=server) as duck:
            await duck.app.chat.say("Copy the settings")
    refused = [done for done in duck.of(ActionFinished) if done.outcome != "ok"]
    assert len(refused) == 2
    assert all("file_ops.edit_file" in done.text for done in refused)
    assert not (pond / "copy.txt").exists()
    assert (pond / "settings.txt").read_bytes() == before


def _copying(body: dict[str, Any]) -> Answer:
    sent = json.dumps(body, ensure_ascii=False)
    marker = MARKER.search(sent.replace("\\\\", ""))
    if asked_for(body) != "Decision":
        return Answer("{}")
    if marker is None or "GITHUB=" not in sent:
        return Answer(decision("I look.", action("read_file", path="settings.txt")))
    if "copy.txt" not in sent:
        return Answer(decision("", action("write_file", path="copy.txt", content=f"GITHUB={marker[0]}\n")))
    if "DEPTH=9" not in sent:
        edit = {"find": f"GITHUB={marker[0]}", "replace": "DEPTH=9"}
        return Answer(decision("", action("edit_file", path="settings.txt", edits=[edit])))
    return Answer(decision("It can't be done."))


async def test_an_approval_shows_markers_and_holds_for_what_is_really_written(pond: Path):
    write = decision("I write.", action("write_file", path="test_key.py", content=TEST_FILE))
    async with engine(pond, write, decision("Done."), mode="ask") as duck:
        assert await duck.app.chat.say("Write it") == "awaiting_approval"
        (asked,) = duck.of(ApprovalRequested)
        assert WRITTEN not in asked.model_dump_json()
        assert "+KEY = '[redacted:aws-key-id:" in asked.approval.difference
        await duck.app.chat.answer(AnswerApproval(yes=True))
    assert (pond / "test_key.py").read_text() == TEST_FILE


async def test_after_a_restart_a_marker_is_refused_and_not_written(pond: Path):
    write = decision("I write.", action("write_file", path="test_key.py", content=TEST_FILE))
    async with engine(pond, write, mode="ask") as duck:
        await duck.app.chat.say("Write it")
        session = duck.state.session_id
    async with engine(pond, decision("Then not."), mode="ask", session=session) as duck:
        await duck.app.chat.answer(AnswerApproval(yes=True))
    refused = duck.of(ActionFinished)[-1]
    assert refused.outcome != "ok"
    assert "[redacted:aws-key-id:" in refused.text
    assert not (pond / "test_key.py").exists()


async def test_the_output_of_a_command_leaks_nothing_while_it_runs_nor_after(pond: Path):
    """In small pieces, and once more without the names that say what the values are."""
    command = "cat settings.txt; cut -d= -f2 settings.txt"
    run_it = {"operation": "shell.run", "args": {"command": command}}
    async with engine(pond, decision("I run it.", run_it), decision("Done.")) as duck:
        outcome = await duck.app.chat.say("Run it")
        if outcome == "awaiting_approval":
            await duck.app.chat.answer(AnswerApproval(yes=True))
    ran = duck.of(ActionFinished)[-1]
    assert (ran.operation, ran.outcome) == ("shell.run", "ok")
    assert "DB_PASSWORD=[redacted:password:" in ran.text
    assert_absent("an event", "".join(event.model_dump_json() for event in duck.events))
    assert_absent("a live update", "".join(getattr(one, "text", "") for one in duck.live_updates))
    assert_state_is_clean()


async def test_tasks_of_the_background_write_what_the_model_wrote(pond: Path):
    tasks = [{"operation": "file_ops.write_file", "args": {"path": "test_key.py", "content": TEST_FILE}}]
    start = {"operation": "task_loop.run", "args": {"task_list": tasks}}
    report = {"for": "TaskReport", "text": '{"status": "success", "summary": "done"}'}
    async with engine(pond, decision("I start.", start, next_step="done"), report) as duck:
        await duck.app.chat.say("Write it")
        await duck.app.tasks.wait()
        assert duck.state.approval.task_id, "a file with a key in it is asked about in every mode"
        await duck.app.chat.answer(AnswerApproval(yes=True))
        await duck.app.tasks.wait()
        entries = list(read_entries(duck.app.log.database))
    assert (pond / "test_key.py").read_text() == TEST_FILE
    assert WRITTEN not in "".join(event.model_dump_json() for event in duck.events)
    assert entries
    assert_state_is_clean()


async def test_a_small_model_sees_a_file_with_markers(pond: Path):
    """The file's content goes into its prompt by a way of its own."""
    asked: list[str] = []

    def answer(body: dict[str, Any]) -> Answer:
        sent = json.dumps(body, ensure_ascii=False)
        asked.append(sent)
        if "Output: Decision" in sent and "settings.txt" not in sent.partition("assistant")[2]:
            flat = {
                "wants": "change",
                "operation": "file_ops.write_file",
                "path": "settings.txt",
                "reply": "",
            }
            return Answer(json.dumps(flat))
        return Answer("DEPTH=5\n```")

    with ModelServer(answer) as server:
        async with engine(pond, server=server, small=True, max_loops=2) as duck:
            await duck.app.chat.say("Make the depth of settings.txt 5")
    assert any("[redacted:" in sent for sent in asked)
    assert_requests_are_clean(server.requests)
    assert_absent("what is shown", "".join(event.model_dump_json() for event in duck.events))
