"""`duckflow prompt show`: the prompt that would be sent, and its size by part; no model is asked."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fakes import warm


def duckflow(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "duckflow", *args]
    return warm.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with rules, and a model that has one thing to say."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "AGENTS.md").write_text("Be kind to ducks.\n", "utf-8")
    hello = {"next_step": "done", "reply": "こんにちは", "task_profile": "general_chat"}
    said = json.dumps(hello, ensure_ascii=False)
    script = json.dumps({"for": "Decision", "text": said}, ensure_ascii=False)
    (tmp_path / "script.jsonl").write_text(f"{script}\n", "utf-8")
    return project


MODEL = ("--model", "scripted:../script.jsonl")


def test_a_new_session_shows_the_fixed_part_and_its_size(folder: Path):
    shown = duckflow("prompt", "show", *MODEL, cwd=folder)
    assert shown.returncode == 0, shown.stderr
    assert "You are Duckflow" in shown.stdout
    assert "Be kind to ducks." in shown.stdout
    assert shown.stdout.rstrip().endswith("Output: Decision")
    assert "folder project, mode ask" in shown.stdout
    sizes = {line.split(None, 1)[1]: line.split()[0] for line in shown.stderr.strip().splitlines()[1:]}
    assert int(sizes["operations"]) > 100
    assert any(title.startswith("total") for title in sizes)


def test_the_last_session_is_shown_with_its_conversation_and_nothing_is_used_up(folder: Path):
    assert duckflow("run", "挨拶して", *MODEL, cwd=folder).returncode == 0
    for _ in range(2):
        shown = duckflow("prompt", "show", "--continue", "--json", *MODEL, cwd=folder)
        assert shown.returncode == 0, shown.stderr
        told = json.loads(shown.stdout)
        assert [message["role"] for message in told["messages"]] == ["system", "user", "assistant", "user"]
        assert told["messages"][1]["text"].startswith("挨拶して")
        sections = {one["section"]: one["tokens"] for one in told["sections"]}
        assert sections["conversation"] > 0
        assert sections["evidence"] == 0
        assert told["tokens"] == sum(sections.values())
        assert told["window"] > 0


def test_a_small_model_gets_its_own_prompt(folder: Path, monkeypatch: pytest.MonkeyPatch):
    assert "Operations" in duckflow("prompt", "show", *MODEL, cwd=folder).stdout
    monkeypatch.setenv("DUCKFLOW_LLM__SMALL", "true")
    small = duckflow("prompt", "show", *MODEL, cwd=folder)
    assert small.returncode == 0, small.stderr
    assert "Operations" not in small.stdout
    assert "Be kind to ducks." in small.stdout


def test_K7_the_window_is_the_one_that_is_set(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DUCKFLOW_LLM__WINDOW", "50000")
    assert (
        "of a window of 50,000 (set by `llm.window`)" in duckflow("prompt", "show", *MODEL, cwd=folder).stderr
    )
    told = json.loads(duckflow("prompt", "show", "--json", *MODEL, cwd=folder).stdout)
    assert (told["window"], told["window_from"]) == (50_000, "setting")


def test_M4_the_table_is_in_the_users_language(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LANG", "ja_JP.UTF-8")
    assert "操作の一覧" in duckflow("prompt", "show", *MODEL, cwd=folder).stderr


def test_without_an_earlier_session_there_is_nothing_to_continue(folder: Path):
    shown = duckflow("prompt", "show", "--continue", *MODEL, cwd=folder)
    assert shown.returncode == 2
    assert "no earlier session" in shown.stderr


def test_it_looks_without_leaving_a_session_behind(folder: Path):
    duckflow("prompt", "show", *MODEL, cwd=folder)
    assert duckflow("sessions", "list", "--json", cwd=folder).stdout == ""
