"""G7, C4, SAFETY 10: the run and end of commands: limits, cancelling, leftover processes and reports."""

import asyncio
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest

from duckflow.domain.errors import ToolError
from duckflow.safety.sandbox.child.cgroups import memory_places
from fakes.launchers import running_launcher
from fakes.rows import Failures
from fakes.sandbox_world import PYTHON, processes_with, world

LONG = str(1_000_000_000 + secrets.randbelow(1_000_000_000))
"""Return a number of seconds that only commands of this run sleep."""
ESCAPING = f"(setsid sh -c 'setsid sleep {LONG} & sleep {LONG}' &); setsid sleep {LONG} & disown; "


async def until(met, seconds=120.0):
    """Wait until the condition holds; a hang ends in the test's timeout."""
    end = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < end, "it never came to that"
        await asyncio.sleep(0.01)


async def test_G7_a_command_has_its_exit_code_and_output(folder, any_level, open_shell):
    shell = await open_shell(folder, any_level)
    result = await shell.run("echo out; echo err >&2; pwd; exit 3")
    assert (result.exit_code, result.output) == (3, f"out\nerr\n{folder.resolve()}\n")


async def test_G7_what_a_command_made_and_changed_is_told(folder, any_level, open_shell):
    shell = await open_shell(folder, any_level)
    for name in ("same", "changed", "removed", "moved"):
        (folder / name).write_text("x")
    (folder / "node_modules").mkdir()
    result = await shell.run(
        "echo y > changed; rm removed; mkdir a; mv moved a/; touch node_modules/x new; cat same"
    )
    assert result.changed == ("a/moved", "changed", "moved", "new", "removed")


async def test_G7_a_signal_is_told_as_a_shell_does(folder, any_level, open_shell):
    shell, failures = await open_shell(folder, any_level), Failures()
    for command in ("kill -9 $$", "sh -c 'kill -9 $$'; exit 137"):
        with failures.of(command):
            assert (await shell.run(command)).exit_code == 128 + signal.SIGKILL
    failures.report()


async def test_G7_after_its_time_a_command_and_all_it_started_is_gone(folder, any_level, open_shell):
    shell = await open_shell(folder, any_level)
    result = await shell.run(f"{ESCAPING} echo begun; sleep {LONG}", timeout_s=3)
    assert (result.stopped, result.exit_code) == ("seconds", None)
    assert not processes_with(LONG)


async def test_C4_cancelling_leaves_no_process(folder, any_level, open_shell):
    shell = await open_shell(folder, any_level)
    running = asyncio.ensure_future(shell.run(f"{ESCAPING} sleep {LONG}"))
    await until(lambda: len(processes_with(LONG)) >= 4)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not processes_with(LONG)


async def test_G7_what_a_command_leaves_running_ends_with_it(folder, any_level, open_shell):
    shell = await open_shell(folder, any_level)
    result = await shell.run(f"{ESCAPING} echo done")
    assert (result.exit_code, result.output) == (0, "done\n")
    assert not processes_with(LONG)


async def test_C4_when_duckflow_is_killed_nothing_is_left(folder, any_level, open_shell, tmp_path):
    await open_shell(folder, any_level)
    program = textwrap.dedent(f"""
        import asyncio
        from pathlib import Path
        from duckflow.config.settings import ShellSettings
        from duckflow.safety.sandbox.shell import Shell

        async def main():
            shell = Shell(Path({str(folder)!r}), ShellSettings(sandbox={any_level!r}))
            await shell.run({ESCAPING + "sleep " + LONG!r})

        asyncio.run(main())
    """)
    with subprocess.Popen([sys.executable, "-c", program]) as duckflow:
        await until(lambda: len(processes_with(LONG)) >= 4)
        temporary = running_launcher(duckflow.pid).temporary
        duckflow.kill()
    await until(lambda: not processes_with(LONG))
    await until(lambda: not temporary.exists())
    await until(lambda: not processes_with(str(temporary)))


async def test_G7_too_many_processes_end_the_command(folder, any_level, open_shell):
    shell = await open_shell(folder, any_level, max_processes=40)
    result = await shell.run(f"for n in $(seq 2000); do sleep {LONG} & done; wait", timeout_s=300)
    assert (result.stopped, result.exit_code) == ("processes", None)
    assert not processes_with(LONG)


async def test_G7_a_fork_bomb_is_ended(folder, level, open_shell):
    shell = await open_shell(folder, level, max_processes=100)
    bomb = f"""{PYTHON} -c "
import os, time
for _ in range(9):
    if os.fork() == 0: os.setsid()
time.sleep({LONG})
" {LONG}"""
    result = await shell.run(bomb, timeout_s=300)
    assert result.stopped == "processes"
    assert not processes_with(LONG)


async def test_G7_too_much_memory_ends_the_command(folder, any_level, open_shell):
    shell = await open_shell(folder, any_level, memory_mb=100)
    result = await shell.run(f"{PYTHON} -c 'x = bytearray(300_000_000); import time; time.sleep(60)'")
    assert (result.stopped, result.exit_code) == ("memory_mb", None)


async def test_G7_memory_that_is_shared_or_belongs_to_no_process_counts(folder, any_level, open_shell):
    shell = await open_shell(folder, any_level, memory_mb=100)
    shared = "m = mmap.mmap(-1, 200_000_000); m.write(bytes(1_000_000) * 200); os.fork()"
    unmapped = "f = [os.memfd_create('x') for _ in range(50)]; [os.write(one, bytes(4_000_000)) for one in f]"
    for held in (shared, unmapped):
        result = await shell.run(
            f'{PYTHON} -c "import mmap, os, time; {held}; time.sleep({LONG})"', timeout_s=300
        )
        assert result.stopped == "memory_mb"


SOCKETS = f"""{PYTHON} -c "
import socket, time
kept = []
while len(kept) < 450:
    kept += socket.socketpair()
    for one in kept[-2:]:
        one.setblocking(False)
        try:
            while one.send(bytes(65536)): pass
        except BlockingIOError: pass
time.sleep(1)
" """


FILES_IN_SOCKETS = f"""{PYTHON} -c "
import os, socket, time
kept = []
for n in range(60):
    one = os.memfd_create('x'); os.write(one, bytes(4_000_000)); kept += socket.socketpair()
    socket.send_fds(kept[-1], [b'.'], [one]); os.close(one)
time.sleep(1)
" """


@pytest.mark.parametrize("command", [SOCKETS, FILES_IN_SOCKETS], ids=["bytes", "files"])
async def test_G7_memory_of_sockets_is_limited_where_a_cgroup_can_be_made(
    folder, any_level, open_shell, request, command
):
    """Processes alone are counted everywhere. Sockets can hold many times as much."""
    if not any(memory_places()):
        request.applymarker(pytest.mark.xfail(reason="no cgroup can be made here", strict=True))
    shell = await open_shell(folder, any_level, memory_mb=64)
    result = await shell.run(command, timeout_s=300)
    assert (result.stopped, result.exit_code) == ("memory_mb", None)
    assert (await shell.run("echo fine")).output == "fine\n"


async def test_a_name_that_is_no_text_keeps_no_command_from_running(folder, any_level, open_shell):
    (folder / os.fsdecode(b"\xff\xfe")).write_text("x")
    (folder / os.fsdecode(b"\xff\xfd")).mkdir()
    shell = await open_shell(folder, any_level)
    assert (await shell.run("echo fine")).output == "fine\n"


LANDLOCK_OUTSIDE = """
import ctypes, os, sys
outside, libc = sys.argv[1], ctypes.CDLL(None, use_errno=True)
try: here = os.open(outside, os.O_RDONLY)
except OSError: here = os.open(outside, os.O_PATH)
for change in (
    lambda: os.chmod(outside, 0o777),
    lambda: os.fchmod(here, 0o777),
    lambda: os.chmod(f"/proc/self/fd/{here}", 0o777),
    lambda: os.chmod(f"/proc/{os.getpid()}/fd/{here}", 0o777),
    lambda: os.chmod(os.path.relpath(outside), 0o777),
    lambda: os.chmod("link", 0o777),
    lambda: os.chmod("folder/" + os.path.basename(outside), 0o777),
    lambda: os.utime(outside, (1, 1)),
    lambda: os.utime(here, (1, 1)),
    lambda: os.chown(here, -1, os.getegid()) or os.chmod(here, 0o777),
    lambda: os.setxattr(outside, "user.x", b"y"),
    lambda: os.chmod(os.path.dirname(outside), 0o777),
):
    try: change()
    except OSError: continue
    print("GOT IT")
"""
LANDLOCK_INSIDE = """
cd sub; umask 022; echo x > a; chmod 750 a; stat -c %a a; touch -d @5 a; stat -c %Y a
ln -s a l; touch -h -d @6 l; stat -c %Y l a; chmod u+s a 2>/dev/null; stat -c %a a
mkdir d; chmod g+s,o+t d; stat -c %a d; cp -p a b; stat -c '%a %Y' b
chown $(id -u):$(id -g) a && echo own; chmod 600 nothing 2>/dev/null || echo none
touch c; tar cf t.tar a b; rm a; tar xpf t.tar; stat -c '%a %Y' a
python3 -c 'import os; f = os.open("a", os.O_RDWR); os.fchmod(f, 0o640); os.utime(f, (7, 7))'
stat -c '%a %Y' a; install -m 755 a $TMPDIR/i; stat -c %a $TMPDIR/i; chmod -R a+rX .; echo $?
"""


async def test_G7_under_landlock_permissions_and_times_are_changed_inside_and_nowhere_else(
    folder, tmp_path, open_shell
):
    (folder / "sub").mkdir()
    (folder / "try.py").write_text(LANDLOCK_OUTSIDE)
    shell = await open_shell(folder, "landlock")
    for outside in (tmp_path / "others" / "file", folder / ".git" / "config"):  # the second can be opened
        outside.parent.mkdir()
        outside.write_text("x")
        outside.chmod(0o600)
        for name, target in (("link", outside), ("folder", outside.parent)):
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(target)
        before = [(path.stat().st_mode, path.stat().st_mtime) for path in (outside, outside.parent)]
        result = await shell.run(f"{PYTHON} try.py {outside}")
        assert (result.exit_code, result.output) == (0, "")
        assert before == [(path.stat().st_mode, path.stat().st_mtime) for path in (outside, outside.parent)]
    result = await shell.run(LANDLOCK_INSIDE)
    assert result.output.split("\n") == [
        *("750", "5", "6", "5", "750", "3755", "750 5", "own", "none", "750 5", "640 7", "755", "0", ""),
    ]


async def test_G7_signals_a_program_relies_on_are_not_ignored(folder, any_level, open_shell):
    shell = await open_shell(folder, any_level)
    result = await shell.run(
        f"yes | head -1; timeout 0.2 sleep {LONG}; echo $?; grep SigIgn /proc/self/status"
    )
    *lines, ignored = result.output.split()
    assert lines == ["y", "124", "SigIgn:"]
    # 32 and 33 are the C library's own; it leaves them ignored in what it spawns, such as make's commands.
    assert int(ignored, 16) & ~(0b11 << 31) == 0


async def test_G7_nobody_answers_a_question(folder, any_level, open_shell):
    shell = await open_shell(folder, any_level)
    assert (
        await shell.run('read answer; echo "[$answer] $?"; [ -t 0 ] || echo none')
    ).output == "[] 1\nnone\n"


async def test_G7_commands_share_a_temporary_folder_that_goes_with_the_shell(folder, any_level, open_shell):
    shell = await open_shell(folder, any_level)
    await shell.run("echo kept > $TMPDIR/note")
    assert (await shell.run("cat $TMPDIR/note")).output == "kept\n"
    temporary = running_launcher().temporary
    await shell.aclose()
    assert not temporary.exists()


_REMOVAL = """
import os, shutil, sys
from duckflow.safety.sandbox.child.launcher import remove_in_time

def remove():
    open(sys.argv[1]).read()
    shutil.rmtree(sys.argv[2])

remove_in_time(remove)
"""


async def test_G7_leaving_does_not_wait_for_the_removal_of_a_huge_temporary_folder(tmp_path):
    folder, gate = tmp_path / "folder", tmp_path / "gate"
    folder.mkdir()
    os.mkfifo(gate)
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", _REMOVAL, gate, folder], check=True)
    assert folder.exists()
    await asyncio.to_thread(gate.write_text, "now")
    await until(lambda: not folder.exists())


async def test_G7_a_repository_can_be_read(folder, level, open_shell):
    for words in (["init", "-q"], ["config", "user.email", "a@b"], ["config", "user.name", "a"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    (folder / "file").write_text("x")
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    subprocess.run(["git", "commit", "-qm", "first"], cwd=folder, check=True)
    shell = await open_shell(folder, level)
    result = await shell.run(
        "echo y >> file; git log --format=%s; git diff --stat | tail -1; git status --short"
    )
    assert result.output == "first\n 1 file changed, 1 insertion(+), 1 deletion(-)\n M file\n"
    assert (await shell.run("git commit -qam second")).exit_code != 0


async def test_G7_with_network_a_server_can_be_reached(level, open_shell):
    with world() as around:
        shell = await open_shell(around.workspace, level, env=around.environment())
        port = around.listeners["port"].getsockname()[1]
        reach = f"{PYTHON} -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)'"
        assert (await shell.run(reach)).exit_code == 1
        assert (await shell.run(reach, network=True)).exit_code == 0


async def test_G7_a_command_has_a_loopback_of_its_own_in_bubblewrap(folder, open_shell):
    shell = await open_shell(folder, "bubblewrap")
    served = f"""{PYTHON} -c "
import socket
server = socket.create_server(('127.0.0.1', 0))
socket.create_connection(server.getsockname()); print('reached')
" """
    assert (await shell.run(served)).output == "reached\n"


async def test_what_can_not_be_a_command_is_refused(folder, any_level, open_shell):
    shell, failures = await open_shell(folder, any_level), Failures()
    for command in ("", "  \n", "echo \0", "x" * 200_000):
        with failures.of(repr(command)), pytest.raises(ToolError):
            await shell.run(command)
    failures.report()


async def test_G7_a_sandbox_that_does_not_stand_fails_the_command_and_nothing_runs(folder, level, open_shell):
    """SAFETY 9: no command ever gets a weaker sandbox."""
    shell = await open_shell(folder, level)
    await shell.run("true")
    temporary = running_launcher().temporary
    if level == "bubblewrap":
        shutil.rmtree(temporary / "shm")  # it holds mount points if the tests themselves run in memory
    else:
        folder.rename(folder.with_name("gone"))
    with pytest.raises(ToolError, match="could not be run in its sandbox"):
        await shell.run("echo ran > ran")
    assert not (folder / "ran").exists()


async def test_a_launcher_that_was_killed_is_started_anew(folder, any_level, open_shell):
    shell = await open_shell(folder, any_level)
    await shell.run("true")
    first = running_launcher()
    os.kill(first.pid, signal.SIGKILL)
    while first.runs():
        await asyncio.sleep(0.01)
    assert (await shell.run("echo again")).output == "again\n"


async def test_commands_can_run_side_by_side(folder, any_level, open_shell):
    shell = await open_shell(folder, any_level)
    results = await asyncio.gather(*(shell.run(f"echo {n}; sleep 0.1; exit {n}") for n in range(8)))
    assert [(one.exit_code, one.output) for one in results] == [(n, f"{n}\n") for n in range(8)]


async def test_two_cancellings_still_leave_nothing(folder, any_level, open_shell):
    shell = await open_shell(folder, any_level)
    running = asyncio.ensure_future(shell.run(f"{ESCAPING} sleep {LONG}"))
    await until(lambda: len(processes_with(LONG)) >= 4)
    running.cancel()
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not processes_with(LONG)


async def test_G7_a_command_can_not_get_rid_of_what_ends_it(folder, level, open_shell):
    shell, failures = await open_shell(folder, level), Failures()
    for blow in ("KILL", "STOP"):
        with failures.of(blow):
            result = await shell.run(f"{ESCAPING} kill -{blow} $PPID; sleep {LONG}", timeout_s=1)
            assert result.exit_code != 0
            assert not processes_with(LONG)
    failures.report()


SHARED = f"""{PYTHON} -c "
import ctypes; c = ctypes.CDLL(None)
print([c.shmget(0, size, 0o600) >= 0 for size in (16384, 16385)])" """


async def test_G7_shared_memory_segments_are_small_and_under_landlock_there_are_none(
    folder, level, open_shell
):
    shell = await open_shell(folder, level)
    assert (await shell.run(SHARED)).output == f"[{level != 'landlock'}, False]\n"


AT_THE_TOP = """exec 2>/dev/null
echo x > new && echo create; mkdir made && echo folder; rm old && echo remove; mv old other && echo move
echo x >> old && echo change; echo x > sub/new && echo below; mv sub/new sub/other && echo inner
python3 -c 'import os; os.setxattr("old", "user.x", b"y")' && echo attribute
python3 -c 'import multiprocessing; multiprocessing.Pool(2).map(abs, [1])' && echo pool
cat .git/config; echo x >> .git/config && echo git; true"""


async def test_G7_under_landlock_the_top_of_a_folder_with_git_keeps_its_entries(folder, open_shell):
    for path in (".git/config", "old", "sub/a"):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text("x\n")
    shell = await open_shell(folder, "landlock")
    assert (await shell.run(AT_THE_TOP)).output == "change\nbelow\ninner\nx\n"


async def test_G7_a_server_in_the_folder_is_out_of_reach(folder, level, open_shell):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "door"))
        listening.listen()
        shell = await open_shell(folder, level)
        reach = f"{PYTHON} -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"door\")'"
        result = await shell.run(reach)
        assert (result.exit_code, "PermissionError" in result.output) == (1, True)


async def test_G10_under_landlock_the_git_directory_of_a_worktree_is_read_only(open_shell):
    def git(place, *words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=place, check=True)

    with world() as around:
        main, folder = around.outside / "main", around.outside / "worktree"
        main.mkdir()
        git(main, "init", "-q")
        git(main, "commit", "-qm", "first", "--allow-empty")
        git(main, "worktree", "add", "-q", str(folder))
        shell = await open_shell(folder, "landlock", env=around.environment())
        who = "-c user.name=a -c user.email=a@b"
        result = await shell.run(
            f"exec 2>/dev/null; git {who} commit -q --allow-empty -m x && echo done; git config a.b c"
            " && echo done; echo x > ../main/.git/x && echo done; echo x > .git && echo done;"
            " git log --format=%s"
        )
        assert result.output == "first\n"
