"""Facts that the program finds about the files that a request changed (J2)."""

import os

import pytest

from duckflow.evaluation.facts import (
    MOST_FILES,
    Fact,
    as_evidence,
    check_files,
    verification_of,
    without_comments,
)
from duckflow.safety.files.workspace import READ_CAP, Workspace
from fakes.rows import every_row


@pytest.fixture
def workspace(tmp_path):
    opened = Workspace(tmp_path)
    yield opened
    opened.close()


def checked(workspace, path, content=None, **options):
    if content is not None:
        data = content if isinstance(content, bytes) else content.encode()
        target = workspace.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    (fact,) = check_files(workspace, [path], **options)
    return fact


@pytest.mark.parametrize(
    ("path", "content", "state", "detail"),
    [
        ("a.py", "x = 1\n", "parses", "there, 1 lines, parses as Python"),
        ("a.py", 'x = "\\d"\n', "parses", "parses as Python"),
        ("a.py", "def f(:\n", "broken", "does not parse as Python: line 1: "),
        ("a.py", "x = 1\n    y = 2\n", "broken", "line 2: unexpected indent"),
        ("a.py", "x = '" + "\0" + "'\n", "broken", "does not parse as Python"),
        ("a.pyi", "def f() -> int: ...\n", "parses", "parses as Python"),
        ("a.py", "\ufeffx = 1\n", "parses", "parses as Python"),
        ("a.json", '{"a": [1, 2]}', "parses", "parses as JSON"),
        ("a.json", '{"a": 1,\n // why\n "b": "// no /* comment",}\n', "parses", "JSON with comments"),
        ("a.json", '{"a": }', "broken", "does not parse as JSON: Expecting value"),
        ("a.json", "[" * 100_000, "broken", "does not parse as JSON"),
        ("a.py", "(" * 5_000, "broken", "does not parse as Python"),
        ("a.toml", "[a]\nb = 1\n", "parses", "parses as TOML"),
        ("a.toml", "[a\n", "broken", "does not parse as TOML"),
        ("A.JSON", "{", "broken", "JSON"),
        ("notes.md", "# Hello\n\nWorld", "readable", "there, 3 lines"),
        ("Makefile", "all:\n", "readable", "there, 1 lines"),
        ("日本.txt", "こんにちは\n", "readable", "there, 1 lines"),
        ("a.py", "", "empty", "there, empty"),
        ("a.txt", " \n\n", "empty", "there, empty"),
        ("a.png", b"\x89PNG\xff\x00", "unread", "6 bytes, not UTF-8 text"),
    ],
)
def test_a_file_exists_and_parses_or_the_reason_is_said(workspace, path, content, state, detail):
    fact = checked(workspace, path, content)
    assert fact.state == state
    assert detail in fact.detail
    assert fact.good == (state != "broken")


def test_the_evidence_says_what_the_file_holds_now(workspace):
    fact = checked(workspace, "src/a.py", "x = 1\n")
    assert fact.text == "check of src/a.py: there, 1 lines, parses as Python\nx = 1"


def test_nothing_is_imported_or_run(workspace):
    fact = checked(workspace, "a.py", "open('made', 'w')\nraise SystemExit(1)\n")
    assert fact.good
    assert not (workspace.root / "made").exists()


def test_what_is_not_there_is_said_and_what_was_to_go_is_gone(workspace):
    assert checked(workspace, "a.py").state == "missing"
    assert not checked(workspace, "a.py").good
    gone = checked(workspace, "a.py", removed={"a.py"})
    assert (gone.state, gone.good) == ("gone", True)
    left = checked(workspace, "a.py", "x = 1\n", removed={"a.py"})
    assert (left.state, left.good, left.content) == ("left", False, "")


def test_what_is_no_file_of_the_workspace_is_not_looked_into(workspace, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "secret.py"
    outside.write_text("x = 1\n")
    (workspace.root / "link.py").symlink_to(outside)
    (workspace.root / "folder.py").mkdir()
    os.mkfifo(workspace.root / "pipe.py")
    for path in ("link.py", "folder.py", "pipe.py", "../a.py", ""):
        fact = checked(workspace, path)
        assert (fact.state, fact.content) == ("missing", ""), path


def test_a_very_large_file_is_there_and_not_read(workspace):
    fact = checked(workspace, "a.json", b"[" * (READ_CAP + 1))
    assert (fact.state, fact.content) == ("unread", "")


def test_long_content_keeps_its_two_ends(workspace):
    fact = checked(workspace, "a.txt", "begin\n" + "x" * 50_000 + "\nend\n")
    assert len(fact.content) < 7_000
    assert fact.content.startswith("begin")
    assert fact.content.endswith("end")


@pytest.mark.parametrize("path", [".env", "config/.env.local", "id_rsa", "certs/a.pem", ".ssh/config"])
def test_secrets_are_not_shown_to_an_evaluator(workspace, path):
    fact = checked(workspace, path, "KEY=hunter2\n")
    assert (fact.state, fact.content) == ("readable", "")
    assert "hunter2" not in fact.text


def test_a_link_to_a_secret_is_no_way_around_that(workspace):
    checked(workspace, ".env", "KEY=hunter2\n")
    (workspace.root / "notes.txt").symlink_to(".env")
    assert "hunter2" not in checked(workspace, "notes.txt").text


def test_other_protected_files_are_shown(workspace):
    assert "on: push" in checked(workspace, ".github/workflows/ci.yml", "on: push\n").text


def test_many_files_are_bounded_and_each_is_looked_at_once(workspace):
    paths = [f"f{n}.txt" for n in range(MOST_FILES + 5)]
    facts = check_files(workspace, [*paths, paths[-1]])
    assert len(facts) == MOST_FILES
    assert facts[-1].path == paths[-1]


def test_facts_become_evidence_with_ids_in_order():
    facts = [Fact(path=path, state="parses", detail="fine") for path in ("a", "b")]
    found = as_evidence(facts, 4)
    assert [(one.evidence_id, one.kind, one.current) for one in found] == [
        ("e4", "check", True),
        ("e5", "check", True),
    ]
    assert found[0].text == "check of a: fine"


@every_row(
    ("states", "command", "verification"),
    [
        ((), None, "none"),
        (("parses", "gone", "empty", "readable", "unread"), None, "none"),
        (("parses",), True, "passed"),
        (("parses",), False, "failed"),
        (("parses", "broken"), None, "failed"),
        (("broken",), True, "passed"),
        (("broken",), False, "failed"),
        (("missing",), None, "failed"),
        (("missing", "broken"), True, "failed"),
        (("left",), True, "failed"),
    ],
)
def test_what_the_checks_say_together_J3(states, command, verification):
    facts = [Fact(path="a", state=state) for state in states]
    assert verification_of(facts, command_passed=command) == verification


@every_row(
    ("text", "plain"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('{"a": "x // y", /* z */ "b": 2}', '{"a": "x // y",   "b": 2}'),
        ('["\\"// no", 1,]', '["\\"// no", 1]'),
        ('{"a": ",]"}', '{"a": ",]"}'),
        ("/* never closed", " "),
    ],
)
def test_comments_go_and_strings_stay(text, plain):
    assert without_comments(text) == plain


@every_row("text", ["/*" * 200_000, '"\\' * 200_000, '"\\"' * 200_000, "," * 200_000, ",\n " * 90_000])
def test_no_text_makes_the_search_for_comments_slow(text):
    assert len(without_comments(text)) <= len(text)
