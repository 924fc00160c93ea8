"""M5: sources of settings, their precedence, and the limits of a project."""

from pathlib import Path

import pytest

from duckflow.config.keys import leaves, nearest, variable_for
from duckflow.config.loading import SettingSource, load, rows, user_file
from duckflow.config.project import PROJECT_MAY_SET
from duckflow.config.settings import Settings
from duckflow.domain.errors import UsageError
from duckflow.domain.modes import MODES
from duckflow.i18n.catalogue import text
from fakes.rows import every_row


def write_user(content: str | bytes) -> Path:
    """Write the user's configuration file."""
    path = user_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def write_project(workspace: Path, content: str) -> Path:
    path = workspace / "duckflow.toml"
    path.write_text(content, "utf-8")
    return path


def refusal(workspace: Path, **how) -> UsageError:
    """Return the error that loading raises, after checking that its sentence has all values."""
    with pytest.raises(UsageError) as caught:
        load(workspace, environ=how.pop("environ", {}), **how)
    assert text(caught.value.key, **caught.value.values)
    return caught.value


def test_without_any_source_the_defaults_hold(tmp_path):
    loaded = load(tmp_path, environ={})
    assert loaded.settings == Settings()
    assert set(loaded.sources.values()) == {SettingSource(kind="default")}
    assert loaded.notices == ()


def test_M5_each_source_beats_the_one_before(tmp_path):
    key, loops = "duck_pacemaker.dynamic_limits.max_loops", "[duck_pacemaker.dynamic_limits]\nmax_loops = "
    seen = [load(tmp_path, environ={}).settings.duck_pacemaker.dynamic_limits.max_loops]
    write_user(loops + "19")
    seen.append(load(tmp_path, environ={}).settings.duck_pacemaker.dynamic_limits.max_loops)
    write_project(tmp_path, loops + "18")
    kinds = []
    for environ, flags in (({}, {}), ({variable_for(key): "30"}, {}), ({variable_for(key): "30"}, {key: 40})):
        loaded = load(tmp_path, trusted=True, environ=environ, flags=flags)
        seen.append(loaded.settings.duck_pacemaker.dynamic_limits.max_loops)
        kinds.append(loaded.sources[key])
    assert seen == [20, 19, 18, 30, 40]
    assert kinds == [
        SettingSource(kind="project", where=str(tmp_path / "duckflow.toml")),
        SettingSource(kind="environment", where="DUCKFLOW_DUCK_PACEMAKER__DYNAMIC_LIMITS__MAX_LOOPS"),
        SettingSource(kind="flag", where="--max-loops"),
    ]


def test_a_flag_that_was_not_given_changes_nothing(tmp_path):
    write_user('mode = "edits"')
    loaded = load(tmp_path, environ={}, flags={"mode": None})
    assert loaded.settings.mode == "edits"
    assert loaded.sources["mode"].kind == "user"


def test_the_project_of_an_untrusted_folder_is_named_and_not_even_parsed(tmp_path):
    path = write_project(tmp_path, "this is not TOML")
    loaded = load(tmp_path, environ={})
    assert loaded.settings == Settings()
    assert [notice.key for notice in loaded.notices] == ["config.project_not_trusted"]
    assert str(path) in text(loaded.notices[0].key, **loaded.notices[0].values)


@every_row("user", MODES)
@every_row("project", MODES)
def test_M5_a_project_can_make_the_mode_stricter_and_never_looser(tmp_path, user, project):
    write_user(f'mode = "{user}"')
    write_project(tmp_path, f'mode = "{project}"')
    loaded = load(tmp_path, trusted=True, environ={})
    looser = MODES.index(project) > MODES.index(user)
    assert loaded.settings.mode == (user if looser else project)
    assert [notice.key for notice in loaded.notices] == ["config.project_looser"] * looser
    assert loaded.sources["mode"].kind == ("user" if looser else "project")
    for notice in loaded.notices:
        assert f"{tmp_path / 'duckflow.toml'}:1" in text(notice.key, **notice.values)


def test_M5_a_project_can_lower_the_loops_and_never_raise_them(tmp_path):
    write_project(tmp_path, "[duck_pacemaker.dynamic_limits]\nmax_loops = 21")
    loaded = load(tmp_path, trusted=True, environ={})
    assert loaded.settings.duck_pacemaker.dynamic_limits.max_loops == 20
    assert len(loaded.notices) == 1


BOUNDS = [key for key, way in PROJECT_MAY_SET.items() if way == "lower" and leaves()[key].default is not True]


def test_M5_L2_a_project_can_only_switch_memory_off(tmp_path):
    write_project(tmp_path, "memory.enabled = false")
    assert not load(tmp_path, trusted=True, environ={}).settings.memory.enabled
    write_user("memory.enabled = false")
    write_project(tmp_path, "memory.enabled = true")
    loaded = load(tmp_path, trusted=True, environ={})
    assert not loaded.settings.memory.enabled
    assert [notice.key for notice in loaded.notices] == ["config.project_looser"]


@every_row("key", sorted(BOUNDS))
def test_M5_a_project_can_lower_what_bounds_the_work_and_never_raise_it(tmp_path, key):
    default = leaves()[key].default
    lower, higher = (False, True) if isinstance(default, bool) else (default - 1, default + 1)
    for wanted, loosens in ((lower, False), (higher, True)):
        write_project(tmp_path, f"{key} = {str(wanted).lower()}")
        loaded = load(tmp_path, trusted=True, environ={})
        now = {row.key: row.value for row in rows(loaded)}[key]
        assert now == str(default if loosens else wanted).lower()
        assert [notice.key for notice in loaded.notices] == ["config.project_looser"] * loosens


def test_every_setting_a_project_may_set_exists():
    assert set(PROJECT_MAY_SET) <= set(leaves())


def test_the_user_can_loosen_by_flag_what_the_project_tightened(tmp_path):
    write_project(tmp_path, 'mode = "plan"')
    assert load(tmp_path, trusted=True, environ={}, flags={"mode": "auto"}).settings.mode == "auto"


EXAMPLES = {
    "llm.window": "131072",
    "llm.embedded.threads": "2",
    "duck_pacemaker.budget.max_cost_usd": "1.0",
    "duck_pacemaker.budget.max_tokens": "1000",
    "shell.tokens": '{ "a.example" = "TOKEN" }',
    "code.servers": '{ zls = { command = ["zls"], suffixes = [".zig"] } }',
    "transitions.permitted": "{ DONE = [] }",
    "transitions.on_error": "{ DONE = [] }",
}
"""Values for settings without a default that are not text, or whose default takes several lines."""


@every_row("key", sorted(set(leaves()) - set(PROJECT_MAY_SET)))
def test_M5_everything_else_is_refused_from_a_project_with_the_users_file_named(tmp_path, key):
    now = {row.key: row.value for row in rows(load(tmp_path, environ={}))}
    value = EXAMPLES.get(key) or (now[key] if leaves()[key].default is not None else '"x"')
    write_project(tmp_path, f"{key} = {value}")
    error = refusal(tmp_path, trusted=True)
    assert error.key == "config.not_for_project"
    assert error.values["setting"] == key
    assert error.values["user_file"] == user_file()


def test_a_project_can_name_its_rules_files_but_none_outside_it(tmp_path):
    write_project(tmp_path, 'rules.files = ["docs/RULES.md"]')
    assert load(tmp_path, trusted=True, environ={}).settings.rules.files == ("docs/RULES.md",)
    for outside in ("../secret", "/etc/passwd", "a/../../b"):
        write_project(tmp_path, f'rules.files = ["{outside}"]')
        assert refusal(tmp_path, trusted=True).key == "config.outside_workspace"


@every_row(
    ("variable", "value", "key", "expected"),
    [
        ("DUCKFLOW_MODEL", "openai:gpt-9", "llm.model", "openai:gpt-9"),
        ("DUCKFLOW_MODEL", "7", "llm.model", "7"),
        ("DUCKFLOW_MODEL", '"quoted"', "llm.model", "quoted"),
        ("DUCKFLOW_MODEL", "1\nmode = 2", "llm.model", "1\nmode = 2"),
        ("DUCKFLOW_LLM__MODEL", "a:b", "llm.model", "a:b"),
        ("DUCKFLOW_LANGUAGE", "ja", "language", "ja"),
        ("DUCKFLOW_LLM__SMALL", "true", "llm.small", True),
        ("DUCKFLOW_LLM__SMALL", "auto", "llm.small", "auto"),
        ("DUCKFLOW_LLM__MAX_TOKENS", "100", "llm.max_tokens", 100),
        ("DUCKFLOW_LLM__TIME_LIMIT_S", "3", "llm.time_limit_s", 3.0),
        ("DUCKFLOW_LLM__EMBEDDED__PATH", "/m.gguf", "llm.embedded.path", Path("/m.gguf")),
        ("DUCKFLOW_RULES__FILES", '["A.md"]', "rules.files", ("A.md",)),
    ],
)
def test_a_variable_is_read_as_the_setting_needs_it(tmp_path, variable, value, key, expected):
    loaded = load(tmp_path, environ={variable: value})
    found: object = loaded.settings
    for part in key.split("."):
        found = getattr(found, part)
    assert found == expected
    assert loaded.sources[key] == SettingSource(kind="environment", where=variable)


def test_empty_and_unrelated_variables_are_no_settings(tmp_path):
    environ = {
        "DUCKFLOW_MODEL": "",
        "DUCKFLOW_LLM__FAST": "",
        "DUCKFLOW_STATE_DIR": "/x",
        "DUCKFLOW_OTHER": "y",
    }
    assert load(tmp_path, environ=environ).settings == Settings()


def test_the_long_variable_beats_the_short_one(tmp_path):
    loaded = load(tmp_path, environ={"DUCKFLOW_LLM__MODEL": "long", "DUCKFLOW_MODEL": "short"})
    assert loaded.settings.llm.model == "long"


def test_the_home_sign_in_a_path_is_the_users_home(tmp_path, own_home):
    write_user('llm.embedded.path = "~/m.gguf"')
    assert load(tmp_path, environ={}).settings.llm.embedded.path == own_home / "m.gguf"
    write_user('llm.embedded.path = "~no-such-user/m.gguf"')
    assert load(tmp_path, environ={}).settings.llm.embedded.path == Path("~no-such-user/m.gguf")


def test_rows_list_every_setting_with_value_and_source(tmp_path):
    write_user('llm.model = "日本語"')
    listed = {row.key: row for row in rows(load(tmp_path, environ={"DUCKFLOW_MODE": "plan"}))}
    assert list(listed) == list(leaves())
    assert listed["llm.model"].value == '"日本語"'
    assert listed["llm.model"].source.where == str(user_file())
    assert (listed["mode"].value, listed["mode"].source.kind) == ('"plan"', "environment")
    assert listed["llm.embedded.path"].value == ""


@every_row(
    ("key", "meant"),
    [("evaluation.done_at", None), ("prompt.base_tokens", None), ("modle", "mode"), ("model", "llm.model"),
     ("llm.modle", "llm.model"), ("lmm.fast", "llm.fast"),
     ("max_loop", "duck_pacemaker.dynamic_limits.max_loops"), ("zzzz", None)],
)  # fmt: skip
def test_the_nearest_key_is_the_one_that_was_meant(key, meant):
    assert nearest(key) == meant
