"""A permit lets through exactly what was approved, looked at when a file is changed (SAFETY 7, G5)."""

import hashlib
from functools import partial
from pathlib import Path

import pytest

from duckflow.domain.errors import ToolError
from duckflow.safety.files.access import Access, Permit
from duckflow.safety.files.atomic import ChangedMeanwhile
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.uncancelled import run_in_thread
from duckflow.store.kept_files import ChangeOwner, KeptFiles


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def permitting(folder: Path, tmp_path: Path):
    """Gives access with a permit, or without one."""
    (folder / "a.txt").write_text("old\n")
    workspace, kept = Workspace(folder), KeptFiles(tmp_path / "undo.db", 1_000_000)
    yield lambda permit: Access(workspace, kept, ChangeOwner("s", "r", "a1"), permit)
    kept.close()
    workspace.close()


def test_what_was_approved_is_written(permitting, folder: Path):
    access = permitting(Permit({"a.txt": sha("old\n"), "new.txt": None}))
    access.write_bytes("a.txt", b"x")
    access.write_bytes("new.txt", b"y")
    assert ((folder / "a.txt").read_text(), (folder / "new.txt").read_text()) == ("x", "y")
    assert [change.path for change in access.changes] == ["a.txt", "new.txt"]


def test_another_content_or_another_file_is_not(permitting, folder: Path):
    for before in ({"a.txt": sha("other\n")}, {"a.txt": None}, {"b.txt": None}, {}):
        access = permitting(Permit(before))
        for attempt in (
            partial(access.write_bytes, "a.txt", b"x"),
            partial(access.write_bytes, "a.txt", b"x", expected=sha("old\n")),
            partial(access.delete, "a.txt"),
            partial(access.move, "a.txt", "b.txt"),
        ):
            with pytest.raises(ChangedMeanwhile):
                attempt()
        assert access.changes == ()
    assert (folder / "a.txt").read_text() == "old\n"
    assert not (folder / "b.txt").exists()


def test_the_target_of_a_move_must_be_approved_too(permitting, folder: Path):
    with pytest.raises(ChangedMeanwhile):
        permitting(Permit({"a.txt": sha("old\n")})).move("a.txt", "b.txt")
    permitting(Permit({"a.txt": sha("old\n"), "b.txt": None})).move("a.txt", "b.txt")
    assert (folder / "b.txt").read_text() == "old\n"


async def test_a_permit_counts_for_its_own_action_only(permitting):
    with pytest.raises(ToolError, match="not what the user was asked about"):
        await run_in_thread(permitting(Permit({})).write_bytes, "a.txt", b"x")
    await run_in_thread(permitting(None).write_bytes, "a.txt", b"x")


def test_nothing_outside_is_permitted_unless_it_says_so(permitting):
    assert permitting(None).outside is None
    assert permitting(Permit({})).outside is None
    assert permitting(Permit({}, "/x")).outside == "/x"
