"""Rules for every test: a fresh home, no keys, no network but loopback, no missing text."""

import gc
import ipaddress
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import hypothesis
import pytest

from duckflow.i18n import catalogue
from fakes import known_sandbox
from fakes.home import forget_machine, move_into

_LOOPBACK_NAMES = ("", "localhost", "ip6-localhost")


def _keep_what_subprocesses_need() -> None:
    """Remember, before HOME changes, where pip's settings and the caches worth keeping really are."""
    home = Path.home()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    os.environ.setdefault("DUCKFLOW_TEST_CACHE", str(cache / "duckflow-tests"))
    os.environ.setdefault("PIP_CACHE_DIR", str(cache / "pip"))
    pip_files = [config / "pip" / "pip.conf", home / ".pip" / "pip.conf"]
    written = next((file for file in pip_files if file.is_file()), None)
    if written is not None:
        os.environ.setdefault("PIP_CONFIG_FILE", str(written))


def _keep_compiled_code() -> None:
    """Without it, each of the programs that tests start compiles all of the source again."""
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


_keep_what_subprocesses_need()
_keep_compiled_code()
forget_machine()
known_sandbox.remember_here()
gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones come first in every worker's share, or the others wait for the last of them."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    long = [item for item in items if item.get_closest_marker("long")]
    others = [item for item in items if not item.get_closest_marker("long")]
    edges = [n * len(others) // workers for n in range(workers + 1)]
    shares = [(*long[n::workers], *others[edges[n] : edges[n + 1]]) for n in range(workers)]
    items[:] = [item for share in shares for item in share]


def pytest_collection_finish() -> None:
    """Exclude everything imported so far from garbage collection, which would search it each time."""
    gc.freeze()
    gc.enable()


hypothesis.settings.register_profile(
    "no clock", max_examples=25, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("no clock")


class NetworkUsed(AssertionError):
    """A test tried to leave this machine."""


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield unused names; `mktemp` would list all existing folders for each test."""
    around = tmp_path_factory.mktemp("homes", numbered=False)
    return (around / str(number) for number in count())


@pytest.fixture(autouse=True)
def own_home(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh home; nothing of the developer's own set-up reaches a test."""
    home = next(homes)
    home.mkdir()
    move_into(home, monkeypatch)
    return home


def _leaves_machine(host: object) -> bool:
    name = host.decode() if isinstance(host, bytes) else str(host or "")
    if name in _LOOPBACK_NAMES:
        return False
    try:
        return not ipaddress.ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        return True


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Only loopback can be reached. Trying to leave fails the test even if the code swallows the error."""
    tried: list[str] = []
    look_up = socket.getaddrinfo

    def refuse(host: object) -> None:
        if _leaves_machine(host):
            tried.append(str(host))
            raise NetworkUsed(f"a test tried to reach {host!r}; only loopback is open")

    def guarded(real):
        def connect(self: socket.socket, address):
            if self.family in (socket.AF_INET, socket.AF_INET6):
                refuse(address[0])
            return real(self, address)

        return connect

    def guarded_look_up(host, *args, **kwargs):
        refuse(host)
        return look_up(host, *args, **kwargs)

    monkeypatch.setattr(socket.socket, "connect", guarded(socket.socket.connect))
    monkeypatch.setattr(socket.socket, "connect_ex", guarded(socket.socket.connect_ex))
    monkeypatch.setattr(socket, "getaddrinfo", guarded_look_up)
    yield
    if tried:
        raise NetworkUsed(f"a test tried to reach {tried}; only loopback is open")


@pytest.fixture(autouse=True)
def whole_catalogue() -> Iterator[None]:
    """Each test starts in English, and a text that is missing, or a slot without a value, fails it."""
    catalogue.set_language("en")
    catalogue.take_gaps()
    yield
    missing = catalogue.take_gaps()
    assert not missing, f"gaps in the catalogue: {sorted(missing)}"


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """An empty folder on a disk; `tmp_path` may be in memory, where file systems behave differently."""
    with tempfile.TemporaryDirectory(prefix="pytest-") as made:
        yield Path(made).resolve()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder to work in, with room beside it."""
    work = tmp_path / "work"
    work.mkdir()
    return work
