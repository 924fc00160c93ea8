"""Processes that are killed, and processes that write at once: nothing that was reported stored is lost."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from duckflow.store.event_log import SqliteEventLog

ROUNDS = 45

# Imports once, then forks a writer for each line it reads: starting Python again would be the slow part.
FORKING = """
import os, random, sys
from pathlib import Path
from duckflow.domain.events import Reply
from duckflow.store.event_log import SqliteEventLog

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def write(path, session, rounds, seed):
    chance = random.Random(seed)
    log = SqliteEventLog(path)
    log.load(session)
    for _ in range(rounds):
        count = chance.choice([1, 1, 2, 5])
        size = chance.choice([1, 100, 20_000])
        stored = log.append(session, [Reply(text=f"{session} " + "x" * size) for _ in range(count)])
        say("stored", session, stored[-1].seq)
    log.close()

path = Path(sys.argv[1])
for line in sys.stdin:
    sessions, rounds, seed = line.split()
    children = []
    for session in sessions.split(","):
        child = os.fork()
        if child == 0:
            say("writer", os.getpid())
            status = 1
            try:
                write(path, session, int(rounds), int(seed))
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    say("end", *codes)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "test.db"


@pytest.fixture
def forking(path):
    command = [sys.executable, "-c", FORKING, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    yield process
    process.stdin.close()
    process.wait()
    process.stdout.close()


def begin(process, sessions, rounds, seed):
    process.stdin.write(f"{sessions} {rounds} {seed}\n".encode())
    process.stdin.flush()


def lines_until_end(process):
    for line in process.stdout:
        words = line.decode().split()
        yield words
        if words[0] == "end":
            return


def check_sound(path):
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA quick_check").fetchone() == ("ok",)
    connection.close()


def test_what_append_returned_survives_a_kill_at_any_point(path, forking):
    chance = random.Random(7)
    known, killed, waited = 0, 0, 0
    for seed in range(ROUNDS):
        begin(forking, "s", 1_000_000, seed)
        _, pid = forking.stdout.readline().split()
        for _ in range(chance.choice([0, 1, 2, 5])):
            known = int(forking.stdout.readline().split()[2])
            waited += 1
        time.sleep(chance.uniform(0, 0.01))
        os.kill(int(pid), signal.SIGKILL)
        for words in lines_until_end(forking):
            if words[0] == "stored":
                assert int(words[2]) > known
                known = int(words[2])
            else:
                killed += words[1] == str(-signal.SIGKILL)
        log = SqliteEventLog(path)
        assert log.database.notices == ()
        stored = log.load("s")
        log.close()
        assert [one.seq for one in stored] == list(range(1, len(stored) + 1))
        assert len(stored) >= known
        known = len(stored)
        check_sound(path)
    assert killed == ROUNDS
    assert known >= waited


def test_eight_processes_write_to_a_new_file_at_once_and_nothing_is_lost(path, forking):
    names = [f"s{number}" for number in range(8)]
    begin(forking, ",".join(names), 25, 1)
    last = {}
    for words in lines_until_end(forking):
        if words[0] == "stored":
            last[words[1]] = int(words[2])
        elif words[0] == "end":
            assert words[1:] == ["0"] * 8
    log = SqliteEventLog(path)
    assert log.database.notices == ()
    for name in names:
        stored = log.load(name)
        assert [one.seq for one in stored] == list(range(1, last[name] + 1))
        assert {one.event.text.split()[0] for one in stored} == {name}
    log.close()
    check_sound(path)
