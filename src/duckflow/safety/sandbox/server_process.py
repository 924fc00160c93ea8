"""Server that Duckflow starts, for tools (MCP) or a language: a sandboxed process with an open input."""

import asyncio
import os
import shlex
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from duckflow.config.mcp import McpServer
from duckflow.config.settings import ShellSettings
from duckflow.domain.errors import ToolError
from duckflow.domain.files.programs import find_program
from duckflow.domain.frozen import replace
from duckflow.domain.patterns import lazy_regex
from duckflow.safety.descriptors import READ, closing_fd
from duckflow.safety.sandbox.launcher_client import Ending, Launcher
from duckflow.safety.sandbox.probe import PROBE, Probe
from duckflow.safety.sandbox.shell_view import ShellView
from duckflow.safety.sandbox.view.confinement import LaunchOrder, explain_limit, limits_of
from duckflow.safety.sandbox.view.levels import Sandbox

INPUT, ERRORS = "server-input", "server-errors"
_SECONDS = 30 * 24 * 3600.0
_LAST_WORDS, _LAST_LINES = 8_000, 8
_AT_HOME = {
    "XDG_CACHE_HOME": ".cache",
    "XDG_DATA_HOME": ".local/share",
    "UV_CACHE_DIR": ".cache/uv",
    "UV_TOOL_DIR": ".cache/uv-tools",
    "npm_config_cache": ".npm",
    "CARGO_TARGET_DIR": ".cache/cargo-target",
}
"""Variables for writable folders of the server, which otherwise could lead to read-only ones of the user."""
_NOISE = lazy_regex(
    r"\W*$|\s*(at |throw |node:internal|Node\.js v|npm notice|npm error( 404)?\W*$|File \"|Traceback )"
    r"|Stack backtrace:|\s*\d+: \S*(::|_start|_main|<unknown>)|goroutine \d+ \["
)
_TRACE = lazy_regex(r"(?m)^[ \t]*File \".*\n(?:[ \t]{4,}.*\n)*")
"""Places in a Python stack trace, with their lines of code."""
_NONE = Sandbox(level="none", reason="sandbox.switched_off")


class ServerProcess:
    """One server, started once. Commands and other servers can't see its temporary folder and its home.

    Its home outlasts it, so that package runners download a server only once. Without one, it gets an empty
    home that is removed with it.
    """

    def __init__(
        self,
        server: McpServer,
        workspace: Path,
        settings: ShellSettings,
        home: Path | None,
        *,
        closed: Iterable[Path],
        env: Mapping[str, str],
        probe: Probe = PROBE,
    ) -> None:
        self._server = server
        self._workspace = workspace
        self._settings = settings
        self._home = str(home) if home else ""
        self._closed = tuple(closed)
        self._env = env
        self._probe = probe
        self._launcher = Launcher()
        self._view: ShellView | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._held: int | None = None
        self.last_words = ""
        """End of the server's error output, once it has ended."""
        self._running: asyncio.Task[Ending] | None = None

    async def start(self, take: Callable[[bytes], None], ended: Callable[[str], None]) -> None:
        """Start the server, or raise ToolError. `take` gets its output, `ended` a text on why it ended."""
        temporary = await self._launcher.temporary()
        sandbox = await self._sandbox()
        order = await asyncio.to_thread(self._confine, sandbox, temporary)
        self._writer = await self._open_input(temporary / "own" / INPUT)
        self._running = asyncio.create_task(self._launcher.run(order, take))

        def tell(task: asyncio.Task[Ending]) -> None:
            self.last_words = _tail(temporary / "own" / ERRORS)
            ended("" if task.cancelled() else _reason(task, self._settings, self.last_words))

        self._running.add_done_callback(tell)

    async def _open_input(self, path: Path) -> asyncio.StreamWriter:
        """Create the server's input: a named pipe in its private /tmp."""
        os.mkfifo(path, 0o600)
        # Open both ends here, so that the pipe exists before the server opens it.
        self._held = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        writing = os.fdopen(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC), "wb", buffering=0)
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, writing)
        return asyncio.StreamWriter(transport, protocol, None, loop)

    async def send(self, data: bytes) -> None:
        """Write to the server's input. Raise OSError if the server no longer reads it."""
        if self._writer is None or self._writer.is_closing():
            raise BrokenPipeError
        self._writer.write(data)
        await self._writer.drain()

    async def aclose(self) -> None:
        """End the server with all its processes."""
        if self._writer is not None:
            self._writer.transport.abort()  # the server may no longer read the remaining input
            self._writer = None
        if self._held is not None:
            os.close(self._held)
            self._held = None
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        await self._launcher.aclose()
        if self._view is not None:
            self._view.close()

    async def _sandbox(self) -> Sandbox:
        if not self._server.sandbox:
            return _NONE
        found = await self._probe.find(self._settings.sandbox, self._launcher, self._workspace, None)
        if found.level == "none":
            raise ToolError(
                "there is no sandbox here; set `sandbox = false` for this server to run it without one"
            )
        return found

    def _confine(self, sandbox: Sandbox, temporary: Path) -> LaunchOrder:
        program = self._program()
        started = shlex.join([program, *self._server.command[1:]])
        command = f'exec <"$TMPDIR/{INPUT}" 2>"$TMPDIR/{ERRORS}"; exec {started}'
        programs = (Path(program).parent,)
        reads, writes = (map(os.path.realpath, given) for given in (self._server.read, self._server.write))
        place = (self._workspace, self._closed, self._env, self._launcher)
        self._view = ShellView(*place, programs, reads, writes, self._home)
        limits = limits_of(self._settings, _SECONDS)
        network, access = self._server.network, self._server.workspace
        order = self._view.confine(command, sandbox, limits, temporary, network=network, access=access)
        return replace(order, env={**order.env, **self._folders(sandbox, temporary), **self._server.env})

    def _folders(self, sandbox: Sandbox, temporary: Path) -> dict[str, str]:
        """Return the variables that lead to the server's home. Without mounts, it has a different path."""
        if self._view is None or sandbox.level in ("none", "external"):
            return {}
        own = self._home or f"{temporary}/home"
        home = own if sandbox.level == "landlock" else self._view.base(temporary).home
        named = {variable: f"{home}/{path}" for variable, path in _AT_HOME.items()}
        folders = [os.path.join(self._workspace, word) for word in ("", *self._server.command[1:])]
        projects = [folder for folder in folders if os.path.isfile(f"{folder}/pyproject.toml")]
        if projects and not os.path.isdir(f"{projects[-1]}/.venv"):
            named["UV_PROJECT_ENVIRONMENT"] = f"{home}/.venv"  # uv can't make one in the project
        return {"HOME": home, **named}

    def _program(self) -> str:
        name = self._server.command[0]
        if "/" in name:
            return os.path.abspath(os.path.join(self._workspace, os.path.expanduser(name)))
        found = find_program(name, self._workspace, self._env)
        if found is None:
            raise ToolError(f"there is no program {name}")
        return str(found)


def _reason(task: asyncio.Task[Ending], settings: ShellSettings, said: str) -> str:
    """Return a text on how the server ended, with the last lines of its error output."""
    if (fault := task.exception()) is not None:
        return str(fault)
    ending = task.result()
    how = ending.error or (f"stopped: {explain_limit(settings, ending.stopped)}" if ending.stopped else "")
    how = how or f"ended with exit code {ending.code}"
    return f"{how}; it said: {said}" if said else how


def _tail(path: Path) -> str:
    """Return the last lines of a file, without stack traces. The server may have replaced the file."""
    with suppress(OSError), closing_fd(os.open(path, READ)) as opened:
        status = os.fstat(opened)
        if stat.S_ISREG(status.st_mode):
            said = os.pread(opened, _LAST_WORDS, max(0, status.st_size - _LAST_WORDS))
            text = _TRACE.sub("", said.decode("utf-8", "replace"))
            found = [line for line in text.splitlines() if not _NOISE.match(line)]
            return "\n".join(line.strip()[:300] for line in found[-_LAST_LINES:]).strip()
    return ""
