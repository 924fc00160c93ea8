"""A git repository to work in, and the fleet's commands as programs."""

import os
import subprocess
import sys
from pathlib import Path

from fakes import warm

_WHO = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")


def git(folder: Path, *words: str) -> str:
    """What git says."""
    done = subprocess.run(["git", *_WHO, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def make_repository(folder: Path) -> Path:
    """A repository with one commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "README.md").write_text("A project.\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first")
    return folder


def duckflow(*args: object, **env: str) -> subprocess.CompletedProcess[str]:
    """A command of duckflow, as a program."""
    return warm.run(
        [sys.executable, "-m", "duckflow", *map(str, args)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, **env},
        timeout=300,
        check=False,
    )
