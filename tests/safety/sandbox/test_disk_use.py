"""G7, G9: disk space of commands: everything that they write, reserve or leave as holes."""

import secrets
import signal

from duckflow.domain.files.effects import Effects
from duckflow.safety.sandbox.copy import copy_reader
from fakes.sandbox_world import PYTHON, processes_with

LONG = str(1_000_000_000 + secrets.randbelow(1_000_000_000))
"""Number of seconds that only commands of this run sleep."""

MANY = "for n in 1 2 3 4 5 6 7 8; do head -c 4000000 /dev/zero > sub/$n || exit; done"
DELETED = f"""{PYTHON} -c "
import os, time
for n in range(8):
    one = os.open('sub/gone', os.O_CREAT | os.O_WRONLY); os.unlink('sub/gone')
    os.write(one, os.urandom(4_000_000))
time.sleep({LONG})
" """


async def test_G7_all_that_a_command_writes_is_limited(folder, tmp_path, any_level, open_shell):
    (folder / "sub").mkdir()
    settings = {"copies": tmp_path / "copies"} if any_level in ("bubblewrap", "namespaces") else {}
    shell = await open_shell(folder, any_level, file_mb=5, disk_mb=16, **settings)
    assert (await shell.run("head -c 4000000 /dev/zero > sub/some")).stopped is None
    written = [MANY, f"{MANY}; sleep {LONG}", DELETED]
    if settings:
        written += [
            "for n in 1 2 3 4 5; do truncate -s 4M sub/$n; done",
            MANY.replace("sub/", "/tmp/") + f"; sleep {LONG}",
        ]
    for command in written:
        result = await shell.run(command, timeout_s=300)
        assert (result.stopped, result.exit_code) == ("disk_mb", None), command
    assert not processes_with(LONG)


IN_FLIGHT = f"""{PYTHON} -c "
import os, socket, time
kept = []
for n in range(8):
    one = os.open('sub/gone', os.O_CREAT | os.O_WRONLY); os.unlink('sub/gone')
    os.posix_fallocate(one, 0, 4_000_000); kept += socket.socketpair()
    socket.send_fds(kept[-1], [b'.'], [one]); os.close(one)
time.sleep({LONG})
" """
DEEP = f"cd sub; for n in $(seq 20); do mkdir {'x' * 250}; cd {'x' * 250}; done 2>/dev/null; "
DEEP += "for n in 1 2 3 4 5; do head -c 4000000 /dev/zero > $n; done"


async def test_G7_hidden_files_count_by_what_was_written(folder, tmp_path, copying, open_shell):
    (folder / "sub").mkdir()
    settings = {"copies": tmp_path / "copies", "file_mb": 5, "disk_mb": 16}
    shell = await open_shell(folder, copying, **settings)
    for command in (IN_FLIGHT, f"{DEEP}; sleep {LONG}"):
        assert (await shell.run(command, timeout_s=60)).stopped == "disk_mb", command


HOLES = "mkdir sub; for n in 1 2 3; do truncate -s 400K sub/$n; done; echo x > file; echo done"


async def test_G9_more_holes_than_can_be_read_are_discarded(
    folder, tmp_path, copying, open_shell, monkeypatch
):
    """They cost a command no time, and reading would take minutes."""
    shell = await open_shell(folder, copying, copies=tmp_path / "copies")
    assert (await shell.run(HOLES)).stopped is None
    monkeypatch.setattr(copy_reader, "MOST_HOLES", 1_000_000)
    result = await shell.run(HOLES)
    assert (result.stopped, result.exit_code, result.effects, result.copy_id) == (
        "disk_mb",
        None,
        Effects(),
        "",
    )
    assert result.output.endswith("nothing that it did was kept]")
    await shell.start(f"sleep {LONG}")
    result = await shell.run(HOLES)
    assert (result.stopped, result.effects, shell.background) == ("disk_mb", Effects(), ())
    assert not processes_with(LONG)
    assert (await shell.run("ls; echo x > file")).output == ""


async def test_G7_no_room_is_reserved_that_nobody_counts(folder, tmp_path, level, open_shell):
    """Reserved room could be hidden from the count: in deep or closed folders, or in files without a name."""
    (folder / "sub").mkdir()
    copies = {} if level == "landlock" else {"copies": tmp_path / "copies"}
    shell = await open_shell(folder, level, file_mb=5, disk_mb=16, **copies)
    result = await shell.run("for n in 1 2 3 4 5; do fallocate -l 4M sub/$n || exit; done")
    assert "not supported" in result.output
    emulated = (
        f"{PYTHON} -c \"import os; os.posix_fallocate(os.open('sub/x', os.O_CREAT | os.O_RDWR), 0, 9000)\""
    )
    assert (await shell.run(f"{emulated} && stat -c %s sub/x")).output == "9000\n"


async def test_G7_a_file_can_not_grow_past_the_limit(folder, any_level, open_shell):
    shell = await open_shell(folder, any_level, file_mb=1)
    result = await shell.run("head -c 5000000 /dev/zero > big")
    assert result.exit_code == 128 + signal.SIGXFSZ
    assert (folder / "big").stat().st_size <= 1_000_000
