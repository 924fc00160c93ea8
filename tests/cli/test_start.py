"""What starts quickly stays quick: which modules a command imports."""

import subprocess
import sys

import pytest

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
