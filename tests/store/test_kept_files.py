"""Old file contents are stored once, within a limit, durably; damage stays local (SAFETY 11, 13)."""

import hashlib
import os
import stat

import pytest

from duckflow.domain.files.changes import FileChange
from duckflow.store import kept_files
from duckflow.store.kept_files import ChangeOwner, KeptFiles


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def replaced(data: bytes, path: str = "a") -> tuple[FileChange, dict[str, bytes]]:
    return FileChange(path=path, before=sha(data), after=sha(b"new")), {sha(data): data}


def mark(number: int, session: str = "s") -> ChangeOwner:
    return ChangeOwner(session, f"r{number}", f"a{number}")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "undo.db"


@pytest.fixture
def kept(path):
    made = KeptFiles(path, 100_000)
    yield made
    made.close()


def keep(kept: KeptFiles, number: int, data: bytes, session: str = "s") -> str:
    change, contents = replaced(data)
    kept.keep(mark(number, session), (change,), contents)
    return sha(data)


def test_content_comes_back_and_the_change_with_it(path, kept):
    data = bytes(range(256)) * 20
    digest = keep(kept, 1, data)
    again = KeptFiles(path, 100_000)
    assert again.content(digest) == data
    assert [change.before for change in again.changes("s", "a1")] == [digest]
    assert again.changes("s", "a2") == ()
    assert again.changes("other", "a1") == ()
    again.close()


def test_only_the_user_can_read_it(path, kept):
    keep(kept, 1, b"secret")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_nothing_is_opened_before_it_is_needed(path):
    kept = KeptFiles(path, 100)
    assert kept.changes("s", "a1") == ()
    kept.forget("s")
    kept.close()
    assert not path.exists()


def test_the_same_content_is_kept_once(path, kept):
    data = os.urandom(30_000)
    for number in range(20):
        keep(kept, number, data)
    kept.close()
    assert path.stat().st_size < 100_000


def test_the_oldest_requests_go_first_and_the_newest_always_stays(kept):
    digests = [keep(kept, number, os.urandom(40_000)) for number in range(5)]
    there = [kept.content(digest) is not None for digest in digests]
    assert there == [False, False, False, True, True]
    huge = keep(kept, 9, os.urandom(500_000))
    assert kept.content(huge) is not None
    assert kept.content(digests[-1]) is None


def test_with_a_limit_of_zero_changes_are_noted_without_content(path):
    kept = KeptFiles(path, 0)
    digest = keep(kept, 1, b"old")
    assert kept.content(digest) is None
    assert kept.changes("s", "a1")
    kept.close()


def test_what_a_session_kept_is_gone_from_the_file_when_it_is_forgotten(path, kept):
    keep(kept, 1, b"a password: " + b"hunter2 " * 10)
    other = keep(kept, 1, b"of another session", session="other")
    kept.forget("s")
    kept.close()
    raw = path.read_bytes()
    again = KeptFiles(path, 100_000)
    assert again.content(other) == b"of another session"
    assert again.changes("s", "a1") == ()
    again.close()
    assert b"hunter2" not in raw


def test_content_that_changed_while_it_was_copied_is_not_kept_under_a_wrong_name(kept):
    seen = {"a": (sha(b"seen"), 0o644), "b": (sha(b"right"), 0o600)}
    kept.take_snapshot("s", seen, {"a": b"changed meanwhile", "b": b"right"}.get)
    assert kept.content(sha(b"seen")) is None
    assert kept.snapshot("s") == {"b": (sha(b"right"), 0o600)}


def test_a_damaged_file_is_set_aside_and_said_and_work_goes_on(path, kept):
    digest = keep(kept, 1, os.urandom(50_000))
    kept.close()
    path.write_bytes(b"this is no database" * 1000)
    again = KeptFiles(path, 100_000)
    assert again.doubtful
    assert again.content(digest) is None
    keep(again, 2, b"new")
    again.close()
    (aside,) = [one for one in path.parent.iterdir() if ".damaged-" in one.name]
    assert aside.read_bytes().startswith(b"this is no database")


def test_a_result_is_kept_by_session_and_id_until_the_session_is_forgotten(path, kept):
    kept.keep_output("s", "e1", "first \ud800")
    kept.keep_output("s", "e1", "hunter2 " * 10)
    kept.keep_output("other", "e1", "その他")
    assert kept.output("s", "e1") == "hunter2 " * 10
    assert kept.output("s", "e2") is None
    kept.forget("s")
    assert kept.output("s", "e1") is None
    assert kept.output("other", "e1") == "その他"
    kept.close()
    assert b"hunter2" not in path.read_bytes()


def test_the_oldest_results_go_first(kept):
    for number in range(5):
        kept.keep_output("s", f"e{number}", os.urandom(20_000).hex())
    assert [kept.output("s", f"e{number}") is not None for number in range(5)] == [False] * 1 + [True] * 4


def test_no_file_is_made_to_look_for_a_result(path):
    kept = KeptFiles(path, 100)
    assert kept.output("s", "e1") is None
    assert not path.exists()


def test_the_oldest_pictures_give_way(kept, monkeypatch):
    monkeypatch.setattr(kept_files, "_PICTURE_BYTES", 25)
    digests = [kept.keep_picture("s", bytes([number]) * 10) for number in range(3)]
    assert [kept.picture(digest) is not None for digest in digests] == [False, True, True]


def test_with_a_limit_of_zero_no_result_is_kept(path):
    kept = KeptFiles(path, 0)
    kept.keep_output("s", "e1", "long")
    assert kept.output("s", "e1") is None
    kept.close()
