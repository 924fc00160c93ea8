"""System calls that the kernel holds up until somebody outside has answered. Standard library only."""

import contextlib
import errno
import fcntl
import os
import struct
from typing import NamedTuple

from duckflow.safety.descriptors import held
from duckflow.safety.syscalls import HERE

_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_REQUEST, _ANSWER = struct.Struct("QIIiIQ6Q"), struct.Struct("QqiI")
_GO_ON = 1
_LONGEST = 4096


class HeldCall(NamedTuple):
    """A call that waits, and the process that made it."""

    listener: int
    identity: int
    process: int
    number: int
    words: list[int]

    def check(self) -> None:
        """OSError if it no longer waits: what is known of its process may be of another one."""
        fcntl.ioctl(self.listener, _IS_VALID, struct.pack("Q", self.identity))

    def answer(self, code: int | None = None) -> None:
        """The error code of the call, 0 if it was made; None: the kernel is to make it."""
        flags = _GO_ON if code is None else 0
        with contextlib.suppress(OSError):  # who asked is gone
            fcntl.ioctl(self.listener, _SEND, _ANSWER.pack(self.identity, 0, -(code or 0), flags))

    def place(self, base: int) -> str:
        """Where a folder is that it names by a descriptor, or where its process is."""
        base &= 0xFFFFFFFF
        return f"/proc/{self.process}/" + ("cwd" if base == HERE else f"fd/{base}")

    def read(self, address: int, size: int) -> bytes:
        """Memory of its process."""
        with held(os.open(f"/proc/{self.process}/mem", os.O_RDONLY | os.O_CLOEXEC)) as opened:
            data = os.pread(opened, size, address)
        if len(data) < size:
            raise OSError(errno.EFAULT, "not all of it is there")
        return data

    def text(self, address: int) -> str:
        """A text in its memory, up to where it ends."""
        data = b""
        while b"\0" not in data and len(data) < _LONGEST:
            start = address + len(data)
            data += self.read(start, _LONGEST - start % _LONGEST)  # what is in one page is there
        return os.fsdecode(data.partition(b"\0")[0])


def take(listener: int) -> HeldCall | None:
    """The next call that waits; None if who made it is gone."""
    request = bytearray(_REQUEST.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, request)
    except OSError:
        return None
    identity, process, _, number, _, _, *words = _REQUEST.unpack(request)
    return HeldCall(listener, identity, process, number, words)
