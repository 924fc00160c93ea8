"""Runs a workflow of docs/ci.md as a hosting site would: its steps with bash, actions by small stand-ins.

`python workflow_runner.py PAGE NAME EVENT-FILE REPOSITORY FOLDER` runs one with the real installation.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
_EXPRESSION = re.compile(r"\$\{\{\s*(.+?)\s*\}\}")


def recipe(page: Path, name: str) -> dict[str, Any]:
    """Return the YAML block of a page that begins with this name or has it as a key."""
    blocks = re.findall(r"```yaml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    found = [yaml.load(block, yaml.BaseLoader) for block in blocks]
    return next(one for one in found if one.get("name") == name or name in one)


class Failed(Exception):
    """A step ended with this exit code."""

    def __init__(self, step: str, code: int, said: str) -> None:
        super().__init__(f"{step}: exit code {code}\n{said}")
        self.code = code


class Runner:
    """A machine of the hosting site. All steps see `env`; `replace` has substitutes for some steps."""

    def __init__(
        self, folder: Path, repository: Path, event: Mapping[str, Any], env: Mapping[str, str]
    ) -> None:
        self.folder, self.repository, self.event = folder.absolute(), repository.absolute(), event
        folder = self.folder
        self.env = dict(env)
        self.secrets = {name: env[name] for name in env if name.endswith("_KEY")}
        self.left_out: tuple[str, ...] = ()
        self.summary = folder / "step-summary.md"
        self.said = ""
        (folder / "artifacts").mkdir(parents=True)
        (folder / "event.json").write_text(json.dumps(event), "utf-8")

    def run(self, workflow: Mapping[str, Any]) -> None:
        """Run all jobs in the order in which they are written."""
        failed: Failed | None = None
        for name, job in workflow["jobs"].items():
            try:
                if failed is None or "always()" in job.get("if", ""):
                    self.run_job(name, job)
            except Failed as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def run_job(self, name: str, job: Mapping[str, Any]) -> None:
        """Run one job on a machine with an empty home."""
        place = self.folder / name
        for part in ("work", "temp", "home"):
            (place / part).mkdir(parents=True, exist_ok=True)
        context = {
            "github.workspace": str(place / "work"),
            "runner.temp": str(place / "temp"),
            "github.token": "the-token",
            "github.run_id": "7",
            **{f"secrets.{key}": value for key, value in self.secrets.items()},
            **_leaves("github.event", self.event),
        }
        failed: Failed | None = None
        for step in job["steps"]:
            try:
                if failed is None or "always()" in step.get("if", ""):
                    self._step(step, place, context)
            except Failed as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def _step(self, step: Mapping[str, Any], place: Path, context: dict[str, str]) -> None:
        given = {key: fill(value, context) for key, value in step.get("with", {}).items()}
        uses = step.get("uses", "")
        if uses.startswith("actions/checkout@"):
            subprocess.run(
                ["git", "clone", "--quiet", self.repository, place / "work"], check=True, capture_output=True
            )
        elif uses.startswith("actions/upload-artifact@"):
            sources, target = map(Path, given["path"].split()), self.folder / "artifacts" / given["name"]
            for source in sources:
                if source.is_dir():
                    shutil.copytree(source, target)
                else:
                    target.mkdir(exist_ok=True)
                    shutil.copy(source, target)
        elif uses.startswith("actions/download-artifact@"):
            shutil.copytree(self.folder / "artifacts" / given["name"], given["path"])
        elif uses.startswith("OWNER/duckflow@"):
            self._action(step, given, place, context)
        else:
            assert not uses, uses
            self._bash(step, place, context, {})

    def _action(
        self, step: Mapping[str, Any], given: Mapping[str, str], place: Path, context: dict[str, str]
    ) -> None:
        action = yaml.load((ROOT / "action.yml").read_text("utf-8"), yaml.BaseLoader)
        assert set(given) <= set(action["inputs"]), given
        inner = {
            f"inputs.{name}": given.get(name, fill(one.get("default", ""), context))
            for name, one in action["inputs"].items()
        }
        outer = {key: fill(value, context) for key, value in step.get("env", {}).items()}
        outputs: dict[str, str] = {}
        try:
            for one in action["runs"]["steps"]:
                if one["name"] not in self.left_out:
                    self._bash(one, place, {**context, **inner}, outer, outputs)
        finally:
            named = {f"steps.run.outputs.{name}": value for name, value in outputs.items()}
            for name, one in action["outputs"].items():
                context[f"steps.{step['id']}.outputs.{name}"] = fill(one["value"], named)

    def _bash(
        self,
        step: Mapping[str, Any],
        place: Path,
        context: Mapping[str, str],
        env: Mapping[str, str],
        outputs: dict[str, str] | None = None,
    ) -> None:
        written = place / "output"
        written.write_text("")
        head = subprocess.run(
            ["git", "-C", place / "work", "rev-parse", "HEAD"], capture_output=True, text=True, check=False
        )
        known = {
            **self.env,
            "HOME": str(place / "home"),
            "RUNNER_TEMP": context["runner.temp"],
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_EVENT_PATH": str(self.folder / "event.json"),
            "GITHUB_OUTPUT": str(written),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_SHA": head.stdout.strip(),
            "GITHUB_RUN_ID": context["github.run_id"],
            "GITHUB_REPOSITORY": "owner/project",
            **env,
            **{key: fill(value, context) for key, value in step.get("env", {}).items()},
        }
        for secret in self.secrets:
            if secret not in env:
                known.pop(secret, None)  # only the steps that name a secret get it
        script = fill(step["run"], context)
        bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        done = subprocess.run(
            bash, cwd=place / "work", env=known, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.said += done.stdout + done.stderr
        if outputs is not None:
            outputs |= dict(line.split("=", 1) for line in written.read_text().splitlines() if line)
        if done.returncode:
            raise Failed(step.get("name", script), done.returncode, done.stdout + done.stderr)


def fill(template: str, context: Mapping[str, str]) -> str:
    """Fill in the expressions of a workflow. An unknown one is an error."""
    return _EXPRESSION.sub(lambda found: context[found[1]], template)


def _leaves(prefix: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {prefix: str(value)}
    return {
        key: leaf for name, one in value.items() for key, leaf in _leaves(f"{prefix}.{name}", one).items()
    }


if __name__ == "__main__":
    page, name, event, repository, folder = sys.argv[1:]
    runner = Runner(Path(folder), Path(repository), json.loads(Path(event).read_text("utf-8")), os.environ)
    try:
        runner.run(recipe(Path(page), name))
    finally:
        print(runner.said)  # noqa: T201 - a program
