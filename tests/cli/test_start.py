"""Start-up stays fast: counts the modules that a command imports."""

import subprocess
import sys

import pytest

from fakes.engine import decision
from fakes.model_server import ModelServer
from fakes.plays import play

HEAVY = (
    "pydantic",
    "httpx2",
    "rich",
    "prompt_toolkit",
    "xllamacpp",
    "pydantic_ai",
    "genai_prices",
    "asyncio",
    "starlette",
    "uvicorn",
)
PROBE = """
import sys
sys.argv = ["duckflow", *{args!r}]
from duckflow.cli import main
try:
    main()
except SystemExit as ended:
    print("exit", ended.code)
print("imported", [name for name in {heavy!r} if name in sys.modules])
"""


def imported(*args: str, heavy: tuple[str, ...] = HEAVY) -> str:
    probe = PROBE.format(args=args, heavy=heavy)
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("args", [["--help"], ["--version"]])
def test_help_and_version_import_nothing_heavy(args: list[str]):
    shown = imported(*args)
    assert "exit 0" in shown
    assert "imported []" in shown


@pytest.mark.parametrize("args", [["run", "--help"], ["model", "--help"], ["sessions", "--help"]])
def test_help_of_a_command_imports_nothing_of_ours_that_is_heavy(args: list[str]):
    """Typer itself brings pydantic once it reads the flags of a command."""
    assert "imported []" in imported(*args, heavy=(*HEAVY[1:], "duckflow.app", "duckflow.domain.frozen"))


def test_help_is_in_the_users_language(monkeypatch: pytest.MonkeyPatch):
    """M4: by configuration, else by locale."""
    assert "companion" in imported("--help")
    monkeypatch.setenv("LANG", "ja_JP.UTF-8")
    assert "コーディング" in imported("--help")


def test_run_never_imports_the_terminal(tmp_path):
    script = tmp_path / "s.jsonl"
    script.write_text('{"for": "Decision", "text": "{\\"next_step\\": \\"done\\", \\"reply\\": \\"hi\\"}"}\n')
    shown = imported(
        "run", "x", "--workspace", str(tmp_path), "--model", f"scripted:{script}",
        heavy=("typer", "prompt_toolkit", "rich", "httpx2", "xllamacpp", "pydantic_ai", "genai_prices"),
    )  # fmt: skip
    assert "imported []" in shown


AT_FIRST_REQUEST = """
import sys
import pydantic

def kinds(of):
    for one in of.__subclasses__():
        yield one
        yield from kinds(one)

def connected(event, args):
    if event == "socket.connect" and args[1] == ("127.0.0.1", {port}):
        connected.times += 1
        if connected.times == 2:  # the first asks which models are served
            ours = [name for name in sys.modules if name.startswith("duckflow.")]
            built = [one for one in set(kinds(pydantic.BaseModel)) if one.__pydantic_complete__]
            print("counted", len(ours), len([one for one in built if one.__module__ in ours]))
            print("loaded", [name for name in {heavy!r} if name in sys.modules])

connected.times = 0
sys.addaudithook(connected)
sys.argv = ["duckflow", "run", "x", "--workspace", {folder!r}, "--model", "openai:m"]
from duckflow.cli import main
main()
"""


def test_run_has_little_to_do_before_its_first_request(tmp_path, monkeypatch):
    """Counts imports and built models before the first request, because times vary."""
    heavy = (
        "typer",
        "click",
        "importlib.metadata",
        "email",
        "zipfile",
        "httpx2",
        "httpcore2",
        "anyio",
        "h11",
        "doctest",
        "unittest",
        "rich",
    )
    with ModelServer(play(decision("hello"))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        port = int(server.url.rpartition(":")[2])
        probe = AT_FIRST_REQUEST.format(port=port, heavy=heavy, folder=str(tmp_path))
        done = subprocess.run(
            [sys.executable, "-c", probe], capture_output=True, text=True, check=False, timeout=120
        )
    assert done.returncode == 0, done.stderr
    assert "loaded []" in done.stdout
    counted = done.stdout.partition("counted ")[2].split()
    assert (int(counted[0]) <= 408, int(counted[1]) <= 62) == (True, True), counted[:2]
