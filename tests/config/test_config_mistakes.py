"""M5: every mistake in a configuration leads to one sentence with place, cause and remedy."""

import os
from pathlib import Path

import pytest

from duckflow.config.loading import load, user_file
from duckflow.config.toml_file import MAX_BYTES, line_of
from duckflow.domain.errors import UsageError
from duckflow.i18n.catalogue import text
from fakes.rows import every_row


def mistake(workspace: Path, content: str | bytes, **how) -> UsageError:
    """Return the error that loading this user's file raises."""
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_bytes(content if isinstance(content, bytes) else content.encode())
    return refused(workspace, **how)


def refused(workspace: Path, *, environ=None, flags=None) -> UsageError:
    with pytest.raises(UsageError) as caught:
        load(workspace, environ=environ or {}, flags=flags)
    assert text(caught.value.key, **caught.value.values)
    return caught.value


def test_an_unknown_key_is_named_with_its_line_and_the_nearest(tmp_path):
    error = mistake(tmp_path, '# llm.modle\nmode = "ask"\n\n[llm]\nfast = """\nmodle = 3\n"""\nmodle = "x"\n')
    assert error.key == "config.unknown_key_near"
    assert error.values == {"where": f"{user_file()}:8", "setting": "llm.modle", "nearest": "llm.model"}


@every_row(
    ("given", "key", "values"),
    [
        (
            {"shell.netwrk": True},
            "config.unknown_key_near",
            {"setting": "shell.netwrk", "nearest": "shell.network"},
        ),
        ({"shell": {"netwrk": True}}, "config.unknown_key_near", {"setting": "shell.netwrk"}),
        ({"shell.network": "maybe"}, "config.not_one_of", {"found": '"maybe"'}),
        ({"mode": Path("x")}, "config.not_one_of", {"setting": "mode"}),
    ],
)
def test_a_mistake_of_a_program_is_found_in_its_settings(tmp_path, given, key, values):
    with pytest.raises(UsageError) as caught:
        load(tmp_path, environ={}, given=given)
    assert caught.value.key == key
    assert caught.value.values.items() >= {"where": "settings", **values}.items()


def test_a_program_gives_settings_by_key_or_as_tables(tmp_path):
    loaded = load(
        tmp_path, environ={}, given={"shell": {"network": True}, "llm.model": "openai:m", "mode": None}
    )
    assert (loaded.settings.shell.network, loaded.settings.llm.model) == (True, "openai:m")
    assert loaded.sources["shell.network"].kind == "program"
    assert loaded.sources["mode"].kind == "default"


@every_row(
    ("content", "key", "line"),
    [
        ("a = 1\n[llm]\nb = 2\n", "llm.b", 3),
        ("llm.b = 2", "llm.b", 1),
        ("llm = { c = 1,\tb = 2 }", "llm.b", 1),
        ("x = [\n1,\n2]\nb = [\n'b'\n]\n", "b", 4),
        ('"b" = 1', "b", 1),
        ("a = 1\r\nb = 2\r\n", "b", 2),
        ('"\\u0062" = 1\nx = "b"', "b", None),
        ("a = 1", "b", None),
        ("a = 1\n" * 1 + "#" * 30_000 + "\nb = 1", "b", None),
    ],
)
def test_the_line_of_a_key_is_found_or_left_out(content, key, line):
    assert line_of(key, content) == line


@every_row(
    ("content", "key", "values"),
    [
        ("llm = 3", "config.not_table", {"setting": "llm", "found": "3"}),
        ("mode = 'x'", "config.not_one_of", {"found": '"x"', "choices": '"plan", "ask", "edits", "auto"'}),
        ("[mode]\na = 1", "config.not_one_of", {"found": '{"a": 1}'}),
        ("llm.small = 3", "config.not_one_of", {"choices": 'true, false, "auto"'}),
        ("llm.native_tools = 'yes'", "config.not_one_of", {"choices": 'true, false, "auto"'}),
        ("llm.max_tokens = '3'", "config.not_whole_number", {"found": '"3"'}),
        ("llm.max_tokens = 3.0", "config.not_whole_number", {"found": "3.0"}),
        ("llm.max_tokens = true", "config.not_whole_number", {"found": "true"}),
        ("llm.max_tokens = 0", "config.out_of_range", {"bound": "≥ 1", "found": "0"}),
        ("llm.max_retries = 99", "config.out_of_range", {"bound": "≤ 20"}),
        ("llm.window = 0", "config.out_of_range", {"bound": "≥ 512", "found": "0"}),
        ("llm.window = -1", "config.out_of_range", {"bound": "≥ 512", "found": "-1"}),
        ("llm.window = 10_000_001", "config.out_of_range", {"bound": "≤ 10000000"}),
        ("llm.window = 'large'", "config.not_whole_number", {"found": '"large"'}),
        ("llm.time_limit_s = 0", "config.out_of_range", {"bound": "> 0.0"}),
        ("llm.time_limit_s = nan", "config.not_number", {"setting": "llm.time_limit_s"}),
        ("llm.time_limit_s = '1'", "config.not_number", {"found": '"1"'}),
        ("llm.model = 1", "config.not_text", {"found": "1"}),
        ("llm.model = 2024-01-01", "config.not_text", {"found": "2024-01-01"}),
        ("llm.model = ''", "config.empty_value", {"setting": "llm.model"}),
        (f"llm.model = '{'x' * 501}'", "config.too_long", {"setting": "llm.model"}),
        ("rules.files = 'x'", "config.not_list", {"found": '"x"'}),
        ("zzzz = 1", "config.unknown_key", {"setting": "zzzz"}),
        ("mode = " + "[" * 300 + "]" * 300, "config.not_one_of", {"setting": "mode"}),
    ],
)
def test_a_wrong_value_is_named_with_what_was_expected_and_found(tmp_path, content, key, values):
    error = mistake(tmp_path, content)
    assert error.key == key
    assert error.values | values == error.values
    assert str(error.values["where"]).startswith(str(user_file()))


@every_row(
    ("content", "key", "values"),
    [
        ("mode = ", "config.broken", {"line": 1, "column": 8}),
        ("mode = 'ask'\nx = [1,\n\n2", "config.broken", {"line": 4, "column": 2}),
        ("mode = 'ask'\nmode = 'ask'", "config.broken", {"line": 2}),
        ("a = " + "1" * 5000, "config.broken", {"line": 1}),
        ("a = " + "[" * 100_000, "config.too_deep", {}),
        (b"mode = 'ask'\n# caf\xe9", "config.not_utf8", {"line": 2}),
        ("#" * (MAX_BYTES + 1), "config.too_large", {"limit": MAX_BYTES}),
    ],
)
def test_a_broken_file_is_named_with_the_place(tmp_path, content, key, values):
    error = mistake(tmp_path, content)
    assert error.key == key
    assert error.values | values == error.values
    assert error.values["path"] == user_file()


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    user_file().parent.mkdir(parents=True)
    user_file().write_bytes(b"\xef\xbb\xbfmode = 'plan'\r\n")
    assert load(tmp_path, environ={}).settings.mode == "plan"


@every_row("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_something_else_in_the_files_place_is_refused_without_waiting(tmp_path, make):
    user_file().parent.mkdir(parents=True)
    make(user_file())
    assert refused(tmp_path).key == "config.not_a_file"


def test_a_file_that_cannot_be_read_says_why(tmp_path):
    user_file().parent.mkdir(parents=True)
    user_file().symlink_to(user_file())
    error = refused(tmp_path)
    assert error.key == "config.unreadable"
    assert error.values["reason"] == os.strerror(40 if os.uname().sysname == "Linux" else 62)


def test_a_value_that_is_overridden_is_still_checked(tmp_path):
    assert mistake(tmp_path, "mode = 3", flags={"mode": "ask"}).key == "config.not_one_of"


@every_row(
    ("environ", "key", "values"),
    [
        ({"DUCKFLOW_LLM__MODLE": "x"}, "config.unknown_variable_near", {"nearest": "DUCKFLOW_MODEL"}),
        ({"DUCKFLOW_LLM__FASTT": "x"}, "config.unknown_variable_near", {"nearest": "DUCKFLOW_LLM__FAST"}),
        ({"DUCKFLOW_QQ__WW": "x"}, "config.unknown_variable", {"variable": "DUCKFLOW_QQ__WW"}),
        (
            {"DUCKFLOW_LLM__MAX_TOKENS": "lots"},
            "config.not_whole_number",
            {"where": "DUCKFLOW_LLM__MAX_TOKENS"},
        ),
        ({"DUCKFLOW_LLM__MAX_TOKENS": "1\nx = 2"}, "config.not_whole_number", {"found": '"1\\nx = 2"'}),
        ({"DUCKFLOW_MODE": "yolo"}, "config.not_one_of", {"where": "DUCKFLOW_MODE", "found": '"yolo"'}),
        ({"DUCKFLOW_MODEL": "a\udc80"}, "config.bad_value", {"found": '"a\\udc80"'}),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(tmp_path, environ, key, values):
    error = refused(tmp_path, environ=environ)
    assert error.key == key
    assert error.values | values == error.values


def test_a_mistake_in_a_flag_names_the_flag(tmp_path):
    error = refused(tmp_path, flags={"mode": "yolo"})
    assert (error.key, error.values["where"]) == ("config.not_one_of", "--mode")


def test_nothing_in_a_sentence_acts_on_the_terminal(tmp_path):
    error = mistake(tmp_path, '"\\u001b[31m\\u202ered" = 1')
    assert text(error.key, **error.values).isprintable()
    error = mistake(tmp_path, 'mode = "\\u001b[31m\\u202e"')
    assert text(error.key, **error.values).isprintable()
