"""G11: a background command shares its copy and its loopback network with later commands."""

import asyncio
import secrets

import pytest

from duckflow.domain.errors import ToolError
from duckflow.domain.files.effects import Effects
from fakes.sandbox_world import PYTHON, processes_with

LONG = str(1_000_000_000 + secrets.randbelow(1_000_000_000))
SERVER = f"{PYTHON} -u -m http.server --bind 127.0.0.1 8123"
ASK = f"""{PYTHON} -c "
import time, urllib.request
for _ in range(1200):
    try: print(urllib.request.urlopen('http://127.0.0.1:8123/page').read().decode(), end=''); break
    except OSError: time.sleep(0.1)
" """
ASK_ONCE = ASK.replace("1200", "1")


@pytest.fixture
async def shell(folder, tmp_path, copying, open_shell):
    (folder / "page").write_text("first\n")
    return await open_shell(folder, copying, copies=tmp_path / "copies")


async def test_G11_a_server_is_started_asked_read_and_stopped(shell, folder):
    server = await shell.start(SERVER)
    assert shell.background == (server,)
    assert (await shell.run(ASK)).output == "first\n"
    said = ""
    while "GET /page" not in said:
        piece = await shell.read(server, wait_s=5)
        assert piece.running
        said += piece.text
    stopped = await shell.stop(server)
    assert (stopped.running, stopped.stopped) == (False, "asked")
    assert shell.background == ()
    assert (await shell.run(ASK_ONCE)).output == ""
    assert (await shell.end_background()).effects == Effects()


async def test_G11_later_commands_see_its_files_and_it_sees_theirs(shell, folder):
    server = await shell.start(f"{SERVER} & echo mine > own; wait")
    assert (
        await shell.run("echo second > page; until [ -s own ]; do sleep 0.01; done; cat own")
    ).output == "mine\n"
    assert (await shell.run(ASK)).output == "second\n"
    assert (folder / "page").read_text() == "first\n"
    await shell.stop(server)
    rest = await shell.end_background()
    assert {one.path for one in rest.effects.effects} == {"own", "page"}
    await shell.apply(rest.copy_id, rest.effects)
    assert (folder / "page").read_text() == "second\n"


async def test_G11_effects_are_taken_over_while_it_goes_on(shell, folder):
    await shell.start(f"sleep {LONG}")
    for text in ("one", "two"):
        result = await shell.run(f"echo {text} > page; rm -f gone; echo {text} > made")
        assert result.effects.conflicts == ()
        assert await shell.apply(result.copy_id, result.effects) == {}
        assert (folder / "page").read_text() == f"{text}\n"
        assert (await shell.run("cat page made")).effects == Effects()
    assert (await shell.end_background()).effects == Effects()


async def test_G11_what_a_file_tool_changes_is_seen(shell, folder):
    await shell.start(f"sleep {LONG}")
    assert (await shell.run("cat page; ls")).output == "first\npage\n"
    (folder / "page").write_text("by a tool\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "new").write_text("new\n")
    await shell.put(("page", "sub/new"))
    assert (await shell.run("cat page sub/new")).output == "by a tool\nnew\n"
    (folder / "page").unlink()
    await shell.put(("page",))
    result = await shell.run("ls")
    assert (result.output, result.effects) == ("sub\n", Effects())


async def test_G11_discarded_effects_are_gone_for_the_next_command(shell):
    await shell.start(f"sleep {LONG}")
    result = await shell.run("echo x > page; echo y > new")
    await shell.discard(result.copy_id)
    assert (await shell.run("cat page; ls")).output == "first\npage\n"


async def test_G11_a_link_that_a_command_made_leads_no_put_out(shell, folder, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    await shell.start(f"rm -rf sub; ln -s {outside} sub; sleep {LONG}")
    await shell.run("until [ -L sub ]; do sleep 0.01; done")
    (folder / "sub").mkdir()
    (folder / "sub" / "file").write_text("x")
    with pytest.raises(ToolError):
        await shell.put(("sub/file",))
    assert list(outside.iterdir()) == []


async def test_G11_nothing_is_left_when_the_shell_ends(shell):
    await shell.start(f"setsid sleep {LONG} & setsid sh -c 'sleep {LONG}' & sleep {LONG}")
    while len(processes_with(LONG)) < 3:
        await asyncio.sleep(0.01)
    await shell.aclose()
    assert not processes_with(LONG)


async def test_G11_one_that_ends_by_itself_is_told(shell):
    command = await shell.start("echo done; exit 3")
    said = await shell.read(command, wait_s=5)
    while said.running:
        said = await shell.read(command, wait_s=5)
    assert said.exit_code == 3


async def test_G11_output_and_number_are_bounded(shell):
    talker = await shell.start("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end; sleep 1000")
    said = ""
    while not said.endswith("end\n"):
        said = (await shell.read(talker, wait_s=5)).text or said
        assert len(said) < 2 * shell.settings.max_output_bytes
    for _ in range(7):
        await shell.start(f"sleep {LONG}")
    with pytest.raises(ToolError):
        await shell.start(f"sleep {LONG}")
    with pytest.raises(ToolError):
        await shell.read("unknown")
