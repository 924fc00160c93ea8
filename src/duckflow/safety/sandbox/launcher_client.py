"""Client of the launcher: start it when first needed, send orders, read output, wait until commands end."""

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.safety.sandbox.child.command_process import EXPECTED
from duckflow.safety.sandbox.child.shared_namespaces import READY
from duckflow.safety.sandbox.gateway import Gateway
from duckflow.safety.sandbox.view.confinement import OWN_FOLDERS, CopyMount, LaunchOrder
from duckflow.safety.sandbox.view.mount_plan import Mount
from duckflow.safety.uncancelled import run_in_thread, shielded

_BOOT = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from duckflow.safety.sandbox.child.launcher import main; main()"
)
_PATIENCE_S = 15.0
"""Time in seconds to wait until killed processes have ended."""


class Ending(Frozen):
    """Ending of a command. `stopped` names the limit that it reached, or is "asked"."""

    code: int | None
    stopped: str | None
    error: str


class Launcher:
    """Launcher of one session and the temporary folder of its commands."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._orders: socket.socket | None = None
        self._starting = asyncio.Lock()
        self._temporary: Path | None = None

    async def temporary(self) -> Path:
        """Return the temporary folder of the commands. Start the launcher if it does not run."""
        async with self._starting:
            if self._temporary is None or self._process is None or self._process.poll() is not None:
                await run_in_thread(self._start)
        assert self._temporary is not None
        return self._temporary

    async def run(
        self, order: LaunchOrder, take: Callable[[bytes], None], gateway: Gateway | None = None
    ) -> Ending:
        """Run a command until it ends. If cancelled, kill its processes and return when they have ended."""
        await self.temporary()
        assert self._orders is not None
        return await run_through(self._orders, b".", order, take, gateway)

    def expect(self, mounts: Iterable[Mount]) -> None:
        """Write down the mounts that all commands get, so that the launcher can prepare them. Blocking."""
        assert self._temporary is not None
        steps = [step.model_dump() for step in mounts]
        expected = self._temporary / EXPECTED
        expected.with_suffix(".new").write_text(json.dumps(steps), "ascii")
        expected.with_suffix(".new").rename(expected)

    async def hold(self, copies: tuple[CopyMount, ...]) -> socket.socket:
        """Mount copies of folders for several commands. Return the socket that takes orders for them."""
        await self.temporary()
        assert self._orders is not None
        data = json.dumps({"kind": "hold", "copies": [one.model_dump() for one in copies]}).encode()
        control, output = await _begin(self._orders, b".", data, kind=socket.SOCK_SEQPACKET)
        os.close(output)
        said = await asyncio.get_running_loop().sock_recv(control, 4_000)
        if said != READY:
            control.close()
            why = said[1:].decode(errors="replace")
            raise ToolError(f"The command could not be run in its sandbox: {why}.")
        return control

    async def aclose(self) -> None:
        """End the launcher, which removes the temporary folder."""
        if self._orders is not None:
            self._orders.close()
        process, self._process, self._orders = self._process, None, None
        if process is not None:
            await asyncio.to_thread(process.wait)

    def _start(self) -> None:
        if self._orders is not None and self._temporary is not None:  # the previous launcher was killed
            self._orders.close()
            shutil.rmtree(self._temporary, ignore_errors=True)
        temporary = Path(os.path.realpath(tempfile.mkdtemp(prefix="duckflow-")))
        for name in (*OWN_FOLDERS, "root"):
            (temporary / name).mkdir(mode=0o700)
        (temporary / "empty").touch(mode=0o444)
        ours, theirs = socket.socketpair()
        source = str(Path(__file__).parents[3])
        command = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, in our own Python
                [*command, source, str(theirs.fileno()), str(temporary)],
                pass_fds=(theirs.fileno(),),
                env={name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as exc:
            ours.close()
            raise ToolError(f"The command could not be started: {exc.strerror}.") from exc
        finally:
            theirs.close()
        self._orders, self._temporary = ours, temporary


async def run_through(
    orders: socket.socket,
    word: bytes,
    order: LaunchOrder,
    take: Callable[[bytes], None],
    gateway: Gateway | None = None,
) -> Ending:
    """Let the process at this socket run a command. If cancelled, kill all processes of the command."""
    data = json.dumps(order.model_dump()).encode()  # pydantic refuses names that are no text
    control, output = await _begin(orders, word, data, order.rules)
    reading = asyncio.ensure_future(_read_all(output, take))
    hearing = asyncio.ensure_future(_hear(control, gateway))
    try:
        return await asyncio.shield(hearing)
    finally:
        with contextlib.suppress(OSError):
            control.shutdown(socket.SHUT_WR)
        try:
            await shielded(_finish(hearing, reading))
        finally:
            control.close()
            if gateway is not None:
                await gateway.aclose()


async def _begin(
    orders: socket.socket,
    word: bytes,
    data: bytes,
    rules: int | None = None,
    kind: socket.SocketKind = socket.SOCK_STREAM,
) -> tuple[socket.socket, int]:
    """Send an order. Return its control socket and the descriptor of its output. Closes `rules`."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    output, written = os.pipe()
    given = [theirs.fileno(), written, *(() if rules is None else (rules,))]
    try:
        socket.send_fds(orders, [word], given)
    except OSError as exc:
        ours.close()
        os.close(output)
        raise ToolError("The command could not be started: the launcher has ended.") from exc
    finally:
        theirs.close()
        for one in given[1:]:
            os.close(one)
    ours.setblocking(False)
    with contextlib.suppress(OSError):  # a failure shows when the answer is read
        await asyncio.get_running_loop().sock_sendall(ours, len(data).to_bytes(4) + data)
    return ours, output


async def _hear(control: socket.socket, gateway: Gateway | None) -> Ending:
    """Return the supervisor's final message, which it sends when no process of the command is left.

    Before it, a socket for the gateway may come.
    """
    said = b""
    with contextlib.suppress(ConnectionError):
        while True:
            await _readable(control)
            more, opened, _, _ = socket.recv_fds(control, 65_536, 1)
            if opened and gateway is not None:
                await gateway.serve(socket.socket(fileno=opened[0]))
                continue
            if not more:
                break
            said += more
    if not said:
        return Ending(code=None, stopped=None, error="what watched over it was killed")
    return Ending.model_validate(json.loads(said))


async def _readable(source: socket.socket) -> None:
    """Wait until something can be read."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(source, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(source)


async def _read_all(output: int, take: Callable[[bytes], None]) -> None:
    stream = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    pipe = os.fdopen(output, "rb", buffering=0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), pipe)
    try:
        while block := await stream.read(1 << 18):
            take(block)
    finally:
        transport.close()


async def _finish(*tasks: "asyncio.Future[Any]") -> None:
    """Wait until the command has ended and all its output is read."""
    await asyncio.wait(tasks, timeout=_PATIENCE_S)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
