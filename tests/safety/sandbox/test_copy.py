"""G9: a command works on a copy. Its effects are read from there and change the folder only when applied."""

import asyncio
import hashlib
import os
import shutil
import stat
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from duckflow.domain.errors import ToolError
from duckflow.domain.files.effects import Effects
from duckflow.safety.descriptors import closing_fd, copy_to_new
from duckflow.safety.sandbox.copy.copies import CopyFolders
from duckflow.safety.sandbox.copy.layers import file_digest
from duckflow.store.kept_files import ChangeOwner
from fakes.rows import Failures


def files(folder, *paths):
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"{path}\n")


def tree(folder):
    """Return the kind, bits, and content or target of everything below a folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (0 if path.is_symlink() else mode, content)
    return found


def told(effects: Effects):
    return {(one.kind, one.type, one.path, one.moved_from) for one in effects.effects}


@pytest.fixture
async def shell(folder, tmp_path, copying, open_shell):
    files(folder, "same", "changed", "removed", "old", "folder/inner", "again/a", "again/b", "bits")
    return await open_shell(folder, copying, copies=tmp_path / "copies")


def test_holes_in_large_files_are_neither_read_nor_filled(tmp_path):
    """Of these terabytes, only some bytes exist. A copy without holes has the same hash."""

    def write(name, size, **data):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
            for at, text in data.items():
                file.seek(int(at[1:]))
                file.write(text.encode())
        with closing_fd(os.open(tmp_path / name, os.O_RDONLY)) as opened:
            return file_digest(opened)

    giant = write("giant", 1 << 42, _5="data", _4000000000000="more")
    assert giant == write("same", 1 << 42, _5="data", _4000000000000="more")
    assert giant != write("moved", 1 << 42, _5="data", _4000000000001="more")
    assert giant != write("longer", (1 << 42) + 1, _5="data", _4000000000000="more")
    folder = os.open(tmp_path, os.O_RDONLY)
    with closing_fd(folder), closing_fd(os.open(tmp_path / "giant", os.O_RDONLY)) as opened:
        copy_to_new(opened, folder, "copy", 0o600)
    with closing_fd(os.open(tmp_path / "copy", os.O_RDONLY)) as opened:
        assert file_digest(opened) == giant
    assert (tmp_path / "copy").stat().st_blocks * 512 < 1_000_000
    for size in (0, 5, 1 << 20, 3_000_001, 60_000_000):
        for at in (0, size // 2, size - 1):
            data = {f"_{at}": "x"} if size > 5 else {}
            digest = write("small", size, **data)
            assert digest == hashlib.sha256((tmp_path / "small").read_bytes()).hexdigest()
    sparse, filled = write("sparse", 70_000_000, _3="x"), write("filled", 70_000_000, _3="x" + "\0" * 10**7)
    assert sparse == filled


async def test_G9_nothing_has_happened_until_the_effects_are_taken_over(shell, folder):
    before = tree(folder)
    result = await shell.run(
        "echo more >> changed; rm removed; mv old new; rm -r folder; rm -r again; mkdir again;"
        "echo c > again/c; chmod 700 bits; mkdir -p made/deep; ln -s same link; cat same > /dev/null;"
        "touch same; cp same copied"
    )
    assert (result.exit_code, result.output) == (0, "")
    assert tree(folder) == before
    assert told(result.effects) == {
        ("changed", "file", "changed", ""),
        ("deleted", "file", "removed", ""),
        ("moved", "file", "new", "old"),
        ("deleted", "folder", "folder", ""),
        ("deleted", "file", "folder/inner", ""),
        ("deleted", "file", "again/a", ""),
        ("deleted", "file", "again/b", ""),
        ("created", "file", "again/c", ""),
        ("mode", "file", "bits", ""),
        ("created", "folder", "made", ""),
        ("created", "folder", "made/deep", ""),
        ("created", "link", "link", ""),
        ("created", "file", "copied", ""),
    }
    assert result.effects.touched == ("same",)
    assert await shell.apply(result.copy_id, result.effects) == {}
    after = tree(folder)
    assert after["changed"][1] == b"changed\nmore\n"
    assert stat.S_IMODE(after["bits"][0]) == 0o700
    assert after["link"][1] == "same"
    assert set(after) == {
        *("same", "changed", "new", "again", "again/c", "bits", "made", "made/deep", "link", "copied"),
    }
    assert not os.listxattr(folder / "changed")


async def test_G9_discarded_effects_leave_no_trace(shell, folder, tmp_path):
    before = tree(folder)
    result = await shell.run("rm -rf *; echo x > y")
    await shell.discard(result.copy_id)
    assert tree(folder) == before
    assert list((tmp_path / "copies").iterdir()) == []
    with pytest.raises(ToolError):
        await shell.copy(result.copy_id)


async def test_G9_a_command_that_changes_nothing_has_no_effects(shell):
    for command in (
        "true",
        "cat same",
        "ls -la; grep -r same .",
        "echo > /tmp/x",
        "cp same x; rm x",
        "false",
    ):
        result = await shell.run(command)
        assert (result.effects, result.copy_id) == (Effects(), ""), command


async def test_G9_the_next_command_sees_what_was_taken_over(shell):
    result = await shell.run("echo one > first")
    await shell.apply(result.copy_id, result.effects)
    assert (await shell.run("cat first")).output == "one\n"


async def test_G9_what_leads_out_or_raises_rights_is_dropped_and_told(shell, folder):
    result = await shell.run(
        "cp /bin/true tool; chmod 6755 tool; mkfifo pipe; ln -s /home/somebody out; ln -s ../../x up; "
        "ln -s /usr/bin/env in"
    )
    assert {(one.path, one.reason) for one in result.effects.dropped} == {
        ("tool", "set_id"),
        ("pipe", "pipe"),
        ("out", "link_out"),
        ("up", "link_out"),
    }
    await shell.apply(result.copy_id, result.effects)
    assert stat.S_IMODE((folder / "tool").stat().st_mode) == 0o755
    assert not [
        name for name in ("pipe", "out", "up") if (folder / name).is_symlink() or (folder / name).exists()
    ]
    assert (folder / "in").is_symlink()


UNFIT = """python3 -c "
import os, socket
socket.socket(socket.AF_UNIX).bind('door')
open(b'\\xff', 'w').close()
for _ in range(203): os.mkdir('d'); os.chdir('d')
"; mknod null c 1 3; echo x > fine"""


async def test_G9_what_no_folder_may_get_is_dropped_and_told(shell, folder):
    """Devices can't even be made."""
    result = await shell.run(UNFIT)
    deepest = "/".join(["d"] * 202)
    assert {(one.path, one.reason) for one in result.effects.dropped} == {
        ("door", "socket"),
        ("\\xff", "unreadable"),
        (deepest, "unreadable"),
    }
    assert "mknod: null: Operation not permitted" in result.output
    assert await shell.apply(result.copy_id, result.effects) == {}
    assert not {"door", os.fsdecode(b"\xff"), "null"} & {path.name for path in folder.iterdir()}
    assert (folder / "fine").exists()
    assert not (folder / deepest).exists()


async def test_G9_a_file_that_someone_changed_meanwhile_is_not_overwritten(shell, folder):
    def save(_piece):
        """Save while the command runs; whether it writes before or after makes no difference."""
        (folder / "changed").write_text("the user's\n")
        (folder / "removed").write_text("the user's, too\n")

    command = "echo begun; sleep 0.5; echo theirs > changed; rm removed; echo x > other"
    result = await shell.run(command, emit=save)
    assert set(result.effects.conflicts) == {"changed", "removed"}
    left = await shell.apply(result.copy_id, result.effects)
    assert set(left) == {"changed", "removed"}
    assert (folder / "changed").read_text() == "the user's\n"
    assert (folder / "removed").exists()
    assert (folder / "other").exists()
    again = (await shell.copy(result.copy_id)).read().effects
    await shell.apply(result.copy_id, again, conflicts=again.conflicts)
    assert (folder / "changed").read_text() == "theirs\n"


async def test_G9_what_changed_after_it_was_shown_is_left(shell, folder):
    result = await shell.run("echo theirs > changed; echo x > new")
    (folder / "changed").write_text("mine")
    (folder / "new").write_text("mine")
    left = await shell.apply(result.copy_id, result.effects)
    assert left == {"changed": "changed", "new": "changed"}
    assert (folder / "changed").read_text() == (folder / "new").read_text() == "mine"


class Journal:
    """Stands for the access of an action, through which every change is recorded first."""

    owner = ChangeOwner("session", "request", "action")

    def __init__(self, record):
        self.record = record


async def test_G9_every_change_is_recorded_with_the_content_before_it(shell, folder):
    seen = []

    def record(changes, contents):
        for change in changes:
            place = folder / change.path
            now = place.read_bytes() if place.is_file() else None
            kind = "created" if change.before is None else "deleted" if change.after is None else "changed"
            seen.append((kind, change.path, contents.get(change.before) == now))

    result = await shell.run("echo x > changed; rm removed; mv old new; echo y > made")
    await shell.apply(result.copy_id, result.effects, Journal(record))
    assert sorted(seen) == [
        ("changed", "changed", True),
        ("created", "made", True),
        ("created", "new", True),
        ("deleted", "old", True),
        ("deleted", "removed", True),
    ]


async def test_G9_if_nothing_can_be_kept_nothing_changes(shell, folder):
    before = tree(folder)

    def record(_changes, _contents):
        raise ToolError("the disk is full")

    result = await shell.run("echo x > changed; rm removed")
    with pytest.raises(ToolError):
        await shell.apply(result.copy_id, result.effects, Journal(record))
    assert tree(folder) == before
    assert await shell.apply(result.copy_id, result.effects) == {}


async def test_G9_build_folders_are_told_as_a_whole_and_taken_over(shell, folder):
    result = await shell.run(
        "mkdir -p node_modules/a/b sub/__pycache__; for n in 1 2 3; do echo $n > node_modules/a/b/$n; done;"
        "echo x > sub/__pycache__/x.pyc; echo y > sub/y"
    )
    assert {(one.path, one.files, one.undoable) for one in result.effects.bulk} == {
        ("node_modules", 3, True),
        ("sub/__pycache__", 1, True),
    }
    assert told(result.effects) == {("created", "folder", "sub", ""), ("created", "file", "sub/y", "")}
    await shell.apply(result.copy_id, result.effects)
    assert (folder / "node_modules/a/b/3").read_text() == "3\n"
    assert (folder / "sub/__pycache__/x.pyc").exists()


async def test_G9_a_hard_link_to_a_file_outside_is_not_written_through(shell, folder, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("untouched\n")
    os.link(outside, folder / "inside")
    result = await shell.run("echo more >> inside; chmod 777 inside")
    await shell.apply(result.copy_id, result.effects)
    assert (folder / "inside").read_text() == "untouched\nmore\n"
    assert outside.read_text() == "untouched\n"
    assert stat.S_IMODE(outside.stat().st_mode) != 0o777


async def test_G9_kinds_can_change(shell, folder):
    result = await shell.run(
        "rm same; mkdir same; echo x > same/x; rm -r folder; echo y > folder; rm changed; ln -s bits changed"
    )
    await shell.apply(result.copy_id, result.effects)
    assert (folder / "same/x").read_text() == "x\n"
    assert (folder / "folder").read_text() == "y\n"
    assert str((folder / "changed").readlink()) == "bits"


async def test_G9_effects_that_wait_for_an_answer_outlive_the_shell(folder, tmp_path, copying, open_shell):
    files(folder, "changed")
    first = await open_shell(folder, copying, copies=tmp_path / "copies")
    result = await first.run("echo x > changed")
    lost = await first.run("echo y > changed")
    await first.keep(result.copy_id)
    await first.aclose()
    second = await open_shell(folder, copying, copies=tmp_path / "copies")
    await second.sandbox()
    kept = (await second.copy(result.copy_id)).read().effects
    assert kept == result.effects
    await second.apply(result.copy_id, kept)
    assert (folder / "changed").read_text() == "x\n"
    with pytest.raises(ToolError):
        await second.copy(lost.copy_id)


async def test_G3_a_question_stays_valid_for_a_week(folder, tmp_path, copying, open_shell):
    shell = await open_shell(folder, copying, copies=tmp_path / "copies")
    result = await shell.run("echo x > changed")
    await shell.keep(result.copy_id)
    await shell.aclose()
    day, now = 24 * 3600, time.time()
    for age, left in ((6.9 * day, 1), (7.1 * day, 0)):
        os.utime(tmp_path / "copies" / result.copy_id, (now - age, now - age))
        CopyFolders(tmp_path / "copies").sweep()
        assert len(list((tmp_path / "copies").iterdir())) == left


async def test_G9_an_interrupted_taking_over_is_finished_later(shell, folder, tmp_path, copying, open_shell):
    result = await shell.run("for n in $(seq 20); do echo $n > n$n; done; rm removed")

    copy = await shell.copy(result.copy_id)
    copy.keep(approved=result.effects)
    Path(copy.upper, "n7").rename(folder / "n7")
    copy.release()
    shell._pending.clear()
    second = await open_shell(folder, copying, copies=tmp_path / "copies")
    left = CopyFolders(tmp_path / "copies")
    (unfinished,) = left.unfinished(str(second.workspace))
    assert (approved := unfinished.about.approved) == result.effects
    unfinished.release()
    assert await second.apply(unfinished.id, approved) == {}
    assert {f"n{n}" for n in range(1, 21)} < set(tree(folder))
    assert not (folder / "removed").exists()
    assert left.unfinished(str(second.workspace)) == []


async def test_G9_what_a_cancelled_command_did_is_offered(shell, folder, tmp_path):
    running = asyncio.ensure_future(shell.run("echo half > done; sleep 100"))
    while not list((tmp_path / "copies").glob("*/upper/done")):
        await asyncio.sleep(0.02)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    (offered,) = shell.take_interrupted()
    assert told((await shell.copy(offered)).read().effects) == {("created", "file", "done", "")}
    assert not (folder / "done").exists()


async def test_G10_git_works_on_the_copy(shell, folder):
    result = await shell.run(
        "git init -q && git config user.email a@b && git config user.name a && git add -A"
        " && git commit -qm one"
    )
    assert result.exit_code == 0, result.output
    await shell.apply(result.copy_id, result.effects)
    result = await shell.run(
        "git checkout -qb side && echo x >> same && git commit -qam two && git checkout -q -"
        " && git merge -q side && echo y >> same && git stash -q && git stash pop -q"
        " && git status --short && git log --format=%s"
    )
    assert (result.exit_code, result.output) == (0, " M same\ntwo\none\n")
    await shell.apply(result.copy_id, result.effects)
    again = await shell.run("git status --short; git fsck --no-dangling; git log --format=%s")
    assert again.output == " M same\ntwo\none\n"


async def test_G9_what_runs_elsewhere_is_told_by_itself_even_in_a_folder_that_is_told_as_a_whole(
    shell, folder
):
    files(folder, ".venv/bin/activate", ".venv/lib/a.py", ".gitignore", "private/notes")
    (folder / ".gitignore").write_text("private/\n.vscode/\n")
    (folder / ".git").mkdir()
    result = await shell.run(
        "echo x >> .venv/bin/activate; echo x > .venv/lib/b.pth; echo x >> .venv/lib/a.py;"
        "mkdir -p .vscode; echo x > .vscode/tasks.json; echo x >> private/notes"
    )
    apart = {one.path for one in result.effects.effects}
    assert {".venv/bin/activate", ".venv/lib/b.pth", ".vscode/tasks.json"} <= apart
    assert ".venv/lib/a.py" not in apart
    assert await shell.apply(result.copy_id, result.effects) == {}
    assert (folder / ".venv/lib/a.py").read_text().endswith("x\n")
    assert (folder / ".venv/bin/activate").read_text().endswith("x\n")


MOUNTED = """
import asyncio, subprocess, sys
from pathlib import Path
from duckflow.config.settings import ShellSettings
from duckflow.safety.sandbox.shell import Shell

async def main(folder, level):
    mounted = folder / "work" / "other place"
    mounted.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", str(mounted)], check=True)
    (mounted / "file").write_text("seen")
    shell = Shell(folder / "work", ShellSettings(sandbox=level), copies=folder / "copies")
    result = await shell.run("cat other*/file; echo x > other*/new; echo x > other*/file; echo x > own")
    print(result.output[:4], [one.path for one in result.effects.effects], *mounted.iterdir(), sep="|")
    await shell.aclose()

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount something")
async def test_G9_what_is_mounted_in_the_folder_can_be_read(folder, copying, open_shell):
    await open_shell(folder, copying)
    command = ["unshare", "-m", sys.executable, "-c", MOUNTED, str(folder), copying]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.stdout == f"seen|['own']|{folder}/work/other place/file\n", ran.stderr


async def test_G9_who_else_may_use_a_file_is_not_taken_over(folder, tmp_path, copying, open_shell):
    """An access list is no permission bit, so the user would not be shown it."""
    entries = ((1, 6, -1), (2, 7, 1001), (4, 4, -1), (16, 7, -1), (32, 4, -1))
    value = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    name = "system.posix_acl_access"
    (folder / "shared").write_text("old")
    try:
        os.setxattr(folder / "shared", name, value)
    except OSError:
        pytest.skip("this file system has no access lists")
    shell = await open_shell(folder, copying, copies=tmp_path / "copies")
    give = f"import os; os.setxattr('new', {name!r}, bytes.fromhex('{value.hex()}'))"
    result = await shell.run(f'echo x > new; python3 -c "{give}"; echo more >> shared')
    assert await shell.apply(result.copy_id, result.effects) == {}
    assert os.listxattr(folder / "new") == []
    assert os.getxattr(folder / "shared", name) == value


def test_G9_copies_are_made_while_another_process_sweeps(folder, tmp_path):
    """A copy that another process is making is never mistaken for one that a killed process left."""
    mine, other, ended = CopyFolders(tmp_path / "copies"), CopyFolders(tmp_path / "copies"), threading.Event()

    def sweep():
        while not ended.is_set():
            other.sweep()

    sweeping = threading.Thread(target=sweep)
    sweeping.start()
    try:
        for _ in range(600):
            copy = mine.make(str(folder))
            assert copy.unused
            copy.discard()
    finally:
        ended.set()
        sweeping.join()


async def test_G9_folders_in_a_replaced_folder_keep_nothing_of_the_old_ones(shell, folder):
    """The kernel marks only the topmost folder of those that were removed and created again."""
    failures = Failures()
    for command in (
        "rm -rf b; mkdir -p b/c/e; echo new > b/c/e/new",
        "mv b q; mv d b; mv q d",
        "rm -rf b; mv d b",
        "rm -rf b; cp -r d b",
    ):
        for path in ("b/c/e/old", "d/c/e/other"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text("x\n")
        with failures.of(command):
            result = await shell.run(f"{command}; find b d | sort")
            assert await shell.apply(result.copy_id, result.effects) == {}
            found = (path for name in ("b", "d") for path in (folder / name, *(folder / name).rglob("*")))
            real = sorted(str(path.relative_to(folder)) for path in found if path.exists())
            assert real == [line for line in result.output.splitlines() if line[:2] in ("b", "b/", "d", "d/")]
        for name in ("b", "d"):
            shutil.rmtree(folder / name, ignore_errors=True)
    failures.report()
