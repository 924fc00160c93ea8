"""Folders for state, configuration and cache: their paths, permissions and errors."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from duckflow.config import places
from duckflow.domain.errors import UserError
from fakes.rows import every_row


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_places_are_in_the_users_home_by_default(own_home):
    for place in (places.state_dir(), places.config_dir(), places.cache_dir()):
        assert place.is_relative_to(own_home)
        assert place.name == "duckflow"


@pytest.mark.parametrize(
    ("variable", "place"),
    [
        ("DUCKFLOW_STATE_DIR", places.state_dir),
        ("DUCKFLOW_CONFIG_DIR", places.config_dir),
        ("DUCKFLOW_CACHE_DIR", places.cache_dir),
    ],
)
def test_a_variable_moves_each_place(tmp_path, monkeypatch, own_home, variable, place):
    monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
    assert place() == tmp_path / "elsewhere"
    monkeypatch.setenv(variable, "~/mine")
    assert place() == own_home / "mine"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, "near")
    assert place() == tmp_path / "near"


def test_state_is_created_for_the_user_alone(tmp_path, monkeypatch):
    assert mode(places.state_dir()) == 0o700
    monkeypatch.setenv("DUCKFLOW_STATE_DIR", str(tmp_path / "deep" / "state"))
    assert mode(places.state_dir()) == 0o700


def test_a_state_folder_left_open_is_closed_but_a_given_one_is_left_as_it_is(tmp_path, monkeypatch):
    places.state_dir().chmod(0o755)
    assert mode(places.state_dir()) == 0o700
    tmp_path.chmod(0o755)
    monkeypatch.setenv("DUCKFLOW_STATE_DIR", str(tmp_path))
    assert mode(places.state_dir()) == 0o755


def test_configuration_is_not_created():
    assert not places.config_dir().exists()


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DUCKFLOW_STATE_DIR", str(tmp_path / "file" / "state"))
    with pytest.raises(UserError) as caught:
        places.state_dir()
    assert caught.value.key == "places.cannot_create"
    assert caught.value.values["reason"] == os.strerror(20)


@every_row("module", ["duckflow.config.places", "duckflow.i18n.catalogue"])
def test_what_help_needs_does_not_import_pydantic(module):
    program = f"import sys, {module}; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
