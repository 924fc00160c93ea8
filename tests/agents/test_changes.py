"""Changes under review (O4): all that a user can name, and the files with and without the changes."""

import shutil
import subprocess
from pathlib import Path

import pytest

from duckflow.agents import changes
from duckflow.agents.changes import find_changes, is_patch
from duckflow.domain.errors import ToolError
from fakes.rows import every_row

NAMED = ["-c", "user.name=a", "-c", "user.email=a@b"]


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", folder, *NAMED, *words], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def repository(folder: Path) -> Path:
    """Main has one commit; the branch `feature` changes a.py, renames old.txt and adds new.py."""
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "a.py").write_text("A = 1\n")
    (folder / "old.txt").write_text("one\ntwo\nthree\nfour\n")
    (folder / "picture.bin").write_bytes(b"\0\1")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "first")
    git(folder, "switch", "--quiet", "--create", "feature")
    (folder / "a.py").write_text("A = 2\n")
    (folder / "new.py").write_text("N = 1\n")
    git(folder, "mv", "old.txt", "moved.txt")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "second")
    git(folder, "switch", "--quiet", "main")
    return folder


def contents(files: changes.Files) -> dict[str, bytes | None]:
    return {path: one.content for path, one in files.items()}


def test_O4_without_a_name_everything_uncommitted_is_reviewed(repository: Path):
    """Staged, unstaged and new files; not what may be a secret. Nothing is written to the repository."""
    (repository / "a.py").write_text("A = 3\n")
    (repository / "picture.bin").write_bytes(b"\0\2")
    (repository / "fresh.py").write_text("F = 1\n")
    (repository / ".env").write_text("KEY=secret\n")
    (repository / "staged.py").write_text("S = 1\n")
    git(repository, "add", "staged.py")
    before = git(repository, "status", "--porcelain"), git(repository, "count-objects")
    found = find_changes(repository, "")
    assert sorted(found.files) == ["a.py", "fresh.py", "picture.bin", "staged.py"]
    assert "+A = 3" in found.difference
    assert "Binary files" in found.difference
    assert "secret" not in found.difference
    assert not found.reviewed
    assert contents(found.base) == {
        "a.py": b"A = 1\n", "picture.bin": b"\0\1", "fresh.py": None, "staged.py": None
    }  # fmt: skip
    assert (git(repository, "status", "--porcelain"), git(repository, "count-objects")) == before


def test_O4_what_is_staged_is_reviewed_without_the_rest(repository: Path):
    (repository / "a.py").write_text("A = 3\n")
    git(repository, "add", "a.py")
    (repository / "a.py").write_text("A = 4\n")
    found = find_changes(repository, "--staged")
    assert "+A = 3" in found.difference
    assert contents(found.reviewed) == {"a.py": b"A = 3\n"}
    assert contents(found.base) == {"a.py": b"A = 1\n"}


@every_row("named", ("feature", "main..feature", "main...feature", "feature~1..feature"))
def test_O4_a_branch_or_range_is_reviewed_without_being_checked_out(repository: Path, named: str):
    (repository / "a.py").write_text("A = 9\n")
    found = find_changes(repository, named)
    assert (found.added, found.removed) == (2, 1)
    assert sorted(found.files) == ["a.py", "moved.txt", "new.py"]
    assert "rename from old.txt" in found.difference
    assert contents(found.reviewed)["a.py"] == b"A = 2\n"
    assert contents(found.reviewed)["old.txt"] is None
    assert contents(found.base)["a.py"] == b"A = 1\n"
    assert contents(found.base)["new.py"] is None


def test_O4_the_current_branch_and_the_one_it_came_from_mean_the_same(repository: Path):
    git(repository, "switch", "--quiet", "feature")
    for named in ("feature", "main", "HEAD"):
        found = find_changes(repository, named)
        assert sorted(found.files) == ["a.py", "moved.txt", "new.py"], named
        assert not found.reviewed, named


def test_O4_a_patch_may_be_applied_already_or_not(repository: Path, tmp_path: Path):
    patch = git(repository, "diff", "--binary", "main", "feature").encode()
    found = find_changes(repository, "some.patch", patch)
    assert contents(found.base)["a.py"] == b"A = 1\n"
    assert contents(found.reviewed)["a.py"] == b"A = 2\n"
    git(repository, "switch", "--quiet", "feature")
    found = find_changes(repository, "some.patch", patch)
    assert contents(found.base)["a.py"] == b"A = 1\n"
    assert not found.reviewed
    outside = tmp_path / "no repository"
    outside.mkdir()
    shutil.copy(repository / "a.py", outside)
    part = git(repository, "diff", "main", "feature", "--", "a.py").encode()
    assert contents(find_changes(outside, "-", part).base) == {"a.py": b"A = 1\n"}


def test_O4_a_patch_file_is_told_from_a_branch(repository: Path):
    (repository / "p.diff").write_text("--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-A = 1\n+A = 2\n")
    assert is_patch(repository, "p.diff")
    assert not is_patch(repository, "feature")
    assert not is_patch(repository, "a.py")


REFUSED = {
    "": "review.nothing_uncommitted",
    "main..main": "review.nothing",
    "no-such-branch": "review.unknown",
    "--output=/tmp/x": "review.unknown",
    "main": "review.no_other_branch",
}


@every_row("named", REFUSED)
def test_O4_what_can_not_be_reviewed_is_refused_with_the_reason(repository: Path, named: str):
    if named == "main":
        git(repository, "branch", "--quiet", "-D", "feature")
    with pytest.raises(ToolError) as refused:
        find_changes(repository, named)
    assert refused.value.key == REFUSED[named]


def test_O4_a_folder_without_git_or_a_patch_that_does_not_fit_is_refused(folder: Path, tmp_path: Path):
    with pytest.raises(ToolError) as refused:
        find_changes(folder, "")
    assert refused.value.key == "review.no_git"
    (folder / "a.py").write_text("B = 1\n")
    with pytest.raises(ToolError) as refused:
        find_changes(folder, "-", b"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-A = 1\n+A = 2\n")
    assert refused.value.key == "review.not_applied"
    with pytest.raises(ToolError) as refused:
        find_changes(folder, "-", b"no patch")
    assert refused.value.key == "review.bad_patch"


def test_O4_of_a_huge_difference_the_largest_files_are_only_named(repository: Path):
    (repository / "big.txt").write_text("a line of text\n" * 20_000)
    (repository / "a.py").write_text("A = 3\n")
    found = find_changes(repository, "")
    assert found.left_out == ("big.txt",)
    assert "+A = 3" in found.difference
    assert len(found.difference) <= changes.MOST_SHOWN


def test_O4_no_program_of_the_repository_is_started(repository: Path, tmp_path: Path):
    """SAFETY 17: filters, hooks and external diffs of the repository's own settings do not run."""
    ran = tmp_path / "ran"
    script = repository / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch '{ran}'\ncat\n")
    script.chmod(0o755)
    for key in ("filter.evil.clean", "filter.evil.smudge", "diff.external", "core.fsmonitor"):
        git(repository, "config", key, str(script))
    (repository / ".gitattributes").write_text("*.py filter=evil\n")
    (repository / "a.py").write_text("A = 3\n")
    assert "+A = 3" in find_changes(repository, "").difference
    assert not ran.exists()
