"""A permit lets through exactly what was approved, looked at by the file layer itself (SAFETY 7, G5)."""

import hashlib
from pathlib import Path

import pytest

from duckflow.domain.errors import ToolError
from duckflow.safety.files.atomic import ChangedMeanwhile
from duckflow.safety.files.permit import Permit, holding, permitted_outside
from duckflow.safety.files.workspace import Workspace
from duckflow.tools.threads import finish


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def workspace(folder: Path):
    (folder / "a.txt").write_text("old\n")
    opened = Workspace(folder)
    yield opened
    opened.close()


def test_what_was_approved_is_written(workspace: Workspace, folder: Path):
    with holding(Permit({"a.txt": sha("old\n"), "new.txt": None})):
        workspace.write_text("a.txt", "x")
        workspace.write_text("new.txt", "y")
    assert ((folder / "a.txt").read_text(), (folder / "new.txt").read_text()) == ("x", "y")


@pytest.mark.parametrize("before", [{"a.txt": sha("other\n")}, {"a.txt": None}, {"b.txt": None}, {}])
def test_another_content_or_another_file_is_not(workspace: Workspace, folder: Path, before):
    with holding(Permit(before)):
        for attempt in (
            lambda: workspace.write_text("a.txt", "x"),
            lambda: workspace.write_text("a.txt", "x", expected=sha("old\n")),
            lambda: workspace.delete("a.txt"),
            lambda: workspace.move("a.txt", "b.txt"),
        ):
            with pytest.raises(ChangedMeanwhile):
                attempt()
    assert (folder / "a.txt").read_text() == "old\n"
    assert not (folder / "b.txt").exists()


def test_the_target_of_a_move_must_be_approved_too(workspace: Workspace, folder: Path):
    with holding(Permit({"a.txt": sha("old\n")})), pytest.raises(ChangedMeanwhile):
        workspace.move("a.txt", "b.txt")
    with holding(Permit({"a.txt": sha("old\n"), "b.txt": None})):
        workspace.move("a.txt", "b.txt")
    assert (folder / "b.txt").read_text() == "old\n"


async def test_it_reaches_the_threads_and_ends_with_the_block(workspace: Workspace):
    with holding(Permit({})), pytest.raises(ToolError, match="not what the user was asked about"):
        await finish(workspace.write_text, "a.txt", "x")
    await finish(workspace.write_text, "a.txt", "x")


def test_nothing_outside_is_permitted_unless_it_says_so():
    assert permitted_outside() is None
    with holding(Permit({}, "/x")):
        assert permitted_outside() == "/x"
        with holding(None):
            assert permitted_outside() is None
