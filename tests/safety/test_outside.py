"""Detect paths outside the workspace, and read one regular file there (G3)."""

import os
from pathlib import Path

import pytest

from duckflow.domain.errors import ToolError
from duckflow.safety.files.outside import READ_CAP, find_outside, read_outside


@pytest.fixture
def tmp_path(disk_path: Path) -> Path:
    """On a disk: everything under /dev is closed."""
    return disk_path


@pytest.fixture
def around(folder: Path) -> Path:
    (folder.parent / "note.txt").write_text("hello\n")
    (folder / "inside.txt").write_text("x")
    (folder / "link").symlink_to("../note.txt")
    return folder


@pytest.mark.parametrize("text", ["../note.txt", "sub/../../note.txt", "link", "{up}/note.txt"])
def test_G3_it_is_known_by_where_it_really_leads(around: Path, text: str):
    found = find_outside(text.format(up=around.parent), around.resolve(), ())
    assert found is not None
    assert found.real == os.path.realpath(around.parent / "note.txt")
    assert not found.closed
    assert read_outside(found.real) == "hello\n"


@pytest.mark.parametrize(
    "text", ["inside.txt", "./inside.txt", "{here}/inside.txt", "../work/inside.txt", "new"]
)
def test_what_is_inside_is_not_outside(around: Path, text: str):
    assert find_outside(text.format(here=around), around.resolve(), ()) is None


@pytest.mark.parametrize(
    "text",
    [
        "~/.ssh/config",
        "~/.aws/credentials",
        "~/.gnupg/x",
        "~/x/.env",
        "~/id_rsa",
        "~/.netrc",
        "~/.SSH/id_ed25519",
        "~/.mozilla/firefox/x",
        "~/.config/gh/hosts.yml",
        "~/.local/share/keyrings/login.keyring",
        "~/.bash_history",
        "/etc/shadow",
        "/etc/sudoers",
        "/etc/ssh/ssh_config",
        "/proc/self/environ",
        "/proc/1/cmdline",
        "/sys/kernel",
        "/dev/zero",
        "{state}/duckflow.db",
    ],
)
def test_SAFETY_5_places_for_secrets_and_duckflows_own_are_closed(around: Path, text: str):
    state = str(around.parent / "state")
    found = find_outside(text.format(state=state), around.resolve(), (state,))
    assert found is not None
    assert found.closed


def test_a_link_to_a_closed_place_is_closed(around: Path):
    (around / "harmless.txt").symlink_to("/etc/shadow")
    found = find_outside("harmless.txt", around.resolve(), ())
    assert found is not None
    assert found.closed


def test_SAFETY_15_only_regular_files_that_are_not_too_large(around: Path):
    large = around.parent / "large"
    large.write_bytes(b"x" * (READ_CAP + 1))
    os.mkfifo(around.parent / "pipe")
    for name, said in (
        ("large", "too large"),
        ("pipe", "not a regular file"),
        ("", "folder"),
        ("none", "exist"),
    ):
        with pytest.raises(ToolError, match=said):
            read_outside(os.path.realpath(around.parent / name))


def test_a_link_put_there_after_the_question_is_not_followed(around: Path):
    real = (around.parent / "note.txt").resolve()
    real.unlink()
    real.symlink_to("/etc/hostname")
    with pytest.raises(ToolError, match="leads elsewhere now"):
        read_outside(str(real))


def test_unseen_characters_are_refused(around: Path):
    with pytest.raises(ToolError, match="may not be part of a path"):
        find_outside("../no\u202ete.txt", around.resolve(), ())
