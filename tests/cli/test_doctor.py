"""`duckflow doctor`: what it says and its exit code, in both languages, and that it changes nothing."""

import json
import os
import sys

import pytest
from typer.testing import CliRunner

from duckflow.cli.main import app
from duckflow.config.places import state_dir
from duckflow.i18n.catalogue import set_language
from duckflow.safety.sandbox import probe
from duckflow.safety.sandbox.view.levels import Sandbox

CHECKS = [
    *("version", "configuration", "model", "embedded", "sandbox", "state", "database", "language"),
    *("terminal", "git", "ripgrep", "language_servers"),
]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No search for an Ollama on this machine."""
    monkeypatch.setenv("DUCKFLOW_MODEL", "relay")


def doctor(*words):
    result = CliRunner().invoke(app, ["doctor", *words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout


def findings(*words):
    code, said = doctor("--json", *words)
    found = [json.loads(line) for line in said.splitlines()]
    return code, {one["check"]: one for one in found}


def test_N_everything_is_looked_at_one_line_each(folder):
    code, said = doctor("--workspace", str(folder))
    assert code == 0, said
    lines = [line for line in said.splitlines() if not line.startswith(" ")]
    assert len(lines) == len(CHECKS)
    assert all(line[0] in "✓!" for line in lines)


def test_N_as_json_each_line_is_an_object(folder):
    code, found = findings("--workspace", str(folder))
    assert code == 0
    assert list(found) == CHECKS
    assert {one["state"] for one in found.values()} <= {"ok", "lacking"}
    assert found["model"]["found"] == "relay (as you chose)"
    assert "700" in found["state"]["found"]


def test_K7_it_tells_the_models_window_and_its_origin(folder, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    _, found = findings("--workspace", str(folder), "--model", "openai:gpt-4o")
    assert found["model"]["found"].endswith("window: 128,000 tokens, known by the model's name")
    monkeypatch.setenv("DUCKFLOW_LLM__WINDOW", "50000")
    _, found = findings("--workspace", str(folder), "--model", "openai:gpt-4o")
    assert found["model"]["found"].endswith("window: 50,000 tokens, set by `llm.window`")


def test_M4_it_speaks_japanese(folder):
    set_language("ja")
    code, said = doctor("--workspace", str(folder))
    assert code == 0
    assert "サンドボックス" in said
    assert "日本語" in said


def test_what_can_be_better_is_a_warning_with_advice(folder, monkeypatch):
    sandbox = Sandbox(level="landlock", reason="sandbox.no_bubblewrap", advice="sandbox.advice_install")

    async def find(*_: object) -> Sandbox:
        return sandbox

    monkeypatch.setattr(probe.PROBE, "find", find)
    code, found = findings("--workspace", str(folder))
    assert code == 0
    assert found["sandbox"]["state"] == "lacking"
    assert "bubblewrap" in found["sandbox"]["advice"]
    shown = doctor("--workspace", str(folder))[1]
    assert "! Sandbox: Commands run inside Landlock" in shown
    assert "    → Install bubblewrap" in shown


def test_O7_a_folder_without_copies_is_told_with_the_reason(folder, monkeypatch):
    """Commands of root have no rights in a folder of another user, so they can't work on a copy of it."""

    async def find(*_: object) -> Sandbox:
        return Sandbox(level="namespaces", reason="sandbox.namespaces")

    monkeypatch.setattr(probe.PROBE, "find", find)
    _, found = findings("--workspace", str(folder))
    assert found["sandbox"]["state"] == "lacking"
    assert "another file system" in found["sandbox"]["advice"]
    if os.geteuid() == 0:
        os.chown(folder, 54_321, 54_321)
        _, found = findings("--workspace", str(folder))
        assert "because it belongs to 54321" in found["sandbox"]["advice"]


def test_a_damaged_database_is_broken_and_is_left_alone(folder):
    path = state_dir() / "duckflow.db"
    path.write_bytes(b"not a database at all " * 100)
    code, found = findings("--workspace", str(folder))
    assert code == 1
    assert found["database"]["state"] == "broken"
    assert path.read_bytes() == b"not a database at all " * 100
    assert "✗ Database" in doctor("--workspace", str(folder))[1]


def test_a_state_folder_others_can_read_is_broken(folder, tmp_path, monkeypatch):
    place = tmp_path / "state"
    place.mkdir(mode=0o755)
    place.chmod(0o755)
    monkeypatch.setenv("DUCKFLOW_STATE_DIR", str(place))
    code, found = findings("--workspace", str(folder))
    assert (code, found["state"]["advice"]) == (1, f"chmod 700 {place}")


def test_a_mistake_in_the_settings_is_broken_and_the_rest_is_still_told(folder, own_home):
    file = own_home / ".config" / "duckflow" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("mood = 'ask'\n")
    code, found = findings("--workspace", str(folder))
    assert code == 1
    assert found["configuration"]["state"] == "broken"
    assert list(found) == CHECKS


def test_no_model_is_loaded(folder):
    doctor("--workspace", str(folder))
    assert "xllamacpp" not in sys.modules
