"""Shell of one workspace: runs each command in the sandbox, through a separate order to the launcher."""

import asyncio
import itertools
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from duckflow.config.settings import ShellSettings
from duckflow.domain.errors import ToolError
from duckflow.domain.files.effects import Effects
from duckflow.domain.frozen import replace
from duckflow.safety.files.access import Access
from duckflow.safety.policy.command_risk import goes_online
from duckflow.safety.policy.git_config import git_places
from duckflow.safety.sandbox.background import BackgroundOutput, LiveCopy
from duckflow.safety.sandbox.command_result import CommandResult, check_command, result_of
from duckflow.safety.sandbox.copy.copies import CopyFolders, PlacedFile, WorkspaceCopy
from duckflow.safety.sandbox.copy.copy_reader import TooManyHoles
from duckflow.safety.sandbox.copy.copy_writer import apply_effects
from duckflow.safety.sandbox.gateway import Contacted, Gateway
from duckflow.safety.sandbox.launcher_client import Ending, Launcher
from duckflow.safety.sandbox.output import WHOLE_KEPT, CommandOutput, Emit, LiveOutput
from duckflow.safety.sandbox.pipelines import end_of_pipeline, read_statuses, watch_pipeline
from duckflow.safety.sandbox.probe import PROBE, Probe
from duckflow.safety.sandbox.shell_view import ShellView
from duckflow.safety.sandbox.view import bubblewrap
from duckflow.safety.sandbox.view.confinement import LaunchOrder, Limits, confine, limits_of
from duckflow.safety.sandbox.view.environment import git_over_http
from duckflow.safety.sandbox.view.levels import Sandbox
from duckflow.safety.uncancelled import run_in_thread

_BACKGROUND_SECONDS = 24 * 3600.0
_MB = 1_000_000

RunOrder = Callable[[LaunchOrder, Callable[[bytes], None], Gateway | None], Awaitable[Ending]]


class _WantedCommand(NamedTuple):
    """Command to run, with its settings. `secrets` are the secret files that the command may see."""

    command: str
    sandbox: Sandbox
    limits: Limits
    network: bool
    """True for the whole network."""
    hosts: tuple[str, ...] | None = None
    """Hosts that it may reach; None without a gateway to them."""
    secrets: Collection[str] = ()
    emit: Emit | None = None


class Shell:
    """Runs commands in one workspace. Nothing is started or tested before the first command."""

    def __init__(
        self,
        workspace: Path,
        settings: ShellSettings,
        *,
        closed: Iterable[Path] = (),
        env: Mapping[str, str] | None = None,
        copies: Path | None = None,
        programs: Iterable[Path] = (),
        reads: Iterable[str] = (),
        probe: Probe = PROBE,
    ) -> None:
        """Commands can't see `closed` folders; they see `programs`, folders that PATH lacks, and `reads`."""
        self.workspace = Path(os.path.realpath(workspace))
        """Folder in which commands run."""
        self.settings = settings
        """Settings with the limits for commands."""
        known, lent = os.environ if env is None else env, settings.tokens
        self._tokens = {host: value for host, name in lent.items() if (value := known.get(name, "").strip())}
        self._env = {name: known[name] for name in known if name not in lent.values()} if lent else known
        self.git_places = git_places(str(self.workspace), self._env)
        """Paths that matter for the settings of git in this workspace."""
        self._probe = probe
        self._probing = asyncio.Lock()
        self._launcher = Launcher()
        self._view = ShellView(self.workspace, closed, self._env, self._launcher, programs, reads)
        self._place = copies
        self._request = ""
        self._folders: CopyFolders | None = None
        self._pending: dict[str, WorkspaceCopy] = {}
        self._interrupted: list[str] = []
        self._live: LiveCopy | None = None
        self._numbers = itertools.count(1)
        self.granted: Callable[[], Iterable[str]] = tuple
        """Returns the hosts that the user has allowed beside those in the settings."""
        self.contacted: Contacted = lambda _: None
        """Called with each connection of a command, and with each refused one."""
        self._opened: dict[str, int] = {}
        """For each background command, the number of opened secret files already reported to the model."""

    async def sandbox(self) -> Sandbox:
        """Return the sandbox of this workspace. It is found by a test once per process."""
        async with self._probing:  # callers during the test wait for the same result
            open_copies = self._copies if self._place is not None else None
            return await self._probe.find(self.settings.sandbox, self._launcher, self.workspace, open_copies)

    def begin_request(self, request_id: str) -> None:
        """Name the request that sent the next commands. What git ignores is what was committed before it."""
        self._request = request_id

    def hosts(self) -> tuple[str, ...]:
        """Return the hosts that every command may reach."""
        return (*self.settings.hosts, *self.granted())

    async def hidden(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return which of these workspace paths commands see empty unless the user grants access."""
        return await asyncio.to_thread(self._view.hidden, paths)

    async def run(
        self,
        command: str,
        *,
        timeout_s: float | None = None,
        network: bool = False,
        hosts: Iterable[str] = (),
        secrets: Collection[str] = (),
        emit: Emit | None = None,
    ) -> CommandResult:
        """Run a command until it ends. It may reach these `hosts`, or the whole network, and see `secrets`.

        If cancelled, kill its processes first.
        """
        seconds = self.settings.timeout_s if timeout_s is None else timeout_s
        wanted = await self._want(command, seconds, network=network, hosts=hosts)
        wanted = wanted._replace(secrets=secrets, emit=emit)
        if self._live is not None:
            return await _retried(partial(self._run_beside, self._live, wanted))
        run = self._run_on_copy if wanted.sandbox.copies else self._run_in_folder
        return await _retried(partial(run, wanted))

    async def try_out(
        self, command: str, files: Mapping[str, bytes | PlacedFile], *, timeout_s: float
    ) -> CommandResult:
        """Run a command on a copy that has these files, and discard all its effects."""
        wanted = await self._want(command, timeout_s)
        return await _retried(partial(self._run_and_forget, wanted, files))

    async def _want(
        self, command: str, seconds: float, *, network: bool = False, hosts: Iterable[str] = ()
    ) -> _WantedCommand:
        check_command(command)
        limits, sandbox = limits_of(self.settings, seconds), await self.sandbox()
        network = network or self.settings.network
        allowed = tuple(dict.fromkeys((*self.hosts(), *hosts)))
        # Programs that use no network run without a proxy's variables, as they do elsewhere.
        reaches = sandbox.copies and not network and (allowed or goes_online(command))
        return _WantedCommand(command, sandbox, limits, network, allowed if reaches else None)

    async def _run_in_folder(self, wanted: _WantedCommand) -> CommandResult:
        temporary = await self._launcher.temporary()
        order = await asyncio.to_thread(
            self._view.confine, *wanted[:3], temporary, wanted.secrets, network=wanted.network
        )
        result = await self._run(self._launcher.run, order, wanted)
        return replace(result, changed=await asyncio.to_thread(self._view.changed))

    async def _run_on_copy(self, wanted: _WantedCommand) -> CommandResult:
        copy, order = await self._make_copy(wanted)
        try:
            result = await self._run(self._launcher.run, order, wanted)
        except asyncio.CancelledError:
            if not copy.unused:
                self._pending[copy.id] = copy
                self._interrupted.append(copy.id)
            raise
        except BaseException:
            copy.discard()
            raise
        if copy.unused:
            await asyncio.to_thread(copy.discard)
            return replace(result, effects=Effects())
        return await self._with_effects(result, copy)

    async def _run_and_forget(
        self, wanted: _WantedCommand, files: Mapping[str, bytes | PlacedFile]
    ) -> CommandResult:
        copy, order = await self._make_copy(wanted, files)
        try:
            return await self._run(self._launcher.run, order, wanted)
        finally:
            await asyncio.shield(asyncio.to_thread(copy.discard))

    async def _run_beside(self, live: LiveCopy, wanted: _WantedCommand) -> CommandResult:
        """Run a command in the copy that background commands use."""
        order = await self._confine(wanted, live.copy)
        result = await self._run(partial(live.run, network=wanted.network), order, wanted)
        return await self._with_effects(result, live.copy)

    async def _make_copy(
        self, wanted: _WantedCommand, files: Mapping[str, bytes | PlacedFile] = MappingProxyType({})
    ) -> tuple[WorkspaceCopy, LaunchOrder]:
        copies = await self._copies()
        copy = await asyncio.to_thread(copies.make, str(self.workspace), wanted.command, self._request)
        try:
            await asyncio.to_thread(copy.put, files)
            return copy, await self._confine(wanted, copy)
        except OSError as exc:
            copy.discard()
            raise ToolError(f"No copy could be made: {exc.strerror}.") from exc

    async def _confine(self, wanted: _WantedCommand, copy: WorkspaceCopy) -> LaunchOrder:
        temporary = await self._launcher.temporary()
        plan = await asyncio.to_thread(self._view.on_copy, temporary, copy, wanted.secrets)
        command, sandbox, limits, network = wanted[:4]
        held, gateway = self._is_live(copy), wanted.hosts is not None
        order = confine(
            command,
            sandbox,
            plan,
            limits,
            self._env,
            network=network,
            copies=copy.mounts,
            held=held,
            gateway=gateway,
        )
        return replace(order, env={**order.env, **git_over_http(self._tokens)}) if gateway else order

    def _gateway(self, wanted: _WantedCommand) -> Gateway | None:
        if wanted.hosts is None:
            return None
        private = self.settings.private_hosts
        return Gateway(wanted.hosts, self.contacted, private=private, tokens=self._tokens)

    async def _run(self, run: RunOrder, order: LaunchOrder, wanted: _WantedCommand) -> CommandResult:
        output = CommandOutput(self.settings.max_output_bytes, kept=WHOLE_KEPT)
        live = LiveOutput(wanted.emit)
        order, noted = watch_pipeline(order, await self._launcher.temporary())

        def take(block: bytes) -> None:
            output.take(block)
            live.take(block)

        _, position = self._view.masks.opened_since()
        gateway = self._gateway(wanted)
        ending = await run(order, take, gateway)
        opened, _ = self._view.masks.opened_since(position)
        live.finish()
        result = result_of(ending, output.text(), wanted.sandbox)
        result = replace(result, hidden=self._named(opened), whole=output.whole())
        result = replace(result, refused_hosts=gateway.refused if gateway else ())
        if noted is None or result.exit_code is None:
            return result
        statuses = await asyncio.to_thread(read_statuses, noted)
        code, text = end_of_pipeline(wanted.command, statuses, result.exit_code)
        return replace(result, exit_code=code, pipeline=text, ran_through=result.exit_code == 0)

    def _named(self, opened: Iterable[str]) -> tuple[str, ...]:
        """Return hidden files as the paths that the model knows."""
        return tuple(path.removeprefix(f"{self.workspace}/") for path in opened)

    async def _with_effects(self, result: CommandResult, copy: WorkspaceCopy) -> CommandResult:
        self._pending[copy.id] = copy
        try:
            effects = await self._read(copy)
        except TooManyHoles:
            return await self._without_effects(result, copy)
        if effects.size > self.settings.disk_mb * _MB:
            result = replace(result, stopped=result.stopped or "disk_mb", exit_code=None)
        if effects != Effects():
            if self._live is not None and self._is_live(copy):
                self._live.reported = effects
                copy.shown.forget(but=(one.after for one in effects.effects))
            return replace(result, effects=effects, copy_id=copy.id)
        if self._live is None:
            await self.discard(copy.id)
        return replace(result, effects=effects)

    async def _without_effects(self, result: CommandResult, copy: WorkspaceCopy) -> CommandResult:
        """Discard a copy that can't be read, and end all commands that use it."""
        if self._live is not None and self._is_live(copy):
            live, self._live = self._live, None
            await live.aclose()
        await self.discard(copy.id)
        output = f"{result.output}[too many files of holes: nothing that it did was kept]"
        return replace(result, output=output, stopped="disk_mb", exit_code=None, effects=Effects())

    def _is_live(self, copy: WorkspaceCopy) -> bool:
        return self._live is not None and self._live.copy is copy

    @property
    def background(self) -> tuple[str, ...]:
        """Ids of the running background commands."""
        return self._live.commands if self._live is not None else ()

    async def start(self, command: str, *, network: bool = False, hosts: Iterable[str] = ()) -> str:
        """Start a background command and return its id. It shares a copy of the folder with others."""
        wanted = await self._want(command, _BACKGROUND_SECONDS, network=network, hosts=hosts)
        if not wanted.sandbox.copies:
            raise ToolError("Nothing can run in the background here: that needs a copy of the folder.")
        if self._live is None:
            make = (await self._copies()).make
            copy = await asyncio.to_thread(make, str(self.workspace), command, self._request)
            self._live = LiveCopy(copy, await self._launcher.hold(copy.mounts), self._numbers)
        order = await self._confine(wanted, self._live.copy)
        _, position = self._view.masks.opened_since()
        run = partial(self._live.run, order, gateway=self._gateway(wanted), network=wanted.network)
        command_id = self._live.start(run, self.settings.max_output_bytes)
        self._opened[command_id] = position
        return command_id

    async def read(self, command_id: str, wait_s: float = 0, *, for_end: bool = False) -> BackgroundOutput:
        """Return new output of a background command. Wait up to `wait_s` seconds for output or the end."""
        return self._with_opened(command_id, await self._living().read(command_id, wait_s, for_end=for_end))

    async def stop(self, command_id: str) -> BackgroundOutput:
        """End a background command with all its processes."""
        return self._with_opened(command_id, await self._living().stop(command_id))

    def _with_opened(self, command_id: str, output: BackgroundOutput) -> BackgroundOutput:
        """Add the secret files that this command, or one beside it, has opened since the last read."""
        opened, self._opened[command_id] = self._view.masks.opened_since(self._opened.get(command_id))
        return replace(output, hidden=self._named(opened))

    async def put(self, paths: Iterable[str]) -> None:
        """Copy these files, which a file tool changed, to where background commands see them."""
        if self._live is not None:
            await self._live.put(paths)

    async def background_effects(self) -> CommandResult | None:
        """Return the effects of background commands. If none is left to report, also close their copy."""
        if self._live is None or not self._live.unheard:
            return await self.end_background()
        return await self._with_effects(CommandResult(exit_code=None, output=""), self._live.copy)

    async def end_background(self) -> CommandResult | None:
        """End all background commands. Return their effects, None if there was no background command."""
        if self._live is None:
            return None
        live, self._live = self._live, None
        code = await live.aclose()
        return await self._with_effects(CommandResult(exit_code=code, output=""), live.copy)

    def _living(self) -> LiveCopy:
        if self._live is None:
            raise ToolError("Nothing runs in the background.")
        return self._live

    @property
    def pending_copies(self) -> frozenset[str]:
        """Ids of the copies whose effects have been neither applied nor discarded."""
        live = {self._live.copy.id} if self._live is not None else set[str]()
        return frozenset(self._pending) - live

    async def copy(self, copy_id: str) -> WorkspaceCopy:
        """Return a copy by its id, even if an earlier session kept it. Raise ToolError if it is gone."""
        if copy_id not in self._pending:
            found = await asyncio.to_thread((await self._copies()).find, copy_id)
            if found is None or found.about.workspace != str(self.workspace):
                raise ToolError("What the command did is no longer kept; run it again.")
            self._pending[copy_id] = found
        return self._pending[copy_id]

    async def effects(self, copy_id: str) -> Effects:
        """Return the effects of a command, as last reported if commands still change its copy."""
        copy = await self.copy(copy_id)
        live = self._is_live(copy)
        if live and self._live is not None and self._live.reported is not None:
            return self._live.reported
        return await self._read(copy)

    async def _read(self, copy: WorkspaceCopy) -> Effects:
        if self._live is not None and self._is_live(copy):
            return await self._live.effects()
        return (await asyncio.to_thread(copy.read)).effects

    async def apply(
        self, copy_id: str, approved: Effects, access: Access | None = None, *, conflicts: Iterable[str] = ()
    ) -> dict[str, str]:
        """Apply effects, recorded by `access`, even if cancelled. Return left-out paths with the reasons."""
        copy = await self.copy(copy_id)
        live = self._live if self._is_live(copy) else None
        async with live.frozen() if live is not None else nullcontext():
            left = await run_in_thread(
                apply_effects, copy, approved, access, conflicts=tuple(conflicts), live=live is not None
            )
        if live is not None:
            live.reported = None
            copy.shown.forget()
        elif not left:
            self._pending.pop(copy_id, None)
        return left

    async def discard(self, copy_id: str) -> None:
        """Discard the effects of a command."""
        copy = await self.copy(copy_id)
        if self._live is not None and self._is_live(copy):
            self._live.reported = None
            await self._live.revert()
            copy.shown.forget()
            return
        del self._pending[copy_id]
        await asyncio.to_thread(copy.discard)

    async def new_copy(self, purpose: str) -> WorkspaceCopy:
        """Make a copy for a program of Duckflow's own. The caller discards it, or offers its effects."""
        if not (await self.sandbox()).copies:
            raise ToolError("There are no copies of the folder here, so no agent can work on one.")
        make = (await self._copies()).make
        return await asyncio.to_thread(make, str(self.workspace), purpose, self._request)

    def offer(self, copy: WorkspaceCopy) -> str:
        """Let the effects of a copy wait for a decision, like those of a command. Return its id."""
        self._pending[copy.id] = copy
        return copy.id

    async def keep(self, copy_id: str) -> None:
        """Keep the effects until the user answers, even after this process ends."""
        await asyncio.to_thread((await self.copy(copy_id)).keep)

    def take_interrupted(self) -> tuple[str, ...]:
        """Return the ids of copies whose command was cancelled after it had effects. Reports each id once."""
        told, self._interrupted = tuple(self._interrupted), []
        return told

    async def _copies(self) -> CopyFolders:
        if self._folders is None:
            if self._place is None:
                raise ToolError("Commands work on no copy here.")
            base = await asyncio.to_thread(self._view.base, await self._launcher.temporary())
            self._folders = CopyFolders(self._place, base.seen_outside, self.git_places)
            await asyncio.to_thread(self._folders.sweep)
        return self._folders

    async def aclose(self) -> None:
        """End all commands. Remove the temporary folder and every copy that was not kept."""
        if self._live is not None:
            live, self._live = self._live, None
            await live.aclose()
            self._pending[live.copy.id] = live.copy
        await self._launcher.aclose()
        self._view.close()
        if self._folders is not None:
            await asyncio.to_thread(self._close_copies)

    def _close_copies(self) -> None:
        for copy in self._pending.values():
            if copy.about.kept:
                copy.release()
            else:
                copy.discard()
        self._pending.clear()


async def _retried(run: Callable[[], Awaitable[CommandResult]]) -> CommandResult:
    """Run a command. Run it again if a path that the sandbox hides was removed while it started."""
    for _ in range(bubblewrap.TRIES):
        try:
            return await run()
        except ToolError as exc:
            if not bubblewrap.lost_a_mask(str(exc)):
                raise
    raise ToolError("The command could not be run in its sandbox: too much changed meanwhile.")
