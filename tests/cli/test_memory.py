"""L2: `duckflow memory`: what is kept is listed, changed and deleted, in both languages."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from duckflow.app.places import DATABASE, open_log
from duckflow.config.places import state_dir
from duckflow.domain.events import MemoryKept
from fakes import warm
from fakes.engine import decision, write_script


def duckflow(*args: str, language: str = "en") -> subprocess.CompletedProcess[str]:
    return warm.run(
        [sys.executable, "-m", "duckflow", *args],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "DUCKFLOW_LANGUAGE": language},
        timeout=300,
        check=False,
    )


@pytest.fixture
def kept() -> None:
    log = open_log()
    log.append(
        "s1",
        [
            MemoryKept(kind="preference", text="Use tabs", workspace=""),
            MemoryKept(kind="worked", text="試験は make check で", workspace="/home/me/parts"),
            MemoryKept(kind="failed", text="a\x1b[31mb", workspace="/home/me/parts"),
        ],
    )
    log.close()


def texts() -> dict[int, str]:
    listed = duckflow("memory", "list", "--json").stdout.splitlines()
    return {line["id"]: line["text"] for line in map(json.loads, listed)}


@pytest.mark.parametrize(
    ("language", "lines"),
    [
        (
            "en",
            [
                "failed [/home/me/parts]: a [31mb",
                "worked [/home/me/parts]: 試験は make check で",
                "preference [everywhere]: Use tabs",
            ],
        ),
        (
            "ja",
            [
                "失敗 [/home/me/parts]: a [31mb",
                "成功 [/home/me/parts]: 試験は make check で",
                "好み [どこでも]: Use tabs",
            ],
        ),
    ],
)
def test_L2_the_list_the_newest_first(kept, language, lines):
    shown = duckflow("memory", "list", language=language).stdout.splitlines()
    assert [line.split("  ")[0] for line in shown] == ["3", "2", "1"]
    assert [line.split("  ", 2)[2] for line in shown] == lines


def test_L2_the_list_as_json(kept):
    (*_, last) = map(json.loads, duckflow("memory", "list", "--json").stdout.splitlines())
    assert {name: last[name] for name in ("id", "kind", "text", "workspace", "used", "uses")} == {
        "id": 1,
        "kind": "preference",
        "text": "Use tabs",
        "workspace": "",
        "used": None,
        "uses": 0,
    }


@pytest.mark.parametrize(
    ("language", "said"), [("en", "Nothing is remembered yet.\n"), ("ja", "まだ何も覚えていません。\n")]
)
def test_L2_an_empty_list_says_so_but_not_in_json(language, said):
    assert duckflow("memory", "list", language=language).stdout == said
    assert duckflow("memory", "list", "--json").stdout == ""


def test_L2_edit_puts_another_text_there_without_secrets(kept):
    assert duckflow("memory", "edit", "1", "Use  spaces").stdout == "1 is now: Use spaces\n"
    token = "ghp_" + "a1B2c3D4e5" * 4
    duckflow("memory", "edit", "2", f"the token is {token}")
    assert texts()[1] == "Use spaces"
    assert token not in texts()[2]


def test_L2_delete_takes_some_or_all(kept):
    assert duckflow("memory", "delete", "1", "3").stdout == "Deleted from memory: 2\n"
    assert list(texts()) == [2]
    assert duckflow("memory", "delete", "--all", language="ja").stdout == "記憶から 1 件を削除しました\n"
    assert texts() == {}


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("delete",), "--all"),
        (("delete", "1", "--all"), "--all"),
        (("delete", "1", "9"), "memory 9"),
        (("edit", "9", "x"), "memory 9"),
        (("edit", "1", " "), "empty"),
        (("edit", "one", "x"), "memory one"),
    ],
)
def test_L2_what_can_not_be_done_is_told_and_nothing_changes(kept, args, word):
    ended = duckflow("memory", *args)
    assert ended.returncode == 2
    assert word in ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(texts()) == 3


def test_L2_headless_it_stops_at_the_question_and_goes_on_with_the_answer(tmp_path: Path):
    """M3: without a user who sees the text, nothing is kept."""
    folder = tmp_path / "project"
    folder.mkdir()
    wish = {"operation": "memory.remember", "args": {"text": "Use tabs"}}
    script = write_script(tmp_path / "s.jsonl", [decision("", wish), decision("Done.")])
    where = ("--mode", "auto", "--workspace", str(folder), "--model")
    ended = duckflow("run", "Use tabs from now on", *where, f"scripted:{script}")
    assert ended.returncode == 3
    question = ended.stderr.partition("Remember this for later sessions?")[2]
    assert "\nUse tabs\n" in question.partition("--answer")[0], "the text stands below the question"
    assert texts() == {}
    session = duckflow("sessions", "list").stdout.split()[0]
    script = write_script(tmp_path / "s2.jsonl", [decision("Done.")])
    answered = duckflow("run", "--resume", session, "--answer", "yes", *where, f"scripted:{script}")
    assert answered.returncode == 0, answered.stderr
    assert list(texts().values()) == ["Use tabs"]


def test_L2_memory_is_the_users_alone(kept):
    assert stat.S_IMODE(state_dir().stat().st_mode) == 0o700
    assert stat.S_IMODE((state_dir() / DATABASE).stat().st_mode) == 0o600
