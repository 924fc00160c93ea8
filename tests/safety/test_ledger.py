"""Nothing is changed before what it does away with is kept, and nothing but what was kept (SAFETY 11)."""

import asyncio
import unicodedata
from pathlib import Path

import pytest

from duckflow.domain.errors import ToolError
from duckflow.domain.files.changes import FileChange, net_changes
from duckflow.safety.files.access import Access
from duckflow.safety.files.confined_open import open_resolved, open_walking
from duckflow.safety.files.workspace import Workspace
from duckflow.store.kept_files import ChangeOwner, KeptFiles

OPERATIONS = {
    "write": lambda files, **keep: files.write_bytes("a", b"new", **keep),
    "delete": lambda files, **keep: files.delete("a", **keep),
    "move": lambda files, **keep: files.move("a", "deep/b", **keep),
}
MARK = ChangeOwner("s", "r", "a1")


def files(folder: Path) -> dict[str, str]:
    return {str(one.relative_to(folder)): one.read_text() for one in folder.rglob("*") if one.is_file()}


@pytest.fixture(params=[open_resolved, open_walking], ids=["kernel", "walk"])
def opener(request):
    return request.param


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_can_not_be_kept_is_not_changed(folder: Path, operation: str, opener):
    def refuse(*_):
        raise ToolError("no room to keep it")

    (folder / "a").write_text("old")
    workspace = Workspace(folder, opener=opener)
    with pytest.raises(ToolError, match="no room"):
        OPERATIONS[operation](workspace, keep=refuse)
    assert files(folder) == {"a": "old"}
    workspace.close()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_changed_after_it_was_kept_is_not_lost(folder: Path, operation: str, opener):
    """The content that goes is the content that was kept, even if nothing was expected of it."""

    def keep(place, before, after):
        (folder / "a").write_text("someone else's")

    (folder / "a").write_text("old")
    workspace = Workspace(folder, opener=opener)
    with pytest.raises(ToolError, match="changed by someone else"):
        OPERATIONS[operation](workspace, keep=keep)
    assert files(folder) == {"a": "someone else's"}
    workspace.close()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_change_is_told_with_what_it_does_away_with(
    folder: Path, tmp_path: Path, operation: str, opener
):
    (folder / "a").write_text("old")
    kept = KeptFiles(tmp_path / "undo.db", 1_000_000)
    workspace = Workspace(folder, opener=opener)
    access = Access(workspace, kept, MARK)
    OPERATIONS[operation](access)
    made = access.changes
    assert made == kept.changes("s", "a1") == workspace.paths.made_of(made)
    gone = next(change for change in made if change.path == "a")
    assert kept.content(gone.before) == b"old"
    if operation == "move":
        assert next(change for change in made if change.path == "deep/b").folders == ("deep",)
    kept.close()
    workspace.close()


async def test_what_two_loops_do_at_once_is_kept_apart(folder: Path, tmp_path: Path):
    kept = KeptFiles(tmp_path / "undo.db", 1_000_000)
    workspace = Workspace(folder)

    async def work(name: str) -> tuple[FileChange, ...]:
        access = Access(workspace, kept, ChangeOwner("s", "r", name))
        for number in range(20):
            await asyncio.to_thread(access.write_bytes, f"{name}{number}", b"x")
            await asyncio.sleep(0)
        return access.changes

    for name, made in zip("xy", await asyncio.gather(work("x"), work("y")), strict=True):
        assert [change.path for change in made] == [f"{name}{number}" for number in range(20)]
        assert len(kept.changes("s", name)) == 20
    kept.close()
    workspace.close()


def test_a_change_through_a_link_is_told_by_the_real_name(folder: Path, tmp_path: Path):
    (folder / "real").write_text("old")
    (folder / "link").symlink_to("real")
    kept = KeptFiles(tmp_path / "undo.db", 1_000_000)
    workspace = Workspace(folder)
    access = Access(workspace, kept, MARK)
    access.write_bytes("link", b"new")
    assert [change.path for change in access.changes] == ["real"]
    assert (folder / "link").is_symlink()
    kept.close()
    workspace.close()


def test_a_look_says_done_not_done_or_unknown(folder: Path):
    workspace = Workspace(folder)
    (folder / "a").write_text("old")
    before = workspace.digest("a")
    change = FileChange(path="a", before=before, after=None)
    assert workspace.paths.finding(change) == "not_done"
    (folder / "a").write_text("other")
    assert workspace.paths.finding(change) == "unknown"
    (folder / "a").unlink()
    assert workspace.paths.finding(change) == "done"
    (folder / "a").mkdir()
    assert workspace.paths.finding(change) == "unknown"
    workspace.close()


def test_several_changes_of_a_file_are_one_from_first_to_last():
    first = FileChange(path="a", before=None, after="1", mode_after=0o644)
    second = FileChange(path="a", before="1", after=None, mode_before=0o644)
    third = FileChange(path="b", before="1", after="2")
    assert net_changes([first, third, second]) == (third,)


def test_names_in_another_normal_form_are_other_names(folder: Path, opener):
    workspace = Workspace(folder, opener=opener)
    composed, decomposed = (unicodedata.normalize(form, "がé.txt") for form in ("NFC", "NFD"))
    workspace.write_text(composed, "composed")
    workspace.write_text(decomposed, "decomposed")
    assert workspace.read_text(composed) == "composed"
    workspace.delete(decomposed)
    assert files(folder) == {composed: "composed"}
    workspace.close()
