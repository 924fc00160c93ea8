"""G9, SAFETY 11: what someone saves between the check of a batch and its last rename is never overwritten."""

import hashlib
import os
import stat
from pathlib import Path

import pytest

from duckflow.safety.files.replacing import NotAsExpected, move_aside, put_in_place
from duckflow.safety.sandbox.copy.copies import CopyFolders
from duckflow.safety.sandbox.copy.copy_writer import apply_effects
from duckflow.store.kept_files import ChangeOwner

COMMAND = (
    "echo theirs > changed; echo theirs > other; rm removed; mv old moved; chmod 700 bits;"
    "ln -sfn elsewhere link; rm gone; echo x > new"
)
NAMES = ("changed", "other", "removed", "old", "bits", "gone", "kind")
SAVED = ("changed", "removed", "old")


class Journal:
    """Stands for the access of an action. It is called after the check and before the first change."""

    owner = ChangeOwner("session", "request", "action")

    def __init__(self, save):
        self._save = save

    def record(self, changes, contents):
        save, self._save = self._save, lambda: None
        save()


@pytest.fixture
async def shell(folder, tmp_path, copying, open_shell):
    for name in NAMES:
        (folder / name).write_text(f"{name}\n")
    (folder / "link").symlink_to("changed")
    return await open_shell(folder, copying, copies=tmp_path / "copies")


def in_place(path: Path) -> None:
    with path.open("r+") as file:
        file.write("MINE")


def by_rename(path: Path) -> None:
    (path.parent / ".saving").write_text("MINE, too")
    (path.parent / ".saving").replace(path)


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("save", [in_place, by_rename])
async def test_G9_a_save_after_the_check_is_kept(shell, folder, save, live):
    if live:
        await shell.start("sleep 1000")
    result = await shell.run(COMMAND)

    def save_all():
        for name in SAVED:
            save(folder / name)
        if save is by_rename:
            save(folder / "bits")

    left = await shell.apply(result.copy_id, result.effects, Journal(save_all))
    for name in SAVED:
        assert "MINE" in (folder / name).read_text(), name
    assert set(left) == {*SAVED, *(["bits"] if save is by_rename else [])}
    assert stat.S_IMODE((folder / "bits").stat().st_mode) == (0o700 if save is in_place else 0o644)
    assert (folder / "other").read_text() == "theirs\n"
    assert (folder / "new").read_text() == "x\n"
    assert not (folder / "gone").exists()
    assert str((folder / "link").readlink()) == "elsewhere"
    assert not [path for path in folder.rglob("*") if path.name.startswith(".duckflow-")]


async def test_G9_a_save_before_a_file_makes_room_for_a_folder_is_kept(shell, folder):
    result = await shell.run("rm kind; mkdir kind; echo x > kind/x")
    left = await shell.apply(result.copy_id, result.effects, Journal(lambda: by_rename(folder / "kind")))
    assert set(left) == {"kind", "kind/x"}
    assert (folder / "kind").read_text() == "MINE, too"


async def test_G9_what_is_replaced_by_something_else_after_the_check_is_kept(shell, folder):
    result = await shell.run(COMMAND)

    def save():
        for name in ("changed", "removed"):
            (folder / name).unlink()
            (folder / name).mkdir()
        (folder / "other").unlink()
        (folder / "link").unlink()
        (folder / "link").symlink_to("mine")
        (folder / "new").write_text("MINE")

    left = await shell.apply(result.copy_id, result.effects, Journal(save))
    assert set(left) == {"changed", "removed", "other", "link", "new"}
    assert (folder / "changed").is_dir()
    assert (folder / "removed").is_dir()
    assert not (folder / "other").exists()
    assert str((folder / "link").readlink()) == "mine"
    assert (folder / "new").read_text() == "MINE"


async def test_G9_a_file_that_someone_holds_open_and_writes_meanwhile_is_kept(shell, folder):
    result = await shell.run(COMMAND)
    with (folder / "changed").open("r+") as changed, (folder / "removed").open("r+") as removed:

        def save():
            for file in (changed, removed):
                file.write("MINE")
                file.flush()

        left = await shell.apply(result.copy_id, result.effects, Journal(save))
    assert {"changed", "removed"} <= set(left)
    assert (folder / "changed").read_text().startswith("MINE")
    assert (folder / "removed").read_text().startswith("MINE")


async def test_G9_what_came_out_when_the_program_was_killed_is_put_back(shell, folder, tmp_path):
    """A kill between the exchange and the comparison leaves the file of the user beside the copy."""
    result = await shell.run(COMMAND)
    copy = await shell.copy(result.copy_id)
    copy.keep(approved=result.effects)
    for name, after in (("changed", "theirs\n"), ("removed", None)):
        aside = copy.folder / "aside" / hashlib.sha256(name.encode()).hexdigest()[:32]
        aside.parent.mkdir(exist_ok=True)
        (folder / name).write_text("MINE")
        (folder / name).rename(aside)
        if after is not None:
            (folder / name).write_text(after)
    copy.release()
    shell._pending.clear()
    (unfinished,) = CopyFolders(tmp_path / "copies").unfinished(str(shell.workspace))
    left = apply_effects(unfinished, result.effects)
    unfinished.release()
    assert set(left) == {"changed", "removed"}
    assert (folder / "changed").read_text() == (folder / "removed").read_text() == "MINE"
    assert (folder / "other").read_text() == "theirs\n"


def test_a_file_is_only_replaced_or_removed_if_it_is_the_expected_one(tmp_path):
    folder = os.open(tmp_path, os.O_RDONLY)
    place, new, aside = (folder, "file"), (folder, "new"), (folder, "aside")

    def has(text):
        return lambda at: (tmp_path / at[1]).read_text() == text

    (tmp_path / "file").write_text("old")
    (tmp_path / "new").write_text("new")
    with pytest.raises(NotAsExpected):
        put_in_place(new, place, has("other"))
    with pytest.raises(NotAsExpected):
        move_aside(place, aside, has("other"))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"file": "old"}
    (tmp_path / "new").write_text("new")
    assert put_in_place(new, place, has("old"))
    assert [(tmp_path / name).read_text() for name in ("file", "new")] == ["new", "old"]
    move_aside(place, aside, has("new"))
    assert not (tmp_path / "file").exists()
    os.close(folder)


def test_the_newest_save_wins_when_a_file_is_put_back(tmp_path):
    folder = os.open(tmp_path, os.O_RDONLY)
    (tmp_path / "file").write_text("first save")
    (tmp_path / "new").write_text("ours")

    def save_again(_at):
        (tmp_path / "saving").write_text("second save")
        (tmp_path / "saving").replace(tmp_path / "file")
        return False

    with pytest.raises(NotAsExpected):
        put_in_place((folder, "new"), (folder, "file"), save_again)
    assert (tmp_path / "file").read_text() == "second save"
    os.close(folder)
