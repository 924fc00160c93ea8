"""The shell of one workspace: runs commands in the sandbox, one order each."""

import asyncio
import itertools
import os
import threading
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path

from duckflow.config.settings import ShellSettings
from duckflow.domain.errors import ToolError
from duckflow.domain.files.effects import Effects
from duckflow.domain.frozen import Frozen, replace
from duckflow.safety.sandbox.background import BackgroundOutput, LiveCopy
from duckflow.safety.sandbox.copy.copies import CopyFolders, WorkspaceCopy
from duckflow.safety.sandbox.copy.take_over import KeepChanges, TakenOver, take_over
from duckflow.safety.sandbox.launcher_client import Ending, Launcher
from duckflow.safety.sandbox.output import CommandOutput, Emit, Glimpses
from duckflow.safety.sandbox.probe import PROBE, Probe
from duckflow.safety.sandbox.view import bubblewrap
from duckflow.safety.sandbox.view.confinement import Limits, MadeRules, Order, confine, limits_of
from duckflow.safety.sandbox.view.folder_watch import FolderWatch
from duckflow.safety.sandbox.view.git_settings import IGNORED, passed_on
from duckflow.safety.sandbox.view.landlock_rules import LandlockRules
from duckflow.safety.sandbox.view.levels import Level, Sandbox
from duckflow.safety.sandbox.view.secret_index import SecretIndex
from duckflow.safety.sandbox.view.tracked_masks import TrackedMasks, ignore
from duckflow.safety.sandbox.view.visibility import Visibility, visibility_of
from duckflow.safety.sandbox.view.world import World, WorldParts, world_of, world_parts

LONGEST_COMMAND = 100_000
"""Bytes; the kernel takes 131,071 in one argument."""

_OF_BUBBLEWRAP = "bwrap: "
_BACKGROUND_SECONDS = 24 * 3600.0

RunOrder = Callable[[Order, Callable[[bytes], None]], Awaitable[Ending]]


class CommandResult(Frozen):
    """How a command ended and what it wrote. `exit_code` is None where it was stopped."""

    exit_code: int | None
    output: str
    timed_out: bool = False
    stopped: str | None = None
    """The limit it reached, if one stopped it: seconds, processes, memory_mb, disk_mb."""
    changed: tuple[str, ...] = ()
    """Without a copy: files of the workspace that differ now, as far as a bounded look can tell."""
    effects: Effects | None = None
    """With a copy: all that it did. Nothing of it has happened to the workspace yet."""
    copy_id: str = ""
    """The copy that holds the effects, if there are any: take it over or discard it."""


class Shell:
    """Runs commands in one workspace. Nothing is started or probed before the first is wanted."""

    def __init__(
        self,
        workspace: Path,
        settings: ShellSettings,
        *,
        closed: Iterable[Path] = (),
        env: Mapping[str, str] | None = None,
        copies: Path | None = None,
        probe: Probe = PROBE,
    ) -> None:
        self._workspace = Path(os.path.realpath(workspace))
        self._settings = settings
        self._closed = tuple(closed)
        self._env = os.environ if env is None else env
        self._probe = probe
        self._launcher = Launcher()
        self._probing = asyncio.Lock()
        self._place = copies
        self._folders: CopyFolders | None = None
        self._held: dict[str, WorkspaceCopy] = {}
        self._interrupted: list[str] = []
        self._known: WorldParts | None = None
        self._live: LiveCopy | None = None
        self._numbers = itertools.count(1)
        self._shown: dict[str, Effects] = {}
        """What the user is asked about, in a copy that commands still change."""
        self._secrets = SecretIndex(str(self._workspace))
        self._watch = FolderWatch(str(self._workspace))
        self._rules = LandlockRules()
        self._looking = threading.Lock()  # commands can run side by side; what is known of the folder is one
        self._ignored: object = None
        self._masks = TrackedMasks(str(self._workspace))

    @property
    def workspace(self) -> Path:
        """The folder commands run in."""
        return self._workspace

    @property
    def settings(self) -> ShellSettings:
        """What commands may take."""
        return self._settings

    async def sandbox(self) -> Sandbox:
        """What keeps commands in here; found out by trying, once for the process."""
        async with self._probing:  # who comes while it is being tried waits for the same answer
            copies = await self._copies() if self._place is not None else None
            return await self._probe.find(self._settings.sandbox, self._launcher, self._workspace, copies)

    async def run(
        self,
        command: str,
        *,
        timeout_s: float | None = None,
        network: bool = False,
        secrets: Collection[str] = (),
        emit: Emit | None = None,
    ) -> CommandResult:
        """Run a command to its end; ToolError if it could not be run at all. `secrets`: those it may see.

        Cancelling kills everything it started before it comes back.
        """
        _check(command)
        seconds = self._settings.timeout_s if timeout_s is None else timeout_s
        sandbox = await self.sandbox()
        limits = limits_of(self._settings, seconds)
        network = network or self._settings.network
        for _ in range(bubblewrap.TRIES if sandbox.copies else 0):
            try:
                return await self._run_on_copy(
                    command, sandbox, limits, emit, network=network, secrets=secrets
                )
            except ToolError as exc:
                if not bubblewrap.lost_a_mask(str(exc)):
                    raise
        if sandbox.copies:
            raise ToolError("The command could not be run in its sandbox: too much changed meanwhile.")
        temporary = await self._launcher.temporary()
        reach, rules = await asyncio.to_thread(self._look, temporary, sandbox.level)
        try:
            order = confine(command, sandbox, reach, limits, self._env, network=network, rules=rules)
            ending, written = await self._run(self._launcher.run, order, emit)
        finally:
            if rules is not None:
                os.close(rules.descriptor)
        _check_started(ending, written, sandbox)
        return replace(_result(ending, written), changed=await asyncio.to_thread(self._look_again))

    async def _run_on_copy(
        self,
        command: str,
        sandbox: Sandbox,
        limits: Limits,
        emit: Emit | None,
        *,
        network: bool,
        secrets: Collection[str],
    ) -> CommandResult:
        temporary = await self._launcher.temporary()
        if self._live is not None:
            world = await asyncio.to_thread(self._see, temporary, self._live.copy, secrets)
            view = self._live.copy.mount
            order = confine(command, sandbox, world, limits, self._env, network=network, view=view, held=True)
            ending, written = await self._run(partial(self._live.run, network=network), order, emit)
            _check_started(ending, written, sandbox)
            return await self._with_effects(_result(ending, written), self._live.copy)
        copies = await self._copies()
        world, copy = await asyncio.to_thread(self._prepare, copies, temporary, command, secrets)
        try:
            order = confine(command, sandbox, world, limits, self._env, network=network, view=copy.mount)
            ending, written = await self._run(self._launcher.run, order, emit)
            _check_started(ending, written, sandbox)
        except asyncio.CancelledError:
            if not copy.unused:
                self._held[copy.id] = copy
                self._interrupted.append(copy.id)
            raise
        except BaseException:
            copy.discard()
            raise
        if copy.unused:
            copies.give_back(copy)
            return replace(_result(ending, written), effects=Effects())
        return await self._with_effects(_result(ending, written), copy)

    async def _with_effects(self, result: CommandResult, copy: WorkspaceCopy) -> CommandResult:
        self._held[copy.id] = copy
        effects = (await asyncio.to_thread(copy.read)).effects
        if effects != Effects():
            return replace(result, effects=effects, copy_id=copy.id)
        if self._live is None:
            await self.discard(copy.id)
        return replace(result, effects=effects)

    @property
    def background(self) -> tuple[str, ...]:
        """The ids of the commands that run in the background."""
        return self._live.commands if self._live is not None else ()

    async def start(self, command: str, *, network: bool = False) -> str:
        """Let a command go on in the background: the id to read it and to stop it by.

        Until `end_background`, all commands share its view of the folder and its loopback.
        """
        _check(command)
        sandbox = await self.sandbox()
        if not sandbox.copies:
            raise ToolError("Nothing can run in the background here: that needs a copy of the folder.")
        if self._live is None:
            copy = await asyncio.to_thread((await self._copies()).make, str(self._workspace), command)
            self._live = LiveCopy(copy, await self._launcher.hold(copy.mount), self._numbers)
        limits = limits_of(self._settings, _BACKGROUND_SECONDS)
        temporary = await self._launcher.temporary()
        world = await asyncio.to_thread(self._see, temporary, self._live.copy)
        network = network or self._settings.network
        view = self._live.copy.mount
        order = confine(command, sandbox, world, limits, self._env, network=network, view=view, held=True)
        return self._live.start(order, self._settings.max_output_bytes, network=network)

    async def read(self, command_id: str, wait_s: float = 0, *, for_end: bool = False) -> BackgroundOutput:
        """What a background command wrote since it was last asked; waits a while for that, or for its end."""
        return await self._living().read(command_id, wait_s, for_end=for_end)

    async def stop(self, command_id: str) -> BackgroundOutput:
        """End a background command with all that it started."""
        return await self._living().stop(command_id)

    async def put(self, paths: Iterable[str]) -> None:
        """Show background commands what a file tool did to these files of the folder."""
        if self._live is not None:
            await self._live.put(paths)

    async def background_effects(self) -> CommandResult | None:
        """What was done next to background commands and is not taken over; the view ends with the last."""
        if self._live is None or not self._live.unheard:
            return await self.end_background()
        return await self._with_effects(CommandResult(exit_code=None, output=""), self._live.copy)

    async def end_background(self) -> CommandResult | None:
        """End all that runs in the background; what was done and not yet taken over, None if nothing ran."""
        if self._live is None:
            return None
        live, self._live = self._live, None
        self._shown.pop(live.copy.id, None)
        code = await live.aclose()
        return await self._with_effects(CommandResult(exit_code=code, output=""), live.copy)

    def _living(self) -> LiveCopy:
        if self._live is None:
            raise ToolError("Nothing runs in the background.")
        return self._live

    def _prepare(
        self, copies: CopyFolders, temporary: Path, command: str, secrets: Collection[str]
    ) -> tuple[World, WorkspaceCopy]:
        copy = copies.make(str(self._workspace), command)
        return self._see(temporary, copy, secrets), copy

    def _see(self, temporary: Path, copy: WorkspaceCopy, secrets: Collection[str] = ()) -> World:
        with self._looking:
            return self._seen(temporary, copy, secrets)

    def _seen(self, temporary: Path, copy: WorkspaceCopy, secrets: Collection[str]) -> World:
        granted = {os.path.normpath(self._workspace / path) for path in secrets}
        masked = tuple(path for path in self._secrets.find() if path not in granted)
        git = copy.about.git_directory
        masks, parts = self._masks.find(masked, f"{temporary}/masks"), self._parts(temporary)
        if (masked, parts.temporary) != self._ignored:
            ignore(f"{parts.temporary}/home/{IGNORED}", str(self._workspace), masked)
            self._ignored = (masked, parts.temporary)
        return world_of(parts, masked=masked, masks=masks, git_directory=git)

    async def hidden(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Those of these paths of the workspace that commands see empty, unless they are granted."""
        return await asyncio.to_thread(self._hidden, paths)

    def _hidden(self, paths: Iterable[str]) -> tuple[str, ...]:
        with self._looking:
            found = self._secrets.find()
        return tuple(path for path in paths if os.path.normpath(self._workspace / path) in found)

    @property
    def held(self) -> frozenset[str]:
        """The copies whose effects have neither been taken over nor thrown away."""
        live = {self._live.copy.id} if self._live is not None else set[str]()
        return frozenset(self._held) - live

    async def copy(self, copy_id: str) -> WorkspaceCopy:
        """A copy of this session, or one that an earlier one kept; ToolError if it is gone."""
        if copy_id not in self._held:
            found = await asyncio.to_thread((await self._copies()).find, copy_id)
            if found is None or found.about.workspace != str(self._workspace):
                raise ToolError("What the command did is no longer kept; run it again.")
            self._held[copy_id] = found
        return self._held[copy_id]

    async def effects(self, copy_id: str) -> Effects:
        """What a command did. If others go on in its copy, as it was when it was shown to somebody."""
        copy = await self.copy(copy_id)
        return self._shown.get(copy_id) or (await asyncio.to_thread(copy.read)).effects

    async def take_over(
        self,
        copy_id: str,
        approved: Effects,
        keep: KeepChanges | None = None,
        *,
        conflicts: Iterable[str] = (),
        owner: tuple[str, str, str] = ("", "", ""),
    ) -> TakenOver:
        """Make effects real.

        `keep` is told, in a thread, before each batch of them. Not cut short by cancelling.
        """
        copy = await self.copy(copy_id)
        live = self._live is not None and self._live.copy is copy
        copy.about = replace(copy.about, owner=owner)
        work = asyncio.ensure_future(
            asyncio.to_thread(take_over, copy, approved, keep, conflicts=tuple(conflicts), live=live)
        )
        try:
            taken = await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait([work])
            raise
        self._shown.pop(copy_id, None)
        if not taken.left and not live:
            self._held.pop(copy_id, None)
        return taken

    async def discard(self, copy_id: str) -> None:
        """Throw away what a command did."""
        copy = await self.copy(copy_id)
        self._shown.pop(copy_id, None)
        if self._live is not None and self._live.copy is copy:
            await self._live.revert()
            return
        del self._held[copy_id]
        await asyncio.to_thread(copy.discard)

    async def keep(self, copy_id: str, effects: Effects) -> None:
        """Let the effects wait for an answer, also past the end of this process."""
        if self._live is not None and self._live.copy.id == copy_id:
            self._shown[copy_id] = effects
        await asyncio.to_thread((await self.copy(copy_id)).keep)

    def take_interrupted(self) -> tuple[str, ...]:
        """The copies of commands that were cancelled after they had done something, each told once."""
        told, self._interrupted = tuple(self._interrupted), []
        return told

    async def _copies(self) -> CopyFolders:
        if self._folders is None:
            if self._place is None:
                raise ToolError("Commands work on no copy here.")
            parts = await asyncio.to_thread(self._parts, await self._launcher.temporary())
            self._folders = CopyFolders(self._place, parts.seen_outside)
            await asyncio.to_thread(self._folders.sweep)
        return self._folders

    async def _run(self, run: RunOrder, order: Order, emit: Emit | None) -> tuple[Ending, str]:
        output, glimpses = CommandOutput(self._settings.max_output_bytes), Glimpses(emit)

        def take(block: bytes) -> None:
            output.take(block)
            glimpses.take(block)

        ending = await run(order, take)
        glimpses.finish()
        return ending, output.text()

    async def aclose(self) -> None:
        """End all that runs, remove the temporary folder and every copy that was not kept."""
        if self._live is not None:
            live, self._live = self._live, None
            await live.aclose()
            self._held[live.copy.id] = live.copy
        await self._launcher.aclose()
        self._secrets.close()
        self._watch.close()
        self._rules.close()
        if self._folders is not None:
            await asyncio.to_thread(self._close_copies, self._folders)

    def _close_copies(self, folders: CopyFolders) -> None:
        folders.close()
        for copy in self._held.values():
            if copy.about.kept:
                copy.release()
            else:
                copy.discard()
        self._held.clear()

    def _look(self, temporary: Path, level: Level) -> tuple[World | Visibility, MadeRules | None]:
        """What a command without a copy can reach, and Landlock's rules, if that is it."""
        with self._looking:
            guarded = self._watch.begin()
            if level in ("bubblewrap", "namespaces"):
                return world_of(self._parts(temporary), guarded=guarded), None
            home = Path(self._env.get("HOME") or Path.home())
            reach = visibility_of(self._workspace, temporary, home, self._closed, guarded)
            return reach, self._rules.find(reach) if level == "landlock" else None

    def _look_again(self) -> tuple[str, ...]:
        with self._looking:
            return self._watch.end()

    def _parts(self, temporary: Path) -> WorldParts:
        """What the commands of this session see, as long as the launcher with its folders lives."""
        if self._known is None or self._known.temporary != str(temporary):
            closed = [str(path) for path in self._closed]
            self._known = world_parts(str(self._workspace), str(temporary), self._env, closed)
            settings = Path(self._known.temporary, "home", ".gitconfig")
            settings.write_text(passed_on(self._known.home, self._env), "utf-8", "surrogateescape")
            self._launcher.expect(self._known.mounts[: self._known.ahead])
        return self._known


def _result(ending: Ending, written: str) -> CommandResult:
    return CommandResult(
        exit_code=ending.code if ending.stopped is None else None,
        output=written,
        timed_out=ending.stopped == "seconds",
        stopped=ending.stopped,
    )


def _check(command: str) -> None:
    if not command.strip():
        raise ToolError("The command is empty.")
    if "\0" in command:
        raise ToolError("A command may not contain NUL.")
    size = len(command.encode("utf-8", "surrogatepass"))
    if size > LONGEST_COMMAND:
        raise ToolError(
            f"The command has {size} bytes, {LONGEST_COMMAND} at most; write a script file and run that."
        )


def _check_started(ending: Ending, written: str, sandbox: Sandbox) -> None:
    """ToolError where the sandbox did not stand: then nothing ran, and nothing runs without it."""
    if ending.error:
        said = f"{ending.error}: {written.strip()[:300]}" if written.strip() else ending.error
        raise ToolError(f"The command could not be run in its sandbox ({sandbox.level}): {said}.")
    if sandbox.level == "bubblewrap" and ending.code == 1 and written.startswith(_OF_BUBBLEWRAP):
        raise ToolError(f"The command could not be run in its sandbox: {written.strip()[:300]}.")
