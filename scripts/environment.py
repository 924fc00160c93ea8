"""Installs the pinned requirements in .venv. Fast if nothing is to be done, and resumes after an
interruption.

A stamp in .venv, written last, holds a digest of all inputs. This script uses only the standard library and
Duckflow's catalogues, and runs on any Python from 3.11. It installs with uv if available and with pip
otherwise.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "duckflow-environment"
INSTALLING = VENV / "duckflow-installing"
PLACE = VENV / "duckflow-place"
"""Path at which the environment was created. Its scripts contain that path, so a move means a new one."""
NO_BUBBLEWRAP = VENV / "duckflow-no-bubblewrap"
"""Reason why bubblewrap could not be installed. Without this file, tests fail if bubblewrap is missing."""
MANAGERS = (
    ("apt-get", "install", "--yes", "bubblewrap"),
    ("dnf", "install", "--assumeyes", "bubblewrap"),
    ("pacman", "-S", "--noconfirm", "--needed", "bubblewrap"),
    ("apk", "add", "bubblewrap"),
    ("zypper", "--non-interactive", "install", "bubblewrap"),
)
PATIENCE_S = 300
SYSTEM_CERTIFICATES = {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}
"""Settings that make uv trust the system's certificates, for newer and older versions of uv."""
INCLUDED_IN = {"run": ("run", "dev"), "dev": ("dev",)}
"""Environments that serve a purpose: the developer's includes all that running needs."""

NEW_ENOUGH = "import sys; sys.exit(sys.version_info < (3, 11))"
WHOLE = """
import importlib.metadata, sys
for one in importlib.metadata.distributions():
    if one.files is None or not all(file.suffix == ".pyc" or file.locate().exists() for file in one.files):
        sys.exit(1)
"""


def main(purpose: str) -> None:
    """Prepare the environment, or exit with a sentence that says what to do."""
    with (ROOT / ".venv.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("setup.waiting")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not (is_ready(purpose) and works("-c", NEW_ENOUGH)):
            set_up(purpose)
        if not is_settled(purpose):
            install_bubblewrap()


def is_ready(purpose: str) -> bool:
    """Return True if the installed packages match the requirement files."""
    try:
        stamped = STAMP.read_text("utf-8")
    except OSError:
        return False
    return stamped in [digest(one) for one in INCLUDED_IN[purpose]]


def is_settled(purpose: str) -> bool:
    """Return True if bubblewrap is installed, not needed, or known not to be installable."""
    needed = purpose == "dev" and sys.platform.startswith("linux")
    return not needed or shutil.which("bwrap") is not None or NO_BUBBLEWRAP.exists()


def install_bubblewrap() -> None:
    """Install bubblewrap with the system's package manager if that needs no password, or record the
    failure."""
    say("setup.bubblewrap")
    may = [] if os.geteuid() == 0 else ["sudo", "-n"]
    manager = next((one for one in MANAGERS if shutil.which(one[0])), None)
    if manager is None or (may and not shutil.which("sudo")):
        reason = "no package manager that could be used here"
    elif tries([*may, *manager]) or (
        manager[0] == "apt-get" and tries([*may, "apt-get", "update"]) and tries([*may, *manager])
    ):
        return
    else:
        reason = f"{' '.join([*may, *manager])} failed"
    NO_BUBBLEWRAP.write_text(f"bubblewrap is not installed: {reason}\n", "utf-8")
    say("setup.no_bubblewrap", reason=reason)


def tries(command: Sequence[str]) -> bool:
    """Run a command without input and return True if it succeeds."""
    try:
        done = subprocess.run(
            command, check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def digest(purpose: str) -> str:
    """Return a digest of everything that decides what is installed and where."""
    content = hashlib.sha256(f"{purpose}\0{ROOT}\0".encode())
    for path in (ROOT / "requirements" / f"{purpose}.txt", ROOT / "pyproject.toml"):
        content.update(path.read_bytes() + b"\0")
    return content.hexdigest()


def set_up(purpose: str) -> None:
    """Install everything, and start over from scratch if an interrupted set-up left incomplete packages."""
    say("setup.start", folder=VENV.name)
    uv = shutil.which("uv")
    interrupted = INSTALLING.exists()
    STAMP.unlink(missing_ok=True)
    NO_BUBBLEWRAP.unlink(missing_ok=True)
    if not usable(uv):
        create(uv)
    install(uv, purpose)
    if interrupted and not works("-c", WHOLE):
        say("setup.again")
        create(uv)
        install(uv, purpose)
    INSTALLING.unlink()
    STAMP.write_text(digest(purpose), "utf-8")
    say("setup.ready")


def usable(uv: str | None) -> bool:
    """Return True if there is an environment that packages can be installed into."""
    moved = PLACE.exists() and PLACE.read_text("utf-8") != str(ROOT)
    return not moved and works("-c", NEW_ENOUGH) and (uv is not None or works("-m", "pip", "--version"))


def create(uv: str | None) -> None:
    """Create an empty environment, replacing an existing one."""
    if VENV.is_symlink() or VENV.is_file():
        VENV.unlink()
    say("setup.environment")
    shutil.rmtree(VENV, ignore_errors=True)
    if uv:
        must([uv, "venv", "--quiet", "--python", sys.executable, str(VENV)])
    else:
        must([sys.executable, "-m", "venv", str(VENV)])


def install(uv: str | None, purpose: str) -> None:
    """Install the pinned packages, each checked against its hash, then Duckflow from this folder."""
    say("setup.packages")
    PLACE.write_text(str(ROOT), "utf-8")
    INSTALLING.touch()
    if uv:
        command = [uv, "pip", "install", "--quiet", "--python", str(PYTHON)]
    else:
        command = [
            str(PYTHON),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-input",
        ]
    pins = str(ROOT / "requirements" / f"{purpose}.txt")
    must([*command, "--only-binary", ":all:", "--require-hashes", "-r", pins])
    must([*command, "--no-deps", "--no-build-isolation", "-e", str(ROOT)])


def works(*arguments: str) -> bool:
    """Return True if the environment's Python runs with these arguments and succeeds."""
    try:
        done = subprocess.run([PYTHON, *arguments], check=False, capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


def must(command: Sequence[str]) -> None:
    """Run a command that must succeed. Its output is shown only if it fails."""
    # uv brings its own certificates; those of a company network are only in the system's store.
    for environment in (os.environ, {**os.environ, **SYSTEM_CERTIFICATES}):
        done = subprocess.run(
            command, env=environment, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        if done.returncode == 0:
            return
    sys.stderr.write(done.stdout.decode(errors="replace"))
    say("setup.failed")
    sys.exit(1)


def say(key: str, **values: object) -> None:
    """Tell the user something on standard error, in their language."""
    if str(SOURCE) not in sys.path:
        sys.path.insert(0, str(SOURCE))
    from duckflow.i18n.catalogue import set_language_once, text  # noqa: PLC0415 - not installed yet

    set_language_once("", os.environ)
    sys.stderr.write(f"🦆 {text(key, **values)}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    if sys.argv[2:] == ["--check"]:
        sys.exit(not (is_ready(sys.argv[1]) and is_settled(sys.argv[1])))
    try:
        main(sys.argv[1])
    except KeyboardInterrupt:
        say("setup.interrupted")
        sys.exit(130)
