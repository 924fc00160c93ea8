"""Reading and writing through the workspace: caps, kinds, encodings, expectations (SAFETY 11, 15)."""

import errno
import hashlib
import os
import resource
import signal
import socket
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duckflow.domain.errors import ToolError
from duckflow.safety.files import atomic
from duckflow.safety.files.confined_open import open_resolved, open_walking, rename_to_new
from duckflow.safety.files.temporary import is_temporary
from duckflow.safety.files.workspace import READ_CAP, Workspace


@pytest.fixture(params=[open_resolved, open_walking], ids=["kernel", "walk"])
def workspace(request, tmp_path):
    made = Workspace(tmp_path, opener=request.param)
    yield made
    made.close()


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@settings(max_examples=60)
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_what_is_written_is_read_back_the_same(text):
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder))
        workspace.write_text("深い/folder/file.txt", text)
        assert workspace.read_text("深い/folder/file.txt") == text
        assert workspace.digest("深い/folder/file.txt") == sha(text)
        workspace.close()


def test_a_missing_file_says_so_and_has_no_digest(workspace):
    with pytest.raises(ToolError, match=r"a/b\.txt: does not exist"):
        workspace.read_text("a/b.txt")
    assert workspace.digest("a/b.txt") is None
    assert workspace.status("a/b.txt") is None


def test_status_tells_files_from_folders(workspace):
    workspace.write_text("a/b.txt", "four")
    assert workspace.status("a/").kind == "folder"
    assert workspace.status(".").kind == "folder"
    assert (workspace.status("a/b.txt").kind, workspace.status("a/b.txt").size) == ("file", 4)


def test_a_pipe_a_socket_a_device_and_a_folder_are_refused_without_waiting(workspace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    os.mkfifo("pipe")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        for name, word in (("pipe", "a pipe"), ("folder", "a folder"), ("socket", "not a regular file")):
            with pytest.raises(ToolError, match=word):
                workspace.read_bytes(name)
            with pytest.raises(ToolError, match=r"not a regular file"):
                workspace.write_text(name, "x")
            with pytest.raises(ToolError, match=r"not a regular file"):
                workspace.delete(name)
            with pytest.raises(ToolError, match=r"not a regular file"):
                workspace.move(name, "elsewhere")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_refused(workspace, tmp_path):
    os.mknod(tmp_path / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    with pytest.raises(ToolError, match=r"a device|permission denied"):
        workspace.read_bytes("zero")


def test_a_sparse_giant_is_refused_by_its_size(workspace, tmp_path):
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    for attempt in (workspace.read_bytes, workspace.digest, workspace.delete):
        with pytest.raises(ToolError, match="too large: 1099511627776 bytes"):
            attempt("sparse")
    with pytest.raises(ToolError, match="too large"):
        workspace.write_text("sparse", "x")


def test_the_cap_is_the_last_size_that_is_read(workspace, tmp_path):
    (tmp_path / "full").write_bytes(b"a" * READ_CAP)
    (tmp_path / "over").write_bytes(b"a" * (READ_CAP + 1))
    assert len(workspace.read_bytes("full")) == READ_CAP
    with pytest.raises(ToolError, match="too large"):
        workspace.read_bytes("over")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x7fELF\0\0", "binary file of 6 bytes"),
        ("abc".encode("utf-32"), "UTF-32"),
        ("déjà vu".encode("latin-1"), "0xe9 at offset 1"),
        ("日本".encode()[:-1], "not UTF-8"),
    ],
    ids=["elf", "utf32", "latin1", "cut"],
)
def test_what_is_no_text_that_can_be_kept_is_named(workspace, tmp_path, data, words):
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(ToolError, match=words):
        workspace.read_text("file")
    assert workspace.read_bytes("file") == data


def test_a_byte_order_mark_and_crlf_are_kept(workspace, tmp_path):
    (tmp_path / "file").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    text = workspace.read_text("file")
    workspace.write_text("copy", text)
    assert (tmp_path / "copy").read_bytes() == b"\xef\xbb\xbfa\r\nb\r\n"


def test_a_changed_file_keeps_its_mode_and_loses_set_user_id(workspace, tmp_path):
    script = tmp_path / "run.sh"
    script.write_text("old")
    script.chmod(0o4750)
    workspace.write_text("run.sh", "new")
    assert stat.S_IMODE(script.stat().st_mode) == 0o750


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_changed_file_keeps_its_owner(workspace, tmp_path):
    (tmp_path / "file").write_text("old")
    os.chown(tmp_path / "file", 65534, 65534)
    workspace.write_text("file", "new")
    assert (tmp_path / "file").stat().st_uid == 65534


def test_a_new_file_follows_the_umask(workspace, tmp_path):
    before = os.umask(0o027)
    try:
        workspace.write_text("new/file", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new/file").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o750


def test_another_hard_link_of_a_file_is_not_written_through(workspace, tmp_path):
    (tmp_path / "one").write_text("old")
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    workspace.write_text("one", "new")
    assert (tmp_path / "two").read_text() == "old"


@pytest.mark.parametrize("operation", ["write", "delete", "move"])
def test_nothing_happens_where_the_content_is_not_what_was_expected(workspace, tmp_path, operation):
    (tmp_path / "file").write_text("someone else's")
    attempts = {
        "write": lambda expected: workspace.write_bytes("file", b"mine", expected=expected),
        "delete": lambda expected: workspace.delete("file", expected=expected),
        "move": lambda expected: workspace.move("file", "to", expected=expected),
    }
    with pytest.raises(ToolError, match="changed by someone else"):
        attempts[operation](sha("what I saw"))
    with pytest.raises(ToolError, match="made by someone else"):
        attempts[operation](None)
    assert (tmp_path / "file").read_text() == "someone else's"
    attempts[operation](sha("someone else's"))
    assert not (tmp_path / "file").exists() or (tmp_path / "file").read_text() == "mine"


def test_an_expected_file_that_is_gone_is_not_made_again(workspace, tmp_path):
    with pytest.raises(ToolError, match="removed meanwhile"):
        workspace.write_bytes("file", b"mine", expected=sha("x"))
    with pytest.raises(ToolError, match="does not exist"):
        workspace.write_bytes("folder/file", b"mine", expected=sha("x"))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_old_content_and_nothing_else(workspace, tmp_path):
    workspace.write_text("file", "old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # the kernel then fails as on a full disk
    try:
        with pytest.raises(ToolError, match="nothing was changed"):
            workspace.write_text("file", "x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "old"


def test_what_a_killed_write_left_long_ago_is_swept_and_nothing_else(workspace, tmp_path):
    old, young, other = (
        ".duckflow-00000000000000aa.tmp",
        ".duckflow-00000000000000bb.tmp",
        ".duckflow-x.tmp",
    )
    for name in (old, young, other):
        (tmp_path / name).write_text("x")
    os.utime(tmp_path / old, (0, 0))
    os.utime(tmp_path / other, (0, 0))
    assert [entry.path for entry in workspace.list().entries] == [other]
    workspace.write_text("file", "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([young, other, "file"])
    assert is_temporary(old)
    assert not is_temporary(other)


def test_move_never_overwrites(workspace, tmp_path):
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    (tmp_path / "folder").mkdir()
    for taken in ("b", "folder", "a"):
        with pytest.raises(ToolError, match="exists already"):
            workspace.move("a", taken)
    workspace.move("a", "new/deep/c")
    assert (tmp_path / "new/deep/c").read_text() == "a"
    assert (tmp_path / "b").read_text() == "b"
    with pytest.raises(ToolError, match=r"^a: does not exist"):
        workspace.move("a", "d")


@pytest.mark.parametrize("hard_links", [True, False])
def test_a_rename_without_the_kernels_help_overwrites_nothing_either(tmp_path, monkeypatch, hard_links):
    def no_link(*args, **kwargs):
        raise PermissionError(errno.EPERM, "this file system has no hard links")

    monkeypatch.setattr("sys.platform", "other")
    if not hard_links:
        monkeypatch.setattr(os, "link", no_link)
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    folder = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(FileExistsError):
        rename_to_new((folder, "a"), (folder, "b"))
    rename_to_new((folder, "a"), (folder, "c"))
    os.close(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "c"]


def test_delete_removes_files_only(workspace, tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(ToolError, match="link"):
        workspace.delete("link")
    workspace.delete("file")
    with pytest.raises(ToolError, match="does not exist"):
        workspace.delete("file")


def test_list_names_links_without_following_them(workspace, tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/deep.txt").write_text("12345")
    (tmp_path / "a/up").symlink_to("..")
    (tmp_path / "etc").symlink_to("/etc")
    found = workspace.list(depth=9)
    assert [(entry.path, entry.kind) for entry in found.entries] == [
        ("a", "folder"),
        ("a/b", "folder"),
        ("a/b/deep.txt", "file"),
        ("a/up", "link"),
        ("etc", "link"),
    ]
    assert found.complete
    assert [entry.path for entry in workspace.list("a", depth=1).entries] == ["a/b", "a/up"]


def test_list_stops_at_its_limit_with_the_upper_levels_first(workspace, tmp_path):
    for number in range(10):
        (tmp_path / f"folder{number}").mkdir()
        (tmp_path / f"folder{number}/file").write_text("")
    found = workspace.list(depth=5, limit=12)
    assert not found.complete
    assert len(found.entries) == 12
    assert {f"folder{number}" for number in range(10)} <= {entry.path for entry in found.entries}


def test_list_skips_names_and_survives_names_that_are_no_text(workspace, tmp_path):
    (tmp_path / "node_modules/x").mkdir(parents=True)
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff"))).write_text("")
    found = workspace.list(depth=3, skip={"node_modules"})
    assert [entry.path for entry in found.entries] == ["bad\udcff"]


def test_list_of_a_file_or_of_nothing_is_an_error(workspace, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolError, match="not a folder"):
        workspace.list("file")
    with pytest.raises(ToolError, match="does not exist"):
        workspace.list("nothing")


def test_nothing_stays_open(workspace, tmp_path):
    (tmp_path / "out").symlink_to("/etc")
    before = len(list(Path("/dev/fd").iterdir()))
    for path in ("a/b/c", "out/passwd", "a/b", "none", ".env"):
        for attempt in (workspace.read_text, workspace.delete, workspace.list, workspace.protection):
            try:
                workspace.write_text(path, "x")
                attempt(path)
            except ToolError:
                pass
    assert len(list(Path("/dev/fd").iterdir())) == before


def killed_at_the_exchange(act, save):
    """Let a process do something to a file while its user saves it, and kill it before it can compare."""
    child = os.fork()
    if child == 0:
        exchange, aside = atomic.put_in_place, atomic.move_aside

        def kill(_at):
            os.kill(os.getpid(), signal.SIGKILL)

        def put(new, target, _is_expected):
            save()
            return exchange(new, target, kill)

        def move(target, to, _is_expected):
            save()
            return aside(target, to, kill)

        atomic.put_in_place, atomic.move_aside = put, move
        try:
            act()
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


def test_a_save_at_the_moment_of_a_kill_comes_back_to_its_place(workspace, tmp_path):
    """SAFETY 11: the content of the user is then under a temporary name."""
    place = tmp_path / "sub" / "file"
    for act, left in (
        (lambda: workspace.write_text("sub/file", "ours"), "ours"),
        (lambda: workspace.delete("sub/file"), None),
    ):
        place.parent.mkdir(exist_ok=True)
        place.write_text("old")
        killed_at_the_exchange(act, lambda: place.write_text("MINE"))
        assert (place.read_text() if place.exists() else None) == left
        workspace.sweep("sub/other")
        assert [(path.name, path.read_text()) for path in place.parent.iterdir()] == [("file", "MINE")]


def test_what_a_killed_write_replaced_does_not_come_back(workspace, tmp_path):
    place = tmp_path / "file"
    for act, left in (
        (lambda: workspace.write_text("file", "ours"), ["file"]),
        (lambda: workspace.delete("file"), []),
    ):
        place.write_text("old")
        killed_at_the_exchange(act, lambda: None)
        workspace.sweep("file")
        assert [path.name for path in tmp_path.iterdir()] == left
        assert not left or place.read_text() == "ours"
