"""A small world around a workspace: secrets, bystanders and services that no command may reach."""

import os
import pty
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

SECRET = "vErY-SeCrEt"
PYTHON = os.path.realpath(sys.executable)


class World:
    """Folders outside /tmp, because a sandbox hides everything there anyway."""

    def __init__(self, base: Path, stack: ExitStack) -> None:
        self.mark = f"duckflow-{secrets.token_hex(6)}"
        self.workspace, self.home = base / "work", base / "home"
        self.state, self.outside = base / "home" / "state", base / "outside"
        self.copies = base / "copies"
        self._make_files()
        self.sleep = 1_000_000_000 + secrets.randbelow(1_000_000_000)
        self.bystander = self._start_bystander(stack)
        self.listeners = self._listen(stack, base)
        ours, theirs = pty.openpty()
        stack.callback(os.close, ours)
        stack.callback(os.close, theirs)
        self._pty, self._terminal = ours, os.ttyname(theirs)
        os.set_blocking(ours, False)
        self._before = self._look()
        self._unused = self._inside()

    def renew(self) -> None:
        """Restore the workspace if a command changed it, so that every attack meets the same files."""
        if self._inside() == self._unused:
            return
        for entry in os.scandir(self.workspace):
            shutil.rmtree(entry) if entry.is_dir(follow_symlinks=False) else Path(entry).unlink()
        self._make_workspace()
        self._before, self._unused = self._look(), self._inside()

    def fill(self, command: str, launcher: int) -> str:
        """Return an attack with the names of this world."""
        return command.format(
            home=self.home, state=self.state, outside=self.outside, python=PYTHON, mark=self.mark,
            bystander=self.bystander.pid, launcher=launcher, test=os.getpid(), sleep=self.sleep,
            port=self.listeners["port"].getsockname()[1], terminal=self._terminal, abstract=self.mark,
            service=self.listeners["service"].getsockname(), copies=self.copies,
        )  # fmt: skip

    def environment(self) -> dict[str, str]:
        """Return an environment as Duckflow itself would have."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "OPENAI_API_KEY": SECRET,
            "LANG": "C.UTF-8",
        }

    def damage(self) -> list[str]:
        """Return everything that was changed."""
        found = [] if self._look() == self._before else [f"files differ: {self._differences()}"]
        found += [f"{place}/{self.mark}" for place in _SHARED if Path(place, self.mark).exists()]
        found += [f"{name} was connected to" for name, one in self.listeners.items() if _heard(one)]
        if self.bystander.poll() is not None:
            found.append("the bystander was killed")
        if self.left_over():
            found.append(f"processes were left: {self.left_over()}")
        with suppress(BlockingIOError):
            found.append(f"typed into a terminal: {os.read(self._pty, 100)!r}")
        return found

    def escaped(self) -> list[str]:
        """Return the paths outside the workspace that were changed."""
        return [path for path in self._differences() if not path.startswith(f"{self.workspace}/")]

    def left_over(self) -> list[int]:
        """Return processes of this world's commands, by the time that only they sleep."""
        return processes_with(str(self.sleep))

    def _make_files(self) -> None:
        for path, text in {
            self.home / ".ssh" / "id_rsa": SECRET,
            self.home / "dotfiles" / "readme": "open",
            self.state / "duckflow.db": SECRET,
            self.outside / "file": "untouched",
        }.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (self.home / "dotfiles" / "key").symlink_to(self.home / ".ssh" / "id_rsa")
        self._make_workspace()

    def _make_workspace(self) -> None:
        for path, text in {
            self.workspace / "file": "text\n",
            self.workspace / "sub" / "file": "text\n",
            self.workspace / ".git" / "config": "[core]\n",
            self.workspace / ".git" / "hooks" / "old": "#!/bin/sh\n",
            self.workspace / ".vscode" / "tasks.json": "{}",
            self.workspace / "inner" / ".git" / "config": "[core]\n",
            self.workspace / "duckflow.toml": "",
        }.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (self.workspace / "link").symlink_to(self.outside)

    def _start_bystander(self, stack: ExitStack) -> "subprocess.Popen[bytes]":
        bystander = subprocess.Popen(
            ["sleep", "600"], env={"KEY": SECRET}, cwd=self.home, start_new_session=True
        )
        stack.callback(bystander.wait)
        stack.callback(bystander.send_signal, signal.SIGKILL)
        return bystander

    def _listen(self, stack: ExitStack, base: Path) -> dict[str, socket.socket]:
        kinds = {
            "port": (socket.AF_INET, ("127.0.0.1", 0)),
            "service": (socket.AF_UNIX, str(base / "service")),
            "abstract": (socket.AF_UNIX, f"\0{self.mark}"),
        }
        made = {}
        for name, (family, address) in kinds.items():
            made[name] = stack.enter_context(socket.socket(family))
            made[name].bind(address)
            made[name].listen()
            made[name].setblocking(False)
        datagrams = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        datagrams.bind(made["port"].getsockname())
        datagrams.setblocking(False)
        return {**made, "datagrams": datagrams}

    def _look(self) -> dict[str, tuple[object, ...]]:
        kept = [self.outside, self.home, *(self.workspace / name for name in (".git", ".vscode", "inner"))]
        kept += [self.workspace / "duckflow.toml"]
        kept += [self.workspace / "sub" / name for name in (".vscode", "planted")]
        found = [path for folder in kept if folder.exists() for path in (folder, *folder.rglob("*"))]
        return {str(path): _seen(path) for path in found}

    def _inside(self) -> dict[str, tuple[object, ...]]:
        return {str(path): _seen(path) for path in self.workspace.rglob("*")}

    def _differences(self) -> list[str]:
        now = self._look()
        return sorted(
            path for path in now.keys() | self._before.keys() if now.get(path) != self._before.get(path)
        )


_SHARED = ("/dev/shm", "/tmp", "/var/tmp", "/", "/etc", "/usr", "/usr/bin", "/var", "/opt")


@contextmanager
def world() -> Iterator[World]:
    """Make a world, and remove it at the end."""
    place = _place()
    base = Path(os.path.realpath(tempfile.mkdtemp(dir=place)))
    with ExitStack() as stack:
        stack.callback(_remove_empty, place)
        stack.callback(shutil.rmtree, base, ignore_errors=True)
        yield World(base, stack)


def _place() -> Path:
    """Return a folder for worlds, which can't be in /tmp, because a sandbox has a separate /tmp."""
    wished = Path(os.environ["DUCKFLOW_TEST_CACHE"])
    places = [wished, Path("/var/lib/duckflow-tests"), Path("/opt/duckflow-tests")]
    with suppress(KeyError):  # the account's own home, for an ordinary user whose HOME is in /tmp
        places.append(Path(pwd.getpwuid(os.getuid()).pw_dir, ".cache", "duckflow-tests"))
    for place in places:
        if not os.path.realpath(place).startswith(("/tmp/", "/var/tmp/", "/dev/", "/run/")):
            with suppress(OSError):
                place.mkdir(parents=True, exist_ok=True)
                return place
    raise RuntimeError(f"attacks need a folder outside /tmp: set DUCKFLOW_TEST_CACHE to one, not to {wished}")


def _remove_empty(place: Path) -> None:
    with suppress(OSError):
        place.rmdir()


def processes_with(word: str) -> list[int]:
    """Return living processes that have this word in their command line."""
    found, wanted = [], word.encode()
    for number in (entry.name for entry in os.scandir("/proc") if entry.name.isdigit()):
        try:
            with open(f"/proc/{number}/cmdline", "rb") as file:  # noqa: PTH123 - asked a thousand times
                line = file.read()
        except OSError:
            continue
        if wanted in line and wanted in line.split(b"\0"):
            found.append(int(number))
    return found


def _seen(path: Path) -> tuple[object, ...]:
    status = path.lstat()
    text = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    return (status.st_mode, text, status.st_mtime_ns if text else 0)


def _heard(listener: socket.socket) -> bool:
    try:
        if listener.type == socket.SOCK_DGRAM:
            listener.recv(10)
        else:
            listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True
