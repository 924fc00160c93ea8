"""Push a run's branch at the user's command, with the user's own git and logins."""

import os
import subprocess
import sys
from pathlib import Path

from duckflow.domain.errors import UsageError, UserError
from duckflow.fleet.runs import FleetRun

_NO_PROMPT = {"GIT_TERMINAL_PROMPT": "0"}


def push_branch(run: FleetRun, remote: str) -> str:
    """Push the branch of a run that is done; return the remote's address. Never overwrites anything there."""
    if run.state not in ("done", "failed"):
        raise UsageError("fleet.push_not_over", run=run.id)
    if not run.branch:
        raise UsageError("fleet.push_nothing", run=run.id)
    repository = Path(run.repository)
    if not repository.is_dir():
        raise UserError("fleet.not_here", repository=run.repository)
    if _git(repository, "rev-parse", "--verify", "--quiet", f"refs/heads/{run.branch}").returncode:
        raise UsageError("fleet.push_no_branch", branch=run.branch, repository=run.repository)
    if remote not in (known := _git(repository, "remote").stdout.split()):
        found = ", ".join(known) or "–"
        raise UsageError("fleet.push_no_remote", remote=remote, repository=run.repository, remotes=found)
    reference = f"refs/heads/{run.branch}"
    done = _git(repository, "push", "--porcelain", remote, f"{reference}:{reference}")
    if done.returncode:
        reason = done.stderr.strip() or done.stdout.strip()
        raise UserError("fleet.git_failed", command="push", reason=reason)
    return _git(repository, "remote", "get-url", remote).stdout.strip()


def _git(repository: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run the user's git as the user would, but never wait for a password unless there is a terminal."""
    environment = os.environ if sys.stdin.isatty() else {**os.environ, **_NO_PROMPT}
    command = ["git", "-C", str(repository), *words]
    try:
        return subprocess.run(  # noqa: S603 - fixed words, and names that git itself gave us
            command, env=environment, capture_output=True, text=True, errors="replace", check=False
        )
    except FileNotFoundError as exc:
        raise UserError("fleet.no_git") from exc
