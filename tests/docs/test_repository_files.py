"""The files that the hosting site reads: workflows, forms, and what they point to."""

import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import yaml

from duckflow.config.version import __version__
from fakes.rows import every_row
from source_tree import ROOT

HOSTING = ROOT / ".github"
WORKFLOWS = sorted((HOSTING / "workflows").glob("*.yml"))
FORMS = sorted(HOSTING.glob("ISSUE_TEMPLATE/*.yml"))
TARGETS = set(re.findall(r"(?m)^([a-z-]+):.*##", (ROOT / "Makefile").read_text("utf-8")))
PINNED = re.compile(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)")


def read(path: Path) -> dict[str, Any]:
    """A file's content; `on` is kept as a word, which YAML 1.1 takes for true."""
    found = yaml.load(path.read_text("utf-8"), yaml.BaseLoader)
    assert isinstance(found, dict), path.name
    return found


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job.get("steps", ())]


@every_row("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_a_workflow_runs_exists(path: Path):
    workflow = read(path)
    commands = "\n".join(step["run"] for step in steps(workflow) if "run" in step)
    assert set(re.findall(r"\bmake ([a-z-]+)", commands)) <= TARGETS
    for name in re.findall(r"(?m)(?:^|\s)((?:scripts|\.ci)/[\w-]+)", commands):
        assert os.access(ROOT / name, os.X_OK), name
    for used in (one["uses"] for one in [*workflow["jobs"].values(), *steps(workflow)] if "uses" in one):
        assert (ROOT / used).is_file() if used.startswith("./") else PINNED.fullmatch(used), used


@every_row("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_complete_and_has_few_rights(path: Path):
    workflow = read(path)
    assert workflow["name"]
    assert workflow["on"]
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert "uses" in job or ("runs-on" in job and "timeout-minutes" in job), name
        needed = job.get("needs", [])
        before = {needed} if isinstance(needed, str) else set(needed)
        assert before <= set(workflow["jobs"]), name
        assert all(("uses" in step) != ("run" in step) for step in job.get("steps", ())), name


def test_the_checks_run_on_every_python_that_is_supported_and_on_two_architectures():
    jobs = read(HOSTING / "workflows" / "checks.yml")["jobs"]
    matrix = jobs["test"]["strategy"]["matrix"]
    assert matrix["machine"] == ["ubuntu-latest", "ubuntu-24.04-arm"]
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    supported = [one.rpartition(" ")[2] for one in classifiers if "Python :: 3." in one]
    assert matrix["python"] == supported
    assert {"run": "make test"} in jobs["test"]["steps"]
    assert {"run": "make test-browser"} in jobs["browser"]["steps"]


@every_row("path", FORMS, ids=lambda path: path.name)
def test_a_form_has_what_the_hosting_site_needs(path: Path):
    form = read(path)
    if path.name == "config.yml":
        assert set(form) <= {"blank_issues_enabled", "contact_links"}
        return
    assert form["name"]
    assert form["description"]
    ids = [field["id"] for field in form["body"] if field["type"] != "markdown"]
    assert len(ids) == len(set(ids)) > 0
    for field in form["body"]:
        assert field["type"] in {"markdown", "input", "textarea", "dropdown", "checkboxes"}
        assert field["attributes"].get("value" if field["type"] == "markdown" else "label")


def test_the_changelog_has_a_place_for_what_comes_next_and_a_dated_section_for_this_version():
    headings = re.findall(r"(?m)^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"))
    assert headings[0] == "[Unreleased]"
    assert re.fullmatch(rf"\[{re.escape(__version__)}\] - \d{{4}}-\d\d-\d\d", headings[1])


def test_the_notes_of_a_release_are_its_section_of_the_changelog():
    def notes(version: str) -> subprocess.CompletedProcess[str]:
        command = [str(ROOT / "scripts" / "release-notes"), version]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    found = notes(__version__)
    assert found.returncode == 0
    assert "\n### Added\n" in found.stdout
    assert "\n## " not in found.stdout
    assert notes("99.0").returncode == 1
