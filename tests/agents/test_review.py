"""Reviews with proof (O4): real processes and copies, and a model server that plays the reviewer."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from duckflow import Session
from duckflow.domain.commands import ReviewChanges, SetMode
from duckflow.domain.errors import UserError
from fakes import warm
from fakes.agents_at_work import environment
from fakes.conversation import conversation, ready
from fakes.engine import decision
from fakes.model_server import Fault, ModelServer
from fakes.plays import play
from fakes.rows import every_row

ADD = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"
PROOF = "import calc\nassert calc.add(2, 3) == 5, calc.add(2, 3)\n"


def git(folder: Path, *words: str) -> str:
    named = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", "-C", folder, *named, *words], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def project(folder: Path) -> Path:
    """A repository whose uncommitted change breaks `add`."""
    git(folder, "init", "--quiet")
    (folder / "calc.py").write_text(ADD)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "first")
    (folder / "calc.py").write_text(WRONG)
    return folder


def finding(**args: Any) -> dict[str, Any]:
    given = {"file": "calc.py", "line": 2, "severity": "high", "text": "add subtracts.", **args}
    return {"operation": "review.report_finding", "args": given}


def review(
    folder: Path, server: ModelServer, *words: str, given: str | None = None, **more: str
) -> tuple[int, str, str]:
    """Run `duckflow review`; return exit code, output and errors."""
    command = [sys.executable, "-m", "duckflow", "review", *words, "--model", "openai:any"]
    done = warm.run(
        [*command, "--workspace", str(folder)],
        input=given,
        **({} if given is not None else {"stdin": subprocess.DEVNULL}),
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**environment(server), **more},
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def read(printed: tuple[int, str, str]) -> tuple[int, dict[str, Any]]:
    code, output, errors = printed
    assert output, errors
    return code, json.loads(output)


def test_O4_a_finding_is_proven_by_a_command_that_fails_only_with_the_changes(project: Path):
    """The reviewer gets the difference; the proof runs with and without it; nothing in the folder changes."""
    before = git(project, "status", "--porcelain"), git(project, "count-objects")
    test = {"command": f"{sys.executable} check_add.py", "test_path": "check_add.py", "test": PROOF}
    with ModelServer(play(decision("I look.", finding(**test)), decision("Looked at add."))) as server:
        code, found = read(review(project, server, "--json"))
        asked = json.dumps(server.requests[0].body)
    assert "return a - b" in asked
    (one,) = found["findings"]
    assert code == 1
    assert (one["file"], one["line"], one["severity"], one["outcome"]) == ("calc.py", 2, "high", "proven")
    assert one["proof"]["exit_code"] == 1
    assert "AssertionError: -1" in one["proof"]["output"]
    assert one["proof"]["without"] == "passes"
    assert (git(project, "status", "--porcelain"), git(project, "count-objects")) == before
    assert sorted(path.name for path in project.iterdir()) == [".git", "calc.py"]


UNPROVEN: dict[str, dict[str, str]] = {
    "no_proof": {},
    "fails_before": {"command": "python3 -c 'import calc; assert calc.add(2, 3) == 6'"},
    "could_not_run": {"command": "python3 -c 'import nothing_of_this_name'"},
    "could_not_run ": {"command": "no-such-program"},
    "could_not_run  ": {"command": "timeout 1 sleep 5"},
    "could_not_run   ": {"command": "python3 t.py", "test_path": "t.py", "test": "def f(:\n"},
    "only_reads": {"command": "! grep -q 'a - b' calc.py"},
    "not_steady": {
        "command": 'python3 -c \'import calc, os; assert calc.add(1, 1) == 2 or os.path.exists("/tmp/again");'
        "' || { touch /tmp/again; exit 1; }"
    },
}


@every_row("name", UNPROVEN)
def test_O4_without_such_a_proof_a_finding_is_marked_as_unproven(project: Path, name: str):
    with ModelServer(play(decision("", finding(**UNPROVEN[name])), decision("Looked."))) as server:
        code, found = read(review(project, server, "--json"))
    assert [one["outcome"] for one in found["findings"]] == [name.strip()]
    assert code == 0


def test_O4_what_its_own_proof_refutes_is_not_reported_and_a_better_proof_replaces_a_worse_one(project: Path):
    refuted = finding(line=1, command="python3 -c 'import calc'")
    worse = finding(command="python3 -c 'import nothing_of_this_name'")
    better = finding(command="python3 -c 'import calc; assert calc.add(1, 1) == 2'")
    with ModelServer(play(decision("", refuted, worse), decision("", better), decision("Looked."))) as server:
        code, found = read(review(project, server, "--json"))
        told = json.dumps(server.requests[1].body)
    assert [(one["line"], one["outcome"]) for one in found["findings"]] == [(2, "proven")]
    assert code == 1
    assert "Not reported: the command succeeds" in told
    assert "the proof itself can't run" in told


def test_O4_a_branch_is_reviewed_on_a_copy_while_the_folder_stays_as_it_is(project: Path):
    """The proof sees deleted and new files of the branch; new code needs no run without the changes."""
    git(project, "checkout", "--quiet", "--", "calc.py")
    git(project, "switch", "--quiet", "--create", "feature")
    (project / "double.py").write_text("def double(n):\n    return n + n + n\n")
    git(project, "rm", "--quiet", "calc.py")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "second")
    git(project, "switch", "--quiet", "main")
    gone = finding(line=1, text="calc is gone.", command="python3 -c 'import calc'")
    new = finding(
        file="double.py",
        text="double triples.",
        command="python3 -c 'from double import double; assert double(2) == 4'",
    )
    with ModelServer(play(decision("", gone, new), decision("Looked."))) as server:
        code, found = read(review(project, server, "feature", "--json"))
    assert code == 1
    assert [(one["file"], one["outcome"], one["proof"]["without"]) for one in found["findings"]] == [
        ("calc.py", "proven", "passes"),
        ("double.py", "proven", "is_new"),
    ]
    assert [path.name for path in project.iterdir() if path.name != ".git"] == ["calc.py"]


def test_O4_a_test_that_misuses_new_code_proves_nothing(project: Path):
    """Its own mistake says nothing, since without the changes nothing runs; a wrong result counts."""
    (project / "calc.py").write_text(f"{ADD}\ndef twice(n):\n    return n + n + n\n")
    begin = "from calc import twice\n\ndef test_twice():\n    "
    tests = {
        1: f"{begin}assert twice(2, 3) == 4\n",
        2: f"{begin}assert twice(2).real_value == 4\n",
        3: f"{begin}assert twice(2) == 4\n",
    }
    rows = [
        finding(
            line=line, command=f"{sys.executable} -m pytest -q t{line}.py", test_path=f"t{line}.py", test=test
        )
        for line, test in tests.items()
    ]
    rows += [finding(line=4, command="python3 -c 'from calc import twice; twice()'")]
    rows += [finding(line=5, command="python3 -c 'from calc import twice; assert twice(None) is None'")]
    with ModelServer(play(decision("", *rows), decision("Looked."))) as server:
        _, found = read(review(project, server, "--json"))
    outcomes = {one["line"]: one["outcome"] for one in found["findings"]}
    assert outcomes == {
        **dict.fromkeys((1, 2, 4), "could_not_run"),
        **dict.fromkeys((3, 5), "proven"),
    }


def test_O4_a_proof_may_replace_no_file_and_a_finding_needs_one(project: Path):
    rows = [
        finding(command="python3 calc.py", test_path="calc.py", test="assert False\n"),
        finding(file="none.py"),
        finding(command="python3 t.py", test_path="../t.py", test="assert False\n"),
    ]
    with ModelServer(play(decision("", *rows), decision("Looked."))) as server:
        code, found = read(review(project, server, "--json"))
        told = json.dumps(server.requests[1].body)
    assert (code, found["findings"]) == (0, [])
    assert "calc.py exists" in told
    assert "There is no file none.py" in told


def test_O4_people_read_a_line_for_each_proof_in_their_language(project: Path, tmp_path: Path):
    proof = finding(command="python3 -c 'import calc; assert calc.add(1, 1) == 2'")
    summary = tmp_path / "summary.md"
    play_it = play(
        decision("", proof, finding(line=1, severity="low", text="<b>odd</b>")), decision("Looked.")
    )
    with ModelServer(play_it) as server:
        code, output, errors = review(project, server, "--summary", str(summary), DUCKFLOW_LANGUAGE="ja")
        assert "Write the texts of findings and your reply in Japanese" in json.dumps(server.requests[0].body)
    assert code == 1, errors
    assert "コミットしていない変更のレビュー（変更ファイル: 1、+1 −1）。 指摘: 2、証明済み: 1。" in output
    assert "✗ 1. 高 calc.py:2" in output
    assert "変更がなければ成功します" in output
    assert "未証明: 示せるコマンドがありません" in output
    assert "assert calc.add(1, 1) == 2" in summary.read_text()
    assert "<b>" not in summary.read_text()
    with ModelServer(play(decision("", proof), decision("Looked."))) as server:
        code, output, _ = review(project, server, "--details")
    assert "AssertionError" in output
    assert "fails with the changes (exit code 1) and passes without them" in output


def test_O4_a_patch_comes_from_standard_input(project: Path):
    patch = git(project, "diff")
    git(project, "checkout", "--quiet", "--", "calc.py")
    proof = finding(command="python3 -c 'import calc; assert calc.add(1, 1) == 2'")
    with ModelServer(play(decision("", proof), decision("Looked."))) as server:
        code, found = read(review(project, server, "-", "--json", given=patch))
    assert (code, found["changes"], found["findings"][0]["outcome"]) == (1, "-", "proven")


EXITS: dict[str, tuple[tuple[str, ...], int]] = {
    "nothing to review": (("HEAD~5..HEAD",), 2),
    "both": (("--staged", "main"), 2),
    "no answer": ((), 4),
}


@every_row("name", EXITS)
def test_O4_the_exit_code_says_why_there_is_no_result(project: Path, name: str):
    words, expected = EXITS[name]
    with ModelServer(lambda _: Fault(401, "bad key")) as server:
        code, _, errors = review(project, server, *words)
    assert code == expected, errors


def test_O4_without_copies_the_folder_itself_is_reviewed_and_proofs_run_elsewhere(project: Path):
    """In a container that is declared as the sandbox, proofs get copied files, and branches are refused."""
    proof = finding(command="touch junk; python3 -c 'import calc; assert calc.add(1, 1) == 2'")
    external = {"DUCKFLOW_SHELL__SANDBOX": "external"}
    with ModelServer(play(decision("", proof), decision("Looked."))) as server:
        code, found = read(review(project, server, "--json", **external))
    assert (code, found["findings"][0]["outcome"]) == (1, "proven")
    assert sorted(path.name for path in project.iterdir()) == [".git", "calc.py"]
    git(project, "commit", "--quiet", "--all", "--message", "second")
    git(project, "branch", "feature")
    git(project, "reset", "--quiet", "--hard", "HEAD~1")
    with ModelServer(play(decision("Looked."))) as server:
        code, _, errors = review(project, server, "feature", **external)
    assert code == 2
    assert "check the changes out" in errors


def test_O4_a_small_model_is_told_apart_and_refused(project: Path):
    with ModelServer(play(decision("Looked."))) as server:
        code, _, errors = review(project, server, DUCKFLOW_LLM__SMALL="true")
    assert code == 2
    assert "too small" in errors


PROOF_LINE = "python3 -c 'import calc; assert calc.add(1, 1) == 2, calc.add(1, 1)'"


def test_O4_in_the_conversation_findings_are_listed_and_shown_in_full_by_number(project: Path):
    with conversation(
        project, decision("", finding(command=PROOF_LINE)), decision("Looked."), columns=110, rows=40
    ) as terminal:
        ready(terminal)
        terminal.type("/review\r")
        terminal.wait_for("Findings: 1, proven: 1.")
        terminal.wait_for("1. high calc.py:2")
        terminal.wait_for("/review N shows a finding with its proof.")
        ready(terminal)
        terminal.type("/review 1\r")
        terminal.wait_for("AssertionError: 0")
        terminal.type("/review 7\r")
        terminal.wait_for("There is no finding 7; the last review has 1.")
        terminal.type("/review no-such-branch\r")
        terminal.wait_for("there is no commit, branch or patch file no-such-branch")


async def test_O4_the_model_of_the_conversation_knows_the_findings(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    answers = play(decision("", finding(command=PROOF_LINE)), decision("Looked."), decision("Shall I?"))
    with ModelServer(answers) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        async with Session(project, model="openai:any", mode="plan") as session:
            await session.client.send(ReviewChanges())
            assert session.state.review is not None
            assert session.state.review.proven == 1
            await session.start("What about the first one?")
        assert "calc.py:2 (high, proven)" in json.dumps(server.requests[-1].body)


async def test_O4_a_review_runs_beside_an_open_conversation_and_can_change_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    """It takes no lock, undoes no other session's work in progress, and never leaves mode plan."""
    test = {"command": f"{sys.executable} check_add.py", "test_path": "check_add.py", "test": PROOF}
    answers = decision("I look.", finding(**test)), decision("Looked at add.")
    with ModelServer(play(*answers)) as server:
        for name, value in environment(server).items():
            monkeypatch.setenv(name, value)
        async with Session(project, model="openai:any", mode="edits") as duck:
            code, found = read(await asyncio.to_thread(review, project, server, "--json"))
            assert (code, len(found["findings"])) == (1, 1)
            async with Session(project, model="openai:any", reads_only=True) as beside:
                refused = await beside.client.send(SetMode(mode="auto"))
                assert (refused.objection, beside.state.mode) == ("clients.reads_only", "plan")
            with pytest.raises(UserError, match="Another Duckflow"):
                async with Session(project, model="openai:any"):
                    pass
            assert duck.state.mode == "edits"
    assert (project / "calc.py").read_text() == WRONG
