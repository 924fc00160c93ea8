"""G9, G11: the effects of background commands are read safely while they try to lead the reader elsewhere."""

import hashlib
import stat

import pytest

from duckflow.domain.files.effects import Effects
from fakes.sandbox_world import PYTHON

SECRET = "the secret outside\n"
SWAPPER = """
import ctypes, os
libc = ctypes.CDLL(None)
os.mkdir("real"); open("real/config", "w").write("mine"); os.mkdir("real/inner")
os.symlink({outside!r}, "link")
open("ready", "w").write("x")
while True:
    libc.renameat2(-100, b"real", -100, b"link", 2)
"""


@pytest.fixture
def outside(tmp_path):
    place = tmp_path / "outside"
    (place / "inner").mkdir(parents=True)
    (place / "config").write_text(SECRET)
    (place / "inner" / "config").write_text(SECRET)
    place.chmod(0o711)
    (place / "inner").chmod(0o700)
    return place


@pytest.fixture
async def shell(folder, tmp_path, copying, open_shell):
    (folder / "page").write_text("first\n")
    return await open_shell(folder, copying, copies=tmp_path / "copies")


def digests(effects):
    return {one for effect in effects.effects for one in (effect.before, effect.after)}


async def test_G9_folders_swapped_for_links_lead_no_reading_out(shell, outside):
    secret = hashlib.sha256(SECRET.encode()).hexdigest()
    modes = [one.stat().st_mode for one in (outside, outside / "inner")]
    (shell.workspace / "swap.py").write_text(SWAPPER.format(outside=str(outside)))
    await shell.start(f"exec {PYTHON} swap.py")
    await shell.run("until [ -e ready ]; do sleep 0.01; done")
    seen, contents = set(), set()
    for _ in range(60):
        result = await shell.run("true")
        seen |= digests(result.effects)
        copy = await shell.copy(result.copy_id)
        contents |= {copy.content(f"{top}/config", 100) for top in ("real", "link")}
    assert secret not in seen
    assert SECRET.encode() not in contents
    assert [one.stat().st_mode for one in (outside, outside / "inner")] == modes


async def test_G9_swapped_folders_are_taken_over_as_they_were_shown(shell, outside):
    (shell.workspace / "swap.py").write_text(SWAPPER.format(outside=str(outside)))
    await shell.start(f"exec {PYTHON} swap.py")
    await shell.run("until [ -e ready ]; do sleep 0.01; done")
    for _ in range(10):
        result = await shell.run("true")
        await shell.apply(result.copy_id, result.effects)
    found = [path for path in shell.workspace.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in found if path.read_text() == SECRET]
    assert (outside / "config").read_text() == SECRET


async def test_G9_a_link_of_the_folder_is_not_followed_where_a_command_put_a_folder(
    folder, tmp_path, outside, copying, open_shell
):
    """What lies behind the project's own link is neither compared nor put into the copy."""
    (folder / "dir").symlink_to(outside)
    shell = await open_shell(folder, copying, copies=tmp_path / "copies")
    await shell.start("sleep 1000")
    result = await shell.run("rm dir; mkdir dir; echo x > dir/config")
    assert hashlib.sha256(SECRET.encode()).hexdigest() not in digests(result.effects)
    assert {(one.kind, one.type) for one in result.effects.effects if one.path == "dir/config"} == {
        ("created", "file")
    }
    await shell.discard(result.copy_id)
    assert SECRET not in (await shell.run("cat dir/config inner/config 2>&1")).output
    assert (outside / "config").read_text() == SECRET


async def test_G9_closed_folders_keep_their_mode_while_they_are_read(shell, folder):
    await shell.start("mkdir closed; echo x > closed/file; chmod 000 closed/file closed; sleep 1000")
    await shell.run("until [ -d closed ] && [ $(stat -c %a closed) = 0 ]; do sleep 0.01; done")
    result = await shell.run("stat -c %a closed")
    assert result.output == "0\n"
    assert await shell.apply(result.copy_id, result.effects) == {}
    assert stat.S_IMODE((folder / "closed").stat().st_mode) == 0
    assert (await shell.run("stat -c %a closed")).output == "0\n"
    (folder / "closed").chmod(0o700)


async def test_G11_no_process_of_the_commands_runs_while_effects_are_read(shell):
    await shell.start(f"{PYTHON} -c \"import os\nwhile True: open('count', 'a').write('x')\"")
    await shell.run("until [ -s count ]; do sleep 0.01; done")
    copy = shell._live.copy
    async with shell._live.frozen():
        first = copy.content("count", 10_000_000)
        for _ in range(200):
            assert copy.content("count", 10_000_000) == first
    size = len(first)
    await shell.run(f"until [ $(stat -c %s count) -gt {size} ]; do sleep 0.01; done")


RESISTING = """
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
event = struct.pack("Qii48x", 0, 18, 0)
timer = ctypes.c_int()
assert libc.timer_create(1, event, ctypes.byref(timer)) == 0
assert libc.timer_settime(timer, 0, struct.pack("4q", 0, 100_000, 0, 100_000), None) == 0
while True:
    open("count", "a").write("x")
"""


async def test_G11_a_process_that_wakes_itself_up_is_held_as_well(shell):
    (shell.workspace / "resist.py").write_text(RESISTING)
    await shell.start(f"exec {PYTHON} resist.py")
    await shell.run("until [ -s count ]; do sleep 0.01; done")
    async with shell._live.frozen():
        first = shell._live.copy.content("count", 10_000_000)
        for _ in range(200):
            assert shell._live.copy.content("count", 10_000_000) == first


async def test_G9_what_was_shown_is_written_even_if_the_file_grows_on(shell, folder):
    await shell.start(f"{PYTHON} -c \"while True: open('count', 'a').write('x')\"")
    await shell.run("until [ -s count ]; do sleep 0.01; done")
    result = await shell.run("true")
    (shown,) = (one for one in result.effects.effects if one.path == "count")
    content = (await shell.copy(result.copy_id)).content("count", 10_000_000)
    assert hashlib.sha256(content).hexdigest() == shown.after
    assert await shell.apply(result.copy_id, result.effects) == {}
    assert (folder / "count").read_bytes() == content
    assert (await shell.run("true")).effects != Effects()
