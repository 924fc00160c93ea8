"""G6: `duckflow audit` as a program: show, verify, export, stats, in both languages."""

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from duckflow.config.places import state_dir
from duckflow.domain.questions.approval import AnswerApproval
from fakes import warm
from fakes.engine import action, decision, engine

WRITE = decision("I write.", action("write_file", path="a.txt", content="one\n"))


def duckflow(*args: str, language: str = "en") -> subprocess.CompletedProcess[str]:
    return warm.run(
        [sys.executable, "-m", "duckflow", *args],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "DUCKFLOW_LANGUAGE": language},
        timeout=300,
        check=False,
    )


def lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
async def session(folder: Path) -> str:
    """One change approved, one refused, one that was not asked about."""
    async with engine(folder, WRITE, decision("Done."), mode="ask") as duck:
        await duck.app.chat.say("Write a.txt")
        await duck.app.chat.answer(AnswerApproval(yes=True))
        first = duck.state.session_id
    async with engine(folder, WRITE.replace("a.txt", "b.txt"), decision("Then not."), mode="ask") as duck:
        await duck.app.chat.say("Write b.txt")
        await duck.app.chat.answer(AnswerApproval(yes=False, reason="no"))
    async with engine(folder, WRITE.replace("a.txt", "c.txt"), decision("Done."), mode="edits") as duck:
        await duck.app.chat.say("Write c.txt")
    return first


def tamper(statement: str) -> None:
    connection = sqlite3.connect(state_dir() / "duckflow.db")
    connection.execute("DROP TRIGGER audit_no_update")
    connection.execute("DROP TRIGGER audit_no_delete")
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_show_lists_the_entries_of_all_sessions_or_of_one(session: str):
    everything, one = duckflow("audit", "show"), duckflow("audit", "show", "--session", session[:6], "--json")
    assert everything.returncode == one.returncode == 0
    told = everything.stdout
    assert "approval_answered  file_ops.write_file  approved" in told
    assert "approval_answered  file_ops.write_file  refused" in told
    assert {entry["session"] for entry in lines(one)} == {session}
    assert 0 < len(lines(one)) < len(told.splitlines())


def test_verify_says_that_all_is_well(session: str):
    done = duckflow("audit", "verify")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{len(duckflow('audit', 'export').stdout.splitlines())} entries" in done.stdout
    assert lines(duckflow("audit", "verify", "--json"))[0]["whole"] is True


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE audit SET body = body || ' ' WHERE number = 4", "Entry 4 of the audit log was changed"),
        ("DELETE FROM audit WHERE number = 3", "Entry 3 of the audit log is missing"),
        ("DELETE FROM audit WHERE number > 6", "missing, from entry 7 on"),
    ],
)
def test_verify_names_the_first_bad_entry(session: str, statement: str, sentence: str):
    tamper(statement)
    done = duckflow("audit", "verify")
    assert done.returncode == 1
    assert sentence in done.stderr
    told = lines(duckflow("audit", "verify", "--json"))[0]
    assert (told["whole"], told["number"]) == (False, int("".join(filter(str.isdigit, sentence))))


def test_verify_speaks_japanese(session: str):
    """M4."""
    assert "監査ログは正常です" in duckflow("audit", "verify", language="ja").stdout
    tamper("DELETE FROM audit WHERE number = 3")
    assert "3 件目がありません" in duckflow("audit", "verify", language="ja").stderr


def test_export_can_be_checked_by_anyone(session: str):
    """Plain SHA-256 over the entry as canonical JSON, each with the hash of the one before."""
    previous = "0" * 64
    for line in lines(duckflow("audit", "export")):
        body = json.dumps(line["entry"], sort_keys=True, separators=(",", ":"))
        assert hashlib.sha256(body.encode()).hexdigest() == line["hash"]
        assert line["entry"]["prev"] == previous
        previous = line["hash"]


def test_stats_count_questions_answers_and_results(session: str):
    rows = lines(duckflow("audit", "stats", "--json"))
    (writes,) = [row for row in rows if row.get("operation") == "file_ops.write_file"]
    assert (writes["asked"], writes["approved"], writes["refused"]) == (2, 1, 1)
    assert (writes["ok"], writes["failed"], writes["blocked"]) == (2, 0, 1)
    risks = [row for row in rows if "risk" in row]
    assert sum(row["asked"] for row in risks) == 2
    shown = duckflow("audit", "stats").stdout
    assert "file_ops.write_file" in shown
    assert "approved" in shown
    assert "承認" in duckflow("audit", "stats", language="ja").stdout


def test_deleting_a_session_leaves_its_entries_and_the_chain(session: str):
    assert duckflow("sessions", "delete", session).returncode == 0
    assert duckflow("audit", "verify").returncode == 0
    assert session in duckflow("audit", "show", "--session", session).stdout


def test_an_empty_log_is_whole():
    assert duckflow("audit", "verify").returncode == 0
    assert duckflow("audit", "show").stdout == ""
    assert duckflow("audit", "stats").stdout != ""
