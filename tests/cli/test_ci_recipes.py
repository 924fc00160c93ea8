"""The recipes of docs/ci.md run as they are written, and every exit code of its table is reached."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.engine import action, decision, write_script
from fakes.rows import every_row
from fakes.workflow_runner import Failed, Runner, recipe
from source_tree import ROOT

PAGE = ROOT / "docs" / "ci.md"
ISSUE = {"number": 12, "title": "greet $(touch pwned) `id`", "body": "'; touch pwned; '\n"}
WRITE = decision("", action("write_file", path="greet.py", content="print('hello')\n"))


REVIEW = (
    decision(
        "",
        {
            "operation": "review.report_finding",
            "args": {
                "file": "greet.py",
                "line": 1,
                "severity": "high",
                "text": "It prints the wrong word.",
                "command": 'test "$(python3 greet.py)" = hi',
            },
        },
    ),
    decision("I ran it."),
)


def commit_change(source: Path, repository: Path) -> None:
    """Commit a change that breaks the program to the repository from which the jobs clone."""
    (source / "greet.py").write_text("print('hu')\n")
    git(source, "commit", "--quiet", "--all", "--message", "second")
    git(source, "push", "--quiet", str(repository), "main")


def git(folder: Path, *words: str) -> str:
    named = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", "-C", folder, *named, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one file, from which the jobs clone."""
    source, bare = tmp_path / "source", tmp_path / "origin.git"
    source.mkdir()
    git(source, "init", "--quiet")
    (source / "greet.py").write_text("print('hi')\n")
    git(source, "add", "--all")
    git(source, "commit", "--quiet", "--message", "first")
    subprocess.run(["git", "clone", "--quiet", "--bare", source, bare], check=True, capture_output=True)
    return bare


class Job:
    """A hosting site's machine on which Duckflow is installed already and a scripted model answers."""

    def __init__(self, tmp_path: Path, repository: Path, event: dict[str, Any], *answers: Any) -> None:
        self.calls = tmp_path / "gh.log"
        programs = tmp_path / "programs"
        programs.mkdir()
        gh = programs / "gh"
        gh.write_text(
            f'#!/bin/bash\nprintf "%s\\n" "$*" >> {self.calls}\n'
            'while [ $# -gt 0 ]; do [ "$1" != --body-file ] || cat "$2" >> ' + f"{self.calls}; shift; done\n"
        )
        gh.chmod(0o755)
        script = write_script(tmp_path / "answers.jsonl", answers)
        env = {
            "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "OPENAI_API_KEY": "sk-x",
        }
        env |= {"DUCKFLOW_MODEL": f"scripted:{script}"}
        self.runner = Runner(tmp_path / "machine", repository, event, env)
        self.runner.left_out = ("Install Duckflow", "Allow user namespaces, which the sandbox needs")
        for name in ("fix", "review"):
            installed = tmp_path / "machine" / name / "temp" / "duckflow" / "venv" / "bin" / "duckflow"
            installed.parent.mkdir(parents=True)
            installed.write_text(f'#!/bin/bash\nexec {sys.executable} -m duckflow "$@"\n')
            installed.chmod(0o755)


def test_M3_a_labelled_issue_becomes_a_draft_pull_request(tmp_path: Path, repository: Path):
    """The words of the issue are never run, and only the job without a model has the token."""
    job = Job(tmp_path, repository, {"issue": ISSUE}, WRITE, decision("Greeted @all."))
    job.runner.run(recipe(PAGE, "Fix an issue"))
    branch = "duckflow/issue-12-7"
    assert git(repository, "show", f"{branch}:greet.py") == "print('hello')"
    called = job.calls.read_text()
    assert called.startswith(f"pr create --draft --head {branch} --title Fix issue 12 --body-file")
    assert "Closes #12" in called
    assert "Greeted @<!-- -->all." in called
    assert "exit code 0" in job.runner.summary.read_text()
    assert not list(tmp_path.rglob("pwned"))


def test_O4_a_review_changes_nothing_fails_with_a_proven_finding_and_becomes_a_comment(
    tmp_path: Path, repository: Path
):
    base = git(repository, "rev-parse", "HEAD")
    commit_change(tmp_path / "source", repository)
    job = Job(tmp_path, repository, {"pull_request": {"number": 3, "base": {"sha": base}}}, *REVIEW)
    with pytest.raises(Failed) as failed:
        job.runner.run(recipe(PAGE, "Review a pull request"))
    assert failed.value.code == 1
    assert (tmp_path / "machine" / "review" / "work" / "greet.py").read_text() == "print('hu')\n"
    called = job.calls.read_text()
    assert called.startswith("pr comment 3 --repo owner/project --edit-last --create-if-none --body-file")
    assert "prints the wrong word" in called
    assert "fails with the changes (exit code 1) and passes without them" in called
    (found,) = json.loads((tmp_path / "machine/artifacts/review/review.json").read_text())["findings"]
    assert (found["file"], found["outcome"]) == ("greet.py", "proven")


def test_M3_a_step_fails_with_the_exit_code_and_the_summary_says_why(tmp_path: Path, repository: Path):
    ask = decision("", action("delete_file", path="greet.py"))
    job = Job(tmp_path, repository, {"issue": ISSUE}, decision("Which?", next_step="pending_user"), ask)
    with pytest.raises(Failed) as failed:
        job.runner.run(recipe(PAGE, "Fix an issue"))
    assert failed.value.code == 3
    assert "✋ waiting for you" in job.runner.summary.read_text()
    assert not job.calls.exists()


def test_M3_the_gitlab_job_runs_as_it_is_written(tmp_path: Path, repository: Path):
    work = tmp_path / "work"
    commit_change(tmp_path / "source", repository)
    subprocess.run(["git", "clone", "--quiet", repository, work], check=True, capture_output=True)
    job = Job(tmp_path, repository, {}, *REVIEW)
    found = recipe(PAGE, "duckflow-review")["duckflow-review"]
    env = {
        **job.runner.env,
        **found["variables"],
        "PATH": f"{tmp_path}/machine/fix/temp/duckflow/venv/bin:{job.runner.env['PATH']}",
        "HOME": str(tmp_path / "home"),
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": "HEAD~1",
    }
    script = "\n".join(["set -eo pipefail", *found["script"]])
    done = subprocess.run(
        ["bash", "-c", script], cwd=work, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "you declared this machine to be the sandbox" in done.stderr
    assert "prints the wrong word" in (work / found["artifacts"]["paths"][0]).read_text()


ENDINGS: dict[int, tuple[Any, ...]] = {
    0: (WRITE, decision("It is there.")),
    1: (WRITE, decision("Done.")),
    2: (),
    3: (decision("Which?", next_step="pending_user"),),
    4: ({"for": "Decision", "error": 500},) * 9,
}
"""Answers of a scripted model that end a run with each exit code. A test of `run` interrupts one (130)."""


@every_row("code", ENDINGS)
def test_M3_every_exit_code_of_the_table_is_reached_and_in_the_summary(tmp_path: Path, code: int):
    folder, summary = tmp_path / str(code), tmp_path / f"{code}.md"
    folder.mkdir()
    options = ["--mode", "edits", *(["--verify", "false"] if code == 1 else [])]
    options += ["--mode", "odd"] if code == 2 else []
    options += ["--summary", str(summary)]
    model = f"scripted:{write_script(tmp_path / f'{code}.jsonl', ENDINGS[code])}"
    done = subprocess.run(
        [sys.executable, "-m", "duckflow", "run", "-", "--model", model, "--workspace", folder, *options],
        input="Create greet.py that prints hello",
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    if code != 2:
        assert f"exit code {code}" in summary.read_text()


def test_M3_the_table_lists_these_exit_codes():
    listed = re.findall(r"^\| (\d+) \| ", PAGE.read_text("utf-8"), re.MULTILINE)
    assert [int(one) for one in listed] == [*ENDINGS, 130]


def test_the_action_documents_its_inputs_and_pastes_none_into_a_script():
    told = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    page = PAGE.read_text("utf-8")
    for name in (*told["inputs"], *told["outputs"]):
        assert f"`{name}`" in page, name
    assert all("${{" not in step["run"] for step in told["runs"]["steps"])
    for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL):
        scripts = json.dumps([job.get("steps", ()) for job in yaml.safe_load(block).get("jobs", {}).values()])
        assert "github.event.issue.title }}" not in scripts
