"""Eight processes on one database and one folder: nothing breaks, and a refused one says why."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from duckflow.app.places import DATABASE, KEPT_FILES
from duckflow.config.places import state_dir
from duckflow.store.event_log import SqliteEventLog
from duckflow.store.sessions import Sessions
from fakes import warm
from fakes.engine import action, decision, write_script

EIGHT = range(8)


def start(folder: Path, base: Path, number: int) -> subprocess.Popen[str]:
    text = f"{number}" * 50_000
    answers = [
        decision("", action("write_file", path="shared.txt", content=text)),
        decision("", action("write_file", path=f"own{number}.txt", content=text)),
        decision("And now?", next_step="pending_user"),
    ]
    script = write_script(base / f"script{number}.jsonl", answers)
    command = [sys.executable, "-m", "duckflow", "run", "go", "--json", "--mode", "edits"]
    command += ["--model", f"scripted:{script}", "--workspace", str(folder)]
    return warm.start(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )


def results(started: list[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    ended = [(*one.communicate(timeout=300), one.returncode) for one in started]
    return [(code, out, said) for out, said, code in ended]


def check_sound(path: Path) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def check_stored(outputs: list[str]) -> None:
    """All that was shown is in the log."""
    log = SqliteEventLog(state_dir() / DATABASE)
    assert log.database.notices == ()
    assert len(Sessions(log.database).listed()) == len(outputs)
    for output in outputs:
        shown = [json.loads(line) for line in output.splitlines()]
        stored = log.load(shown[0]["session_id"])
        assert [(one.seq, one.event.type) for one in stored] == [(one["seq"], one["type"]) for one in shown]
    log.close()


def test_eight_on_one_folder_one_at_a_time_works_and_the_others_are_told(folder: Path, tmp_path: Path):
    """SAFETY 13, 16."""
    ended = results([start(folder, tmp_path, number) for number in EIGHT])
    worked = [out for code, out, _ in ended if code == 3]
    refused = [said for code, _, said in ended if code == 2]
    assert len(worked) + len(refused) == 8, ended
    assert worked, "nobody worked"
    for said in refused:
        assert "Another Duckflow is working in" in said
        assert "Traceback" not in said
    text = (folder / "shared.txt").read_text()
    assert (len(text), len(set(text))) == (50_000, 1)
    assert len(list(folder.glob("own*.txt"))) == len(worked)
    check_stored(worked)
    check_sound(state_dir() / DATABASE)
    check_sound(state_dir() / KEPT_FILES)


def test_eight_in_folders_of_their_own_share_one_database(tmp_path: Path):
    """SAFETY 13."""
    folders = [tmp_path / f"work{number}" for number in EIGHT]
    for folder in folders:
        folder.mkdir()
    ended = results([start(folder, tmp_path, number) for number, folder in zip(EIGHT, folders, strict=True)])
    assert [code for code, _, _ in ended] == [3] * 8, ended
    for number, folder in enumerate(folders):
        assert (folder / f"own{number}.txt").read_text() == f"{number}" * 50_000
    check_stored([out for _, out, _ in ended])
    check_sound(state_dir() / DATABASE)
    check_sound(state_dir() / KEPT_FILES)


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_one_that_may_not_work_gets_one_sentence(
    folder: Path, tmp_path: Path, language: str, monkeypatch
):
    monkeypatch.setenv("DUCKFLOW_LANGUAGE", language)
    holding = (
        "import sys; from pathlib import Path; from duckflow.safety.files.lock import WorkspaceLock as L\n"
    )
    holding += "s = Path(sys.argv[2]).stat(); lock = L(Path(sys.argv[1]), (s.st_dev, s.st_ino))\n"
    holding += "lock.take('abcd1234', 'x'); print('held', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", holding, str(state_dir() / "locks"), str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        ((code, out, said),) = results([start(folder, tmp_path, 1)])
        holder.stdin.close()
    assert (code, out) == (2, "")
    assert said.count("\n") == 1
    assert f"{holder.pid}" in said
    assert "abcd1234" in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_output_that_is_full_is_said_and_the_session_can_be_resumed(folder: Path, tmp_path: Path):
    script = write_script(
        tmp_path / "script.jsonl", [decision("Hi.", action("write_file", path="a", content="x"))]
    )
    run = ["run", "go", "--mode", "edits", "--model", f"scripted:{script}", "--workspace", str(folder)]
    for words in ([*run, "--json"], run, ["sessions", "list"]):
        with Path("/dev/full").open("w") as full:
            command = [sys.executable, "-m", "duckflow", *words]
            done = warm.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        assert "The output can't be written" in done.stderr
