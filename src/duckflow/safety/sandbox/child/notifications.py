"""System calls that the kernel holds until another process has answered them. Standard library only."""

import contextlib
import errno
import fcntl
import os
import struct
from typing import NamedTuple

from duckflow.safety.descriptors import closing_fd
from duckflow.safety.syscalls import HERE

_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_REQUEST, _ANSWER = struct.Struct("QIIiIQ6Q"), struct.Struct("QqiI")
_GO_ON = 1
_LONGEST = 4096


class HeldCall(NamedTuple):
    """System call that waits for an answer, and the process that made it."""

    listener: int
    identity: int
    process: int
    number: int
    words: list[int]

    def check(self) -> None:
        """Raise OSError if the call no longer waits. Its process id may then belong to another process."""
        fcntl.ioctl(self.listener, _IS_VALID, struct.pack("Q", self.identity))

    def answer(self, code: int | None = None) -> None:
        """Answer with an error code, 0 if the call was made here. With None, the kernel makes the call."""
        flags = _GO_ON if code is None else 0
        with contextlib.suppress(OSError):  # the calling process is gone
            fcntl.ioctl(self.listener, _SEND, _ANSWER.pack(self.identity, 0, -(code or 0), flags))

    def place(self, base: int) -> str:
        """Return the folder of a descriptor of the calling process, as a path; HERE is its current folder."""
        base &= 0xFFFFFFFF
        return f"/proc/{self.process}/" + ("cwd" if base == HERE else f"fd/{base}")

    def read(self, address: int, size: int) -> bytes:
        """Read memory of the calling process."""
        with closing_fd(os.open(f"/proc/{self.process}/mem", os.O_RDONLY | os.O_CLOEXEC)) as opened:
            data = os.pread(opened, size, address)
        if len(data) < size:
            raise OSError(errno.EFAULT, "not all of it is there")
        return data

    def text(self, address: int) -> str:
        """Read a NUL-terminated text from the memory of the calling process."""
        data = b""
        while b"\0" not in data and len(data) < _LONGEST:
            start = address + len(data)
            # up to the end of a memory page, because only whole pages are known to be mapped
            data += self.read(start, _LONGEST - start % _LONGEST)
        return os.fsdecode(data.partition(b"\0")[0])


def take(listener: int) -> HeldCall | None:
    """Receive the next waiting call. None if its process is gone."""
    request = bytearray(_REQUEST.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, request)
    except OSError:
        return None
    identity, process, _, number, _, _, *words = _REQUEST.unpack(request)
    return HeldCall(listener, identity, process, number, words)
