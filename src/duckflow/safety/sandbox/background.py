"""Background commands. All of them share one copy of the folder and one loopback network (G11)."""

import asyncio
import errno
import os
import socket
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import chain
from typing import Any

from duckflow.domain.errors import ToolError
from duckflow.domain.files.effects import Effects
from duckflow.domain.frozen import Frozen
from duckflow.safety.descriptors import closing_fd
from duckflow.safety.sandbox.child.shared_namespaces import (
    DONE,
    FREEZE,
    MOVED,
    PUT,
    REMOVE,
    RUN_OFFLINE,
    RUN_ONLINE,
    THAW,
)
from duckflow.safety.sandbox.copy.copies import WorkspaceCopy
from duckflow.safety.sandbox.gateway import Gateway
from duckflow.safety.sandbox.launcher_client import Ending, run_through
from duckflow.safety.sandbox.output import CommandOutput
from duckflow.safety.sandbox.view.confinement import LaunchOrder
from duckflow.safety.uncancelled import run_in_thread, shielded

MOST_COMMANDS = 8
"""Largest number of background commands at once."""

_TRIES = 4
"""Number of readings, each repeated because a process ran meanwhile. That process was killed each time."""


RunCommand = Callable[[Callable[[bytes], None]], Coroutine[Any, Any, Ending]]


class BackgroundOutput(Frozen):
    """Output of a background command since the last read, and whether the command still runs."""

    text: str
    running: bool
    exit_code: int | None = None
    stopped: str | None = None
    """Limit that stopped the command, or "asked" if it was stopped on request."""
    error: str = ""
    hidden: tuple[str, ...] = ()
    """Secret files that commands opened since the last read. Commands see them empty."""


class _Background:
    """One background command. `run` runs it to its end and passes its output to the given function."""

    def __init__(self, most_bytes: int, run: RunCommand) -> None:
        self._most = most_bytes
        self._unread = CommandOutput(most_bytes)
        self.news = asyncio.Event()
        self.told = False
        """True once the end of the command has been reported to the model."""
        self.task = asyncio.create_task(run(self._take))
        self.task.add_done_callback(lambda _: self.news.set())

    def _take(self, block: bytes) -> None:
        self._unread.take(block)
        self.news.set()

    def read(self) -> BackgroundOutput:
        text, self._unread = self._unread.text(), CommandOutput(self._most)
        self.news.clear()
        if not self.task.done():
            return BackgroundOutput(text=text, running=True)
        self.told = True
        if self.task.cancelled():
            return BackgroundOutput(text=text, running=False, stopped="asked")
        ending = self.task.result()
        return BackgroundOutput(
            text=text, running=False, exit_code=ending.code, stopped=ending.stopped, error=ending.error
        )


class Freeze:
    """One time during which the commands stood still."""

    held = True
    """False once it turned out that a process ran nevertheless. It was killed."""


class LiveCopy:
    """Copy of the folder in which commands run, one after the other or at once, until it is closed."""

    def __init__(self, copy: WorkspaceCopy, control: socket.socket, numbers: Iterator[int]) -> None:
        self.copy = copy
        self.reported: Effects | None = None
        """Effects as last reported, until they are applied or discarded."""
        self._control = control
        self._commands: dict[str, _Background] = {}
        self._talking = asyncio.Lock()
        self._freezing = asyncio.Lock()
        self._numbers = numbers

    @property
    def commands(self) -> tuple[str, ...]:
        """Ids of the running background commands."""
        return tuple(name for name, one in self._commands.items() if not one.task.done())

    @property
    def unheard(self) -> tuple[str, ...]:
        """Ids of the commands that still run or whose end has not been reported."""
        return tuple(name for name, one in self._commands.items() if not one.told)

    async def run(
        self,
        order: LaunchOrder,
        take: Callable[[bytes], None],
        gateway: Gateway | None = None,
        *,
        network: bool,
    ) -> Ending:
        """Run a command until it ends, beside the background commands."""
        word = RUN_ONLINE if network else RUN_OFFLINE
        return await run_through(self._control, word, order, take, gateway)

    def start(self, run: RunCommand, most_bytes: int) -> str:
        """Start a background command and return its id."""
        if len(self.commands) >= MOST_COMMANDS:
            raise ToolError(f"{MOST_COMMANDS} commands run in the background already; stop one first.")
        command_id = f"c{next(self._numbers)}"
        self._commands[command_id] = _Background(most_bytes, run)
        return command_id

    async def read(self, command_id: str, wait_s: float = 0, *, for_end: bool = False) -> BackgroundOutput:
        """Return new output, waiting up to `wait_s` seconds for some, or for the end with `for_end`."""
        background = self._find(command_id)
        if for_end:
            await asyncio.wait([background.task], timeout=wait_s)
        elif wait_s > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await background.news.wait()
        return background.read()

    async def stop(self, command_id: str) -> BackgroundOutput:
        """Kill a command with all its processes and return its latest output."""
        background = self._find(command_id)
        background.task.cancel()
        await asyncio.wait([background.task])
        return background.read()

    @asynccontextmanager
    async def frozen(self) -> AsyncGenerator[Freeze]:
        """Hold all commands still, so that the copy does not change."""
        async with self._freezing:
            freeze = Freeze()
            await shielded(self._ask(FREEZE, []))
            try:
                yield freeze
            finally:
                freeze.held = await shielded(self._ask(THAW, []))

    async def effects(self) -> Effects:
        """Read the effects while the commands stand still."""
        tries = 0
        while True:
            async with self.frozen() as freeze:
                effects = (await run_in_thread(self.copy.read, live=True)).effects
            tries += 1
            if freeze.held or tries == _TRIES:
                return effects

    async def put(self, paths: Iterable[str]) -> None:
        """Write these files of the folder, which a file tool changed, into the copy for running commands."""
        for path in paths:
            try:
                with closing_fd(self.copy.open_lower(path)) as opened:
                    await self._ask(PUT + os.fsencode(path), [opened])
            except PermissionError:
                continue  # nobody can read it; its effect is asked about again
            except OSError as exc:
                if exc.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                    raise
                await self._ask(REMOVE + os.fsencode(path), [])
            self.copy.note_own(path)

    async def revert(self) -> None:
        """Reset the copy to the state of the folder, so that later commands do not see rejected effects."""
        async with self.frozen():
            reading = await run_in_thread(self.copy.read, live=True)
            effects = chain(reading.effects.effects, *reading.bulk.values())
            files = [one for one in effects if one.type == "file" and one.kind != "mode"]
            await self.put(
                dict.fromkeys(path for one in files for path in (one.path, one.moved_from) if path)
            )

    async def aclose(self) -> int:
        """End all commands and close the copy. Return an exit code if a command failed unreported, else 0."""
        untold = [one.task for one in self._commands.values() if not one.told]
        codes = [one.result().code for one in untold if one.done() and not one.cancelled()]
        tasks = [one.task for one in self._commands.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
            await asyncio.get_running_loop().sock_recv(self._control, 1)  # returns when no process is left
        self._control.close()
        return next((code for code in codes if code), 0)

    async def _ask(self, words: bytes, descriptors: list[int]) -> bool:
        """Send a request. Return False if a process ran although it should have stood still."""
        async with self._talking:
            socket.send_fds(self._control, [words], descriptors)
            said = await asyncio.get_running_loop().sock_recv(self._control, 4_000)
        if said not in (DONE, MOVED):
            raise ToolError(f"A change could not be shown to the background command: {said[1:].decode()}.")
        return said == DONE

    def _find(self, command_id: str) -> _Background:
        if command_id not in self._commands:
            known = ", ".join(self._commands) or "none"
            raise ToolError(f"There is no background command {command_id}; known: {known}.")
        return self._commands[command_id]
