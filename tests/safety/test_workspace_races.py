"""Someone swaps folders for links while we open, or kills us while we write (SAFETY 3, 11)."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from duckflow.domain.errors import ToolError
from duckflow.safety.files.confined_open import open_resolved, open_walking
from duckflow.safety.files.workspace import Workspace

SECRET = "the secret nobody may read"
TRIES = 3000

FLIPPER = """
import ctypes, os, sys
exchange = ctypes.CDLL(None).renameat2
here, there = (os.fsencode(path) for path in sys.argv[1:])
print("flipping", flush=True)
while os.getppid() == int(os.environ["PARENT"]):
    for _ in range(500):
        exchange(-100, here, -100, there, 2)
"""

WRITERS = """
import os, sys
from pathlib import Path
from duckflow.safety.files.workspace import Workspace
workspace = Workspace(Path(sys.argv[1]))
for _ in sys.stdin:
    writer = os.fork()
    number = 0
    if writer == 0:
        print(os.getpid(), flush=True)
    while writer == 0:
        number += 1
        workspace.write_text("folder/file.txt", f"{number % 10}" * 300_000)
    os.waitpid(writer, 0)
    print("ended", flush=True)
"""
"""A writer for each line it reads; forked, so that the code is read once for all of them."""


@contextmanager
def flipping(here, there):
    environment = {**os.environ, "PARENT": str(os.getpid())}
    child = subprocess.Popen(
        [sys.executable, "-c", FLIPPER, here, there], env=environment, stdout=subprocess.PIPE
    )
    try:
        child.stdout.readline()
        yield
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def swapped_tree(base):
    root = base / "ws"
    (root / "a/target/deep").mkdir(parents=True)
    (root / "a/target/deep/file.txt").write_text("inside")
    (base / "outside/deep").mkdir(parents=True)
    (base / "outside/deep/file.txt").write_text(SECRET)
    (root / "a/swap").symlink_to("../../outside")
    return root


@pytest.mark.parametrize("opener", [open_resolved, open_walking], ids=["kernel", "walk"])
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="swaps with renameat2")
def test_no_read_leaks_while_a_folder_is_swapped_for_a_link(tmp_path, opener):
    root = swapped_tree(tmp_path)
    workspace = Workspace(root, opener=opener)
    seen = {"inside": 0, "refused": 0}
    with flipping(root / "a/target", root / "a/swap"):
        for _ in range(TRIES):
            try:
                text = workspace.read_text("a/target/deep/file.txt")
            except ToolError:
                text = "refused"
            assert text != SECRET
            seen[text] += 1
    assert seen["inside"], "the swap never let a read through: the test proves nothing"
    assert seen["refused"], "the swap never hit a read: the test proves nothing"


@pytest.mark.parametrize("opener", [open_resolved, open_walking], ids=["kernel", "walk"])
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="swaps with renameat2")
def test_no_change_escapes_while_a_folder_is_swapped_for_a_link(tmp_path, opener):
    root = swapped_tree(tmp_path)
    workspace = Workspace(root, opener=opener)
    done = refused = 0
    attempts = (
        lambda: workspace.write_text("a/target/deep/new.txt", "written"),
        lambda: workspace.move("a/target/deep/new.txt", "a/target/moved.txt"),
        lambda: workspace.delete("a/target/moved.txt"),
        lambda: workspace.list("a/target", depth=2),
    )
    with flipping(root / "a/target", root / "a/swap"):
        for number in range(TRIES // 2):
            try:
                attempts[number % len(attempts)]()
                done += 1
            except ToolError:
                refused += 1
    assert done
    assert refused
    outside = sorted(path.relative_to(tmp_path / "outside") for path in (tmp_path / "outside").rglob("*"))
    assert [str(path) for path in outside] == ["deep", "deep/file.txt"]
    assert (tmp_path / "outside/deep/file.txt").read_text() == SECRET


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="swaps with renameat2")
def test_a_name_swapped_for_a_link_to_what_is_protected_shows_nothing(tmp_path):
    (tmp_path / "notes.txt").write_text("inside")
    (tmp_path / ".env").write_text(SECRET)
    (tmp_path / "swap").symlink_to(".env")
    workspace = Workspace(tmp_path, opener=open_resolved)
    refused = 0
    with flipping(tmp_path / "notes.txt", tmp_path / "swap"):
        for _ in range(TRIES):
            try:
                assert workspace.read_text("notes.txt") == "inside"
            except ToolError:
                refused += 1
    assert refused


def test_a_kill_during_writes_never_tears_a_file(tmp_path):
    torn, file = 0, tmp_path / "folder/file.txt"
    command = [sys.executable, "-c", WRITERS, tmp_path]
    with subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writers:
        for attempt in range(30):
            print(file=writers.stdin, flush=True)
            writer = int(writers.stdout.readline())
            time.sleep(0.005 * (attempt % 7))
            os.kill(writer, signal.SIGKILL)
            assert writers.stdout.readline() == "ended\n"
            if file.exists():
                text = file.read_text()
                torn += len(text) != 300_000 or len(set(text)) != 1
    assert file.exists()
    assert torn == 0
