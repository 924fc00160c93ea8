"""What the commands of one session see of the machine and of the workspace."""

import os
import threading
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from duckflow.safety.sandbox.copy.copies import WorkspaceCopy
from duckflow.safety.sandbox.launcher_client import Launcher
from duckflow.safety.sandbox.view.confinement import LaunchOrder, Limits, confine
from duckflow.safety.sandbox.view.folder_watch import FolderWatch
from duckflow.safety.sandbox.view.git_settings import IGNORED, passed_on
from duckflow.safety.sandbox.view.landlock_rules import LandlockRules
from duckflow.safety.sandbox.view.levels import Sandbox
from duckflow.safety.sandbox.view.secret_index import SecretIndex
from duckflow.safety.sandbox.view.tracked_masks import TrackedMasks, ignore
from duckflow.safety.sandbox.view.visibility import visibility_of
from duckflow.safety.sandbox.view.world import World, WorldParts, world_of, world_parts


class ShellView:
    """Looks once and is told of changes. All of it blocks; commands can run side by side.

    `closed` are Duckflow's own folders, `programs` those with programs of its own. `temporary` is the
    launcher's folder, as long as that lives.
    """

    def __init__(
        self,
        workspace: Path,
        closed: Iterable[Path],
        env: Mapping[str, str],
        launcher: Launcher,
        programs: Iterable[Path] = (),
    ) -> None:
        self._workspace = workspace
        self._programs = tuple(programs)
        self._closed = tuple(closed)
        self._env = env
        self._launcher = launcher
        self._known: WorldParts | None = None
        self._secrets = SecretIndex(str(workspace))
        self._masks = TrackedMasks(str(workspace))
        self._ignored: object = None
        self._watch = FolderWatch(str(workspace))
        self._rules = LandlockRules()
        self._looking = threading.Lock()  # what is known of the folder is one

    def parts(self, temporary: Path) -> WorldParts:
        """What all commands see."""
        if self._known is None or self._known.temporary != str(temporary):
            closed = [str(path) for path in self._closed]
            seen = {**self._env, "PATH": ":".join((self._env.get("PATH", ""), *map(str, self._programs)))}
            self._known = world_parts(str(self._workspace), str(temporary), seen, closed)
            settings = Path(self._known.temporary, "home", ".gitconfig")
            settings.write_text(passed_on(self._known.home, self._env), "utf-8", "surrogateescape")
            self._launcher.expect(self._known.mounts[: self._known.ahead])
        return self._known

    def on_copy(self, temporary: Path, copy: WorkspaceCopy, secrets: Collection[str] = ()) -> World:
        """What a command on a copy sees; `secrets` are those it is granted."""
        with self._looking:
            granted = {os.path.normpath(self._workspace / path) for path in secrets}
            masked = tuple(path for path in self._secrets.find() if path not in granted)
            masks, parts = self._masks.find(masked, f"{temporary}/masks"), self.parts(temporary)
            if (masked, parts.temporary) != self._ignored:
                ignore(f"{parts.temporary}/home/{IGNORED}", str(self._workspace), masked)
                self._ignored = (masked, parts.temporary)
            return world_of(parts, masked=masked, masks=masks, git_directory=copy.about.git_directory)

    def confine(
        self, command: str, sandbox: Sandbox, limits: Limits, temporary: Path, *, network: bool
    ) -> LaunchOrder:
        """The order for a command without a copy; what it changes from here on is told by `changed`."""
        with self._looking:
            guarded = self._watch.begin()
            if sandbox.level in ("bubblewrap", "namespaces"):
                reach = world_of(self.parts(temporary), guarded=guarded)
            else:
                home = Path(self._env.get("HOME") or Path.home())
                reach = visibility_of(self._workspace, temporary, home, self._closed, guarded)
            return confine(command, sandbox, reach, limits, self._env, network=network, rules=self._rules)

    def changed(self) -> tuple[str, ...]:
        """The files that a command without a copy made, changed or removed."""
        with self._looking:
            return self._watch.end()

    def hidden(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Those of these paths of the workspace that commands see empty, unless they are granted."""
        with self._looking:
            found = self._secrets.find()
        return tuple(path for path in paths if os.path.normpath(self._workspace / path) in found)

    def close(self) -> None:
        """Stop watching."""
        self._secrets.close()
        self._watch.close()
        self._rules.close()
