"""The process of the embedded model: what it listens to, how it stops, how it ends."""

import asyncio
import http.client
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from duckflow.llm.local import process as process_module
from duckflow.llm.local.process import WorkerProcess

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="read from /proc")

LEAVES_IT_OPEN = """
import asyncio, sys
from pathlib import Path
from duckflow.config.settings import EmbeddedSettings
from duckflow.domain.model import ChatMessage, ModelRequest
from duckflow.llm.local.embedded import open_embedded

async def main():
    model = await open_embedded(Path(sys.argv[1]), EmbeddedSettings(window=512, threads=1))
    print(model._worker._process.pid, flush=True)
    if sys.argv[2] == "answering":
        message = ChatMessage(role="user", text="Tell a long story.")
        stream = model.stream(ModelRequest(output="Text", messages=(message,)))
        await anext(stream)

asyncio.run(main())
"""


def settings(model: Path) -> dict[str, Any]:
    return {
        "model": str(model),
        "window": 4096,
        "threads": 1,
        "batch_threads": 1,
        "batch": 64,
        "cache_mib": 64,
        "alike": 16,
        "states": "",
    }


TELLS_WHAT_IT_SEES = """
import json, os, socket, sys
from pathlib import Path
line = socket.socket(fileno=int(sys.argv[1])).makefile().readline()
Path(json.loads(line)["model"]).write_text(json.dumps(dict(os.environ)))
"""


async def test_SAFETY_18_it_sees_no_key_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-this-one")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    worker, seen = tmp_path / "worker.py", tmp_path / "seen.json"
    worker.write_text(TELLS_WHAT_IT_SEES)
    monkeypatch.setattr(process_module, "WORKER", worker)
    process = WorkerProcess(settings(seen))
    assert await asyncio.to_thread(process._process.wait) == 0
    await process.look_back()
    assert '"OMP_NUM_THREADS": "1"' in seen.read_text()
    assert "sk-not-for-this-one" not in seen.read_text()


@asynccontextmanager
async def running(model: Path) -> AsyncIterator[WorkerProcess]:
    process = WorkerProcess(settings(model))
    await process.connect()
    assert await process.receive() == {"ready": True}
    yield process
    await process.end()


@pytest.fixture
async def worker(two_layers: Path) -> AsyncIterator[WorkerProcess]:
    async with running(two_layers) as process:
        yield process


@pytest.fixture
async def slow_worker(smollm2: Path) -> AsyncIterator[WorkerProcess]:
    """With the whole model, for what must not be done before it is stopped."""
    async with running(smollm2) as process:
        yield process


def question(text: str) -> dict[str, Any]:
    """One that the model would answer at length, whatever it is."""
    return {
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 600,
        "ignore_eos": True,
        "stream": True,
        "return_progress": True,
    }


async def chunks_until_end(worker: WorkerProcess, number: int) -> list[dict[str, Any]]:
    chunks: list[dict[str, Any]] = []
    while "end" not in (message := await worker.receive()):
        assert message["id"] == number
        chunks.append(message["chunk"])
    return chunks


async def test_a_stop_ends_the_writing(slow_worker):
    worker = slow_worker
    worker.send({"ask": 1, "body": question("Count from one to one thousand.")})
    while not (await worker.receive())["chunk"]["choices"][0]["delta"].get("content"):
        pass
    worker.send({"stop": 1})
    # A few may have been on their way; six hundred were asked for.
    assert len(await chunks_until_end(worker, 1)) < 200


async def test_a_stop_ends_the_reading_of_the_prompt(slow_worker):
    worker = slow_worker
    worker.send({"ask": 1, "body": question("be careful " * 1500)})
    total = (await worker.receive())["chunk"]["prompt_progress"]["total"]
    worker.send({"stop": 1})
    rest = await chunks_until_end(worker, 1)
    assert all(chunk["prompt_progress"]["processed"] < total for chunk in rest)
    assert len(rest) < total / 64 / 2


async def test_a_question_given_up_while_it_waits_is_not_begun(worker):
    worker.send({"ask": 1, "body": question("Count from one to one thousand.")})
    worker.send({"ask": 2, "body": question("Count from one to one thousand.")})
    await worker.receive()
    worker.send({"stop": 2})
    await chunks_until_end(worker, 1)
    assert await chunks_until_end(worker, 2) == []


def _listening(pid: int) -> set[tuple[str, int]]:
    """The addresses on which a process accepts connections."""
    sockets = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        held = re.fullmatch(r"socket:\[(\d+)\]", str(entry.readlink()))
        sockets |= {held[1]} if held else set()
    found = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            host, _, port = fields[1].partition(":")
            if fields[3] == "0A" and fields[9] in sockets:
                words = [bytes.fromhex(host[at : at + 8])[::-1] for at in range(0, len(host), 8)]
                found.add((socket.inet_ntop(family, b"".join(words)), int(port, 16)))
    return found


@ON_LINUX
async def test_its_http_side_is_for_this_machine_and_for_nobody_without_the_key(worker):
    addresses = _listening(worker._process.pid)
    assert {host for host, _ in addresses} == {"127.0.0.1"}
    for _, port in addresses:
        for path in ("/v1/chat/completions", "/tokenize", "/slots", "/props"):
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("POST", path, b"{}", {"Authorization": "Bearer guess"})
            assert connection.getresponse().status == 401
            connection.close()


@ON_LINUX
@pytest.mark.parametrize("state", ["loading", "answering"])
async def test_it_is_gone_after_a_program_that_forgot_to_close_it(two_layers, state):
    command = [sys.executable, "-c", LEAVES_IT_OPEN, str(two_layers), state]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    while Path(f"/proc/{int(done.stdout)}").exists():
        await asyncio.sleep(0.05)


KILLED_EARLY = """
import sys
from duckflow.llm.local.worker import WorkerChannel
channel = WorkerChannel(int(sys.argv[1]))
channel.write({"ready": True})
channel.read()
"""


@pytest.mark.parametrize("last", [b"", b'{"stop"'])
def test_it_ends_with_a_program_that_was_killed_before_it_read_or_wrote_all(last):
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-c", KILLED_EARLY, str(theirs.fileno())]
    with theirs, ours:
        worker = subprocess.Popen(command, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE)
        ours.recv(1)  # the rest of the line stays unread
        ours.sendall(last)
    assert (worker.communicate()[1], worker.returncode) == (b"", 0)


@ON_LINUX
async def test_ending_it_while_it_loads_leaves_nothing_behind(smollm2):
    process = WorkerProcess(settings(smollm2))
    await process.connect()
    await process.end()
    assert not Path(f"/proc/{process._process.pid}").exists()
