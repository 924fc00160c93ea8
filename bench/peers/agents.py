"""The agents to compare, how each is installed in a separate folder, and how it is started."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from peers.commands import AIDER, command

ROOT = Path(__file__).parent.parent.parent
HOME = ROOT / ".bench"
"""Folder in which the other agents are installed; git ignores it."""

AIDER_QUIET = (
    "--no-git",
    "--no-check-update",
    "--analytics-disable",
    "--no-show-model-warnings",
    "--yes-always",
)
TASK = "Run the small commands you think of, then say that all commands ran."


@dataclass(frozen=True)
class Agent:
    """One agent: its installation, the command of a run, and its environment variables."""

    name: str
    install: Callable[[], str]
    """Installs the agent if necessary. Returns its version, or an empty text if it can't be installed."""
    command: Callable[[str, Path, int], list[str]]
    """Builds the command for a model's address, a working folder and a number of loops."""
    environment: Callable[[str, Path], Mapping[str, str]]


def _python_package(name: str, program: str, *also: str) -> str:
    """Install a package and undeclared dependencies in a separate environment, and return its version."""
    venv = HOME / name
    python = venv / "bin" / "python"
    if not (venv / "bin" / program).exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*install, name, *also], check=False, stderr=subprocess.DEVNULL).returncode:
            shutil.rmtree(venv)
            return ""
    ask = f"import importlib.metadata as m; print(m.version('{name}'))"
    return subprocess.run([str(python), "-c", ask], check=True, capture_output=True, text=True).stdout.strip()


def _npm_package(name: str, program: str) -> str:
    folder = HOME / program
    found = folder / "node_modules" / ".bin" / program
    if not found.exists():
        npm = shutil.which("npm")
        install = [str(npm), "install", "--silent", "--no-audit", "--prefix", str(folder), name]
        if npm is None or subprocess.run(install, check=False).returncode:
            return ""
    told = subprocess.run([str(found), "--version"], check=True, capture_output=True, text=True).stdout
    return told.split()[-1]


def _own_version() -> str:
    told = subprocess.run(
        [sys.executable, "-m", "duckflow", "--version"], check=True, capture_output=True, text=True, cwd=ROOT
    )
    return told.stdout.split()[-1]


def _duckflow(_: str, folder: Path, _loops: int) -> list[str]:
    flags = ["--model", "openai:bench", "--mode", "auto", "--max-loops", "100000", "--workspace", str(folder)]
    return [sys.executable, "-m", "duckflow", "run", TASK, *flags]


def _mini(_: str, folder: Path, _loops: int) -> list[str]:
    program = str(HOME / "mini-swe-agent" / "bin" / "mini")
    flags = ["--yolo", "--exit-immediately", "--cost-limit", "0", "--output", str(folder / "out.json")]
    return [program, "--model", "openai/bench", "--task", TASK, *flags]


def _codex(url: str, folder: Path, _loops: int) -> list[str]:
    provider = f'{{name="bench", base_url="{url}", wire_api="responses", env_key="OPENAI_API_KEY"}}'
    settings = ["-c", f"model_providers.bench={provider}", "-c", "model_provider=bench", "-c", "model=gpt-5"]
    settings += ["-c", "approval_policy=never", "-c", "sandbox_mode=workspace-write"]
    program = str(HOME / "codex" / "node_modules" / ".bin" / "codex")
    return [program, "exec", "--skip-git-repo-check", "--cd", str(folder), *settings, TASK]


def _aider(_: str, folder: Path, loops: int) -> list[str]:
    """Build Aider's command. The commands come from a file, as Aider would ask about those of its model."""
    program, script = str(HOME / "aider-chat" / "bin" / "aider"), folder / "commands.txt"
    given = (f"/run {command(number)}\n/code Go on.\n" for number in range(1, loops + 1))
    script.write_text("/code Say what to run.\n" + "".join(given), "utf-8")
    how = ["--model", f"openai/{AIDER}", "--edit-format", "whole", "--load", str(script)]
    return [program, *how, *AIDER_QUIET]


def install_aider() -> str:
    """Return Aider's version, or an empty text if it can't be installed."""
    return _python_package("aider-chat", "aider")


def peer_environment(url: str, home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "CODEX_HOME": str(home),
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": url,
        "OPENAI_API_BASE": url,
        "MSWEA_CONFIGURED": "true",
        "MSWEA_COST_TRACKING": "ignore_errors",
        "MSWEA_SILENT_STARTUP": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "NO_COLOR": "1",
    }


DUCKFLOW = Agent("Duckflow", _own_version, _duckflow, peer_environment)
AGENTS = (
    DUCKFLOW,
    Agent("Codex", lambda: _npm_package("@openai/codex", "codex"), _codex, peer_environment),
    Agent(
        "mini-swe-agent", lambda: _python_package("mini-swe-agent", "mini", "mcp"), _mini, peer_environment
    ),
    Agent("Aider", install_aider, _aider, peer_environment),
)
