"""Changed files that count as work and appear in a recap, unlike caches (F3)."""

from duckflow.domain.files.caches import is_cache
from duckflow.domain.files.changes import FOLDER, ChangeSet, FileChange, changed_files


def made(*paths: str, **more) -> tuple[FileChange, ...]:
    return tuple(FileChange(path=path, before=None, after="0", **more) for path in paths)


def test_F3_edits_of_the_request_come_first_and_caches_never():
    noise = (*made("a/__pycache__/x.pyc", ".git/index", ".coverage"), *made("out.csv", ignored=True))
    folder = FileChange(path="new", before=None, after=FOLDER)
    sets = (
        ChangeSet(action_id="a1", request_id="r1", operation="file_ops.edit_file", changes=made("earlier")),
        ChangeSet(action_id="a2", request_id="r2", operation="file_ops.edit_file", changes=made("edited")),
        ChangeSet(
            action_id="a3",
            request_id="r2",
            operation="shell.run",
            command="make",
            changes=(*noise, folder, *made("one", "two")),
        ),
        ChangeSet(action_id="a4", request_id="r2", operation="file_ops.edit_file", changes=made("last")),
        ChangeSet(
            action_id="a5",
            request_id="r2",
            operation="file_ops.write_file",
            changes=made("gone"),
            undone=True,
        ),
        ChangeSet(action_id="a6", request_id="r2", operation="undo", changes=made("gone")),
    )
    assert changed_files(sets, "r2") == ("last", "edited", "two", "one", "earlier")


def test_a_cache_is_known_by_the_name_of_any_folder_above_it():
    caches = {
        "__pycache__/a.py",
        "x/.mypy_cache/3/a.json",
        "a.pyc",
        "node_modules",
        "p.egg-info/PKG",
        ".coverage",
    }
    own = {
        "a.py",
        "build/a.py",
        "src/cache/a.py",
        "node_modules.md",
        "coverage.py",
        ".github/x.yml",
        "dist/a",
    }
    assert {path for path in caches | own if is_cache(path)} == caches
