"""What the file operations do and say, called as a model would (N)."""

import asyncio
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.catalogue import Catalogue
from duckflow.tools.toolset import file_tools
from fakes.access import access_to


@pytest.fixture
def call(tmp_path):
    catalogue, access = Catalogue(file_tools(None)), access_to(tmp_path)

    async def call(operation, **args):
        tool, parsed = catalogue.validate(Action(operation=operation, args=args))
        return await tool.run(parsed, access)

    return call


@pytest.fixture
def preview(tmp_path):
    catalogue, workspace = Catalogue(file_tools(None)), Workspace(tmp_path)

    async def preview(operation, **args):
        tool, parsed = catalogue.validate(Action(operation=operation, args=args))
        return (await tool.propose(parsed, workspace)).difference

    return preview


async def refusal(awaitable) -> str:
    with pytest.raises(ToolError) as error:
        await awaitable
    return str(error.value)


async def test_read_shows_the_text_under_a_line_that_says_what_it_is(call, tmp_path):
    (tmp_path / "a.txt").write_text("一\n二\n三\n")
    result = await call("read_file", path="a.txt")
    assert result.text == "a.txt (lines 1-3 of 3)\n一\n二\n三"
    assert (result.path, result.changed) == ("a.txt", ())
    assert (await call("read_file", path="a.txt", start=2, end=2)).text == "a.txt (lines 2-2 of 3)\n二"
    assert (await call("read_file", path="a.txt", start=2, end=99)).text == "a.txt (lines 2-3 of 3)\n二\n三"


async def test_read_of_lines_that_are_not_there_says_how_many_there_are(call, tmp_path):
    (tmp_path / "a.txt").write_text("1\n2\n")
    assert (await call("read_file", path="a.txt", start=3)).text == "a.txt (2 lines, none from 3 on)"
    assert "end (1) comes before start (2)" in await refusal(call("read_file", path="a.txt", start=2, end=1))


async def test_read_of_a_long_file_says_how_to_read_on(call, tmp_path):
    (tmp_path / "long").write_text("".join(f"{number}\n" for number in range(1, 2501)))
    first = await call("read_file", path="long")
    assert first.text.startswith("long (lines 1-1000 of 2500; read on with start=1001)\n1\n")
    rest = await call("read_file", path="long", start=2001)
    assert rest.text.startswith("long (lines 2001-2500 of 2500)\n2001\n")


async def test_read_of_a_giant_line_is_cut_and_says_so(call, tmp_path):
    (tmp_path / "min.js").write_text("a" * 100_000 + "\nb\n")
    text = (await call("read_file", path="min.js")).text
    assert text.startswith(
        "min.js (lines 1-1 of 2; read on with start=2; line 1 is cut, it has 100000 characters)"
    )
    assert len(text) < 41_000


async def test_read_hides_crlf_and_mark_but_names_the_line_ends(call, tmp_path):
    (tmp_path / "dos").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    assert (await call("read_file", path="dos")).text == (
        "dos (lines 1-2 of 2; CRLF line ends, kept on writing)\na\nb"
    )
    (tmp_path / "empty").write_text("")
    assert (await call("read_file", path="empty")).text == "empty (empty)"


async def test_a_missing_file_brings_the_nearest_names(call, tmp_path):
    (tmp_path / "src/app").mkdir(parents=True)
    (tmp_path / "src/app/main.py").write_text("")
    for operation, args in (
        ("read_file", {}),
        ("edit_file", {"edits": [{"find": "a", "replace": "b"}]}),
        ("delete_file", {}),
        ("move_file", {"to": "x"}),
    ):
        for wrong in ("main.py", "src/ap/main.py", "src/app/mian.py"):
            said = await refusal(call(operation, path=wrong, **args))
            assert said == f"{wrong}: does not exist. There is: src/app/main.py."
    assert (
        await refusal(call("read_file", path="unlike_anything.rs")) == "unlike_anything.rs: does not exist."
    )


async def test_write_says_created_changed_or_unchanged(call, tmp_path):
    result = await call("write_file", path="./new/a.py", content="1\n2\n")
    assert (result.text, result.changed) == ("created new/a.py (2 lines)", ("new/a.py",))
    result = await call("write_file", path=f"{tmp_path}/new/a.py", content="1\n3\n4\n")
    assert (result.text, result.changed) == ("changed new/a.py (+2 -1, now 3 lines)", ("new/a.py",))
    inode = (tmp_path / "new/a.py").stat().st_ino
    result = await call("write_file", path="new/a.py", content="1\n3\n4\n")
    assert result.text == "unchanged new/a.py: it has this content already"
    assert result.changed == ()
    assert (tmp_path / "new/a.py").stat().st_ino == inode


async def test_write_keeps_crlf_and_mark_of_a_file(call, tmp_path):
    (tmp_path / "dos").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    await call("write_file", path="dos", content="a\nc\n")
    assert (tmp_path / "dos").read_bytes() == b"\xef\xbb\xbfa\r\nc\r\n"
    assert (await call("write_file", path="dos", content="a\nc\n")).changed == ()


async def test_write_over_what_is_no_text_is_refused(call, tmp_path):
    (tmp_path / "picture").write_bytes(b"\x89PNG\0")
    (tmp_path / "old.txt").write_bytes("déjà vu".encode("latin-1"))
    assert "binary" in await refusal(call("write_file", path="picture", content="x"))
    assert "Latin-1" in await refusal(call("write_file", path="old.txt", content="x"))


@settings(max_examples=40)
@given(content=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_what_write_file_is_given_is_in_the_new_file(tmp_path_factory, content):
    root = tmp_path_factory.mktemp("write")
    catalogue = Catalogue(file_tools(None))
    tool, args = catalogue.validate(Action(operation="write_file", args={"path": "f", "content": content}))
    asyncio.run(tool.run(args, access_to(root)))
    assert (root / "f").read_bytes() == content.encode()


async def test_edit_changes_the_file_and_says_how(call, tmp_path):
    (tmp_path / "a.py").write_bytes(b"\xef\xbb\xbfx = 1\r\ny = 2\r\n")
    result = await call("edit_file", path="a.py", edits=[{"find": "x = 1", "replace": "x = 10"}])
    assert (result.text, result.changed) == ("changed a.py (+1 -1, now 2 lines)", ("a.py",))
    assert (tmp_path / "a.py").read_bytes() == b"\xef\xbb\xbfx = 10\r\ny = 2\r\n"
    result = await call("edit_file", path="a.py", edits=[{"find": "x = 1", "replace": "x = 10"}])
    assert result.changed == ()
    assert result.text.splitlines() == [
        "unchanged a.py: it has this content already",
        "the edit was made already (line 1)",
    ]


async def test_edit_makes_all_changes_or_none(call, tmp_path):
    (tmp_path / "a.py").write_text("a\nb\n")
    said = await refusal(
        call("edit_file", path="a.py", edits=[{"find": "a", "replace": "x"}, {"find": "z", "replace": "y"}])
    )
    assert said.startswith("a.py: edit 2 of 2: the text to find is nowhere")
    assert (tmp_path / "a.py").read_text() == "a\nb\n"


async def test_a_file_changed_between_reading_and_writing_is_left_alone(tmp_path):
    class Meddled(Workspace):
        def write_bytes(self, path, data, **given):
            (tmp_path / path).write_text("someone else's\n")
            super().write_bytes(path, data, **given)

    (tmp_path / "a.py").write_text("a\n")
    catalogue, access = Catalogue(file_tools(None)), access_to(Meddled(tmp_path))
    for operation, args in (
        ("edit_file", {"path": "a.py", "edits": [{"find": "a", "replace": "b"}]}),
        ("write_file", {"path": "a.py", "content": "mine\n"}),
        ("write_file", {"path": "new.py", "content": "mine\n"}),
    ):
        (tmp_path / "a.py").write_text("a\n")
        tool, parsed = catalogue.validate(Action(operation=operation, args=args))
        assert "someone else" in await refusal(tool.run(parsed, access))
        assert (tmp_path / args["path"]).read_text() == "someone else's\n"


async def test_delete_and_move_say_what_changed(call, tmp_path):
    (tmp_path / "a").write_text("a")
    result = await call("move_file", path="a", to="b/c")
    assert (result.text, result.changed, result.path) == ("moved a to b/c", ("a", "b/c"), "b/c")
    result = await call("delete_file", path="b/c")
    assert (result.text, result.changed) == ("deleted b/c", ("b/c",))
    assert not (tmp_path / "b/c").exists()


async def test_move_into_a_folder_says_what_to_write(call, tmp_path):
    (tmp_path / "a.py").write_text("a")
    (tmp_path / "lib").mkdir()
    assert "write lib/a.py" in await refusal(call("move_file", path="a.py", to="lib"))


async def test_what_can_not_be_moved_is_refused_before_anyone_is_asked(call, preview, tmp_path):
    (tmp_path / "a.py").write_text("a")
    (tmp_path / "b.py").write_text("b")
    for to, words in {
        "b.py": "exists already",
        "a.py": "is the file itself",
        "./a.py": "is the file itself",
    }.items():
        assert words in await refusal(preview("move_file", path="a.py", to=to))
        assert words in await refusal(call("move_file", path="a.py", to=to))
    assert [(tmp_path / name).read_text() for name in ("a.py", "b.py")] == ["a", "b"]


async def test_previews_show_everything_and_change_nothing(preview, tmp_path):
    lines = [f"line {number}\n" for number in range(3000)]
    (tmp_path / "a").write_text("".join(lines))
    (tmp_path / "b").write_bytes(b"\0\1")
    (tmp_path / "empty").write_text("")
    shown = await preview("write_file", path="a", content="nothing is left")
    assert shown.count("\n-line ") == 3000
    assert shown.endswith("+nothing is left\n\\ No newline at end of file\n")
    assert (await preview("delete_file", path="a")).count("\n-line ") == 3000
    assert await preview("delete_file", path="b") == "Binary files a/b and /dev/null differ\n"
    assert await preview("delete_file", path="empty") == "--- a/empty\n+++ /dev/null\n"
    assert await preview("move_file", path="a", to="c") == "rename from a\nrename to c\n"
    assert await preview("write_file", path="new", content="x\n") == (
        "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n"
    )
    assert await preview("edit_file", path="a", edits=[{"find": "line 2999\n", "replace": "end\n"}]) == (
        "--- a/a\n+++ b/a\n@@ -2997,4 +2997,4 @@\n line 2996\n line 2997\n line 2998\n-line 2999\n+end\n"
    )
    assert await preview("write_file", path="a", content="".join(lines)) == ""
    assert await preview("read_file", path="a") == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "empty"]
    assert (tmp_path / "a").read_text() == "".join(lines)


async def test_a_preview_of_what_can_not_be_done_says_why(preview, tmp_path):
    (tmp_path / "a").write_text("a\n")
    assert "the text to find is nowhere" in await refusal(
        preview("edit_file", path="a", edits=[{"find": "zz", "replace": ""}])
    )
    assert "outside" in await refusal(preview("write_file", path="/etc/x", content=""))
    assert "does not exist" in await refusal(preview("delete_file", path="none"))


def test_targets_are_the_paths_an_operation_touches(tmp_path):
    catalogue = Catalogue(file_tools(Workspace(tmp_path)))

    def targets(operation, **args):
        tool, parsed = catalogue.validate(Action(operation=operation, args=args))
        return tool.targets(parsed)

    assert targets("read_file", path=".env") == (".env",)
    assert targets("move_file", path="a", to=".git/x") == ("a", ".git/x")
    assert targets("list_files") == (".",)
    assert targets("search", pattern="x", path="src") == ("src",)


async def test_a_cancelled_write_is_over_when_the_caller_goes_on():
    started, go_on, done = threading.Event(), threading.Event(), []

    def slow():
        started.set()
        go_on.wait(5)
        done.append("written")

    task = asyncio.create_task(run_in_thread(slow))
    await asyncio.to_thread(started.wait, 5)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["written"]
