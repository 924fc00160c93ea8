"""Measuring without a network: the program restarts itself in a network namespace that has only loopback."""

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys

_MARK = "DUCKFLOW_BENCH_ISOLATED"
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41


def without_network() -> bool:
    """Restart the program without a network if possible. Return True if it runs without one."""
    if os.environ.get(_MARK):
        _raise_loopback()
        return True
    unshare = shutil.which("unshare")
    flags = ["--net"] if os.geteuid() == 0 else ["--net", "--map-root-user"]
    if unshare and not subprocess.run([unshare, *flags, "true"], check=False, capture_output=True).returncode:
        os.environ[_MARK] = "1"
        os.execv(unshare, [unshare, *flags, sys.executable, *sys.argv])
    print("The network can't be taken away here; measuring with it.", file=sys.stderr)
    return False


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14s", b"lo", _UP_AND_RUNNING, b""))
