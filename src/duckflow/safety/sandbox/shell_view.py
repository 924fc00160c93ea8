"""Mounts and read-only paths for the commands of one session, with secrets hidden."""

import os
import threading
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Literal

from duckflow.domain.frozen import replace
from duckflow.safety.sandbox.copy.copies import WorkspaceCopy
from duckflow.safety.sandbox.launcher_client import Launcher
from duckflow.safety.sandbox.view.confinement import LaunchOrder, Limits, confine
from duckflow.safety.sandbox.view.folder_watch import FolderWatch
from duckflow.safety.sandbox.view.git_settings import IGNORED, passed_on
from duckflow.safety.sandbox.view.levels import Sandbox
from duckflow.safety.sandbox.view.masks import Masks, ignore
from duckflow.safety.sandbox.view.mount_plan import (
    MASK_KINDS,
    BaseMounts,
    Mount,
    MountPlan,
    base_mounts,
    mount_plan,
)
from duckflow.safety.sandbox.view.secret_index import SecretIndex
from duckflow.safety.sandbox.view.visibility import LandlockRules, visibility_of

_MASKS = "masks"
"""Name of a folder for the empty files that commands see instead of secrets."""


class ShellView:
    """Scans the folder once and then follows its changes. Blocking. Several commands can use it at once."""

    def __init__(
        self,
        workspace: Path,
        closed: Iterable[Path],
        env: Mapping[str, str],
        launcher: Launcher,
        programs: Iterable[Path] = (),
        reads: Iterable[str] = (),
        writes: Iterable[str] = (),
        home: str = "",
    ) -> None:
        """Commands also see `programs`, `reads` and, writable, `writes`; `home` becomes their home."""
        self._workspace = workspace
        self._programs = tuple(programs)
        self._reads = tuple(reads)
        self._writes = tuple(writes)
        self._home = home
        self._closed = tuple(closed)
        self._env = env
        self._launcher = launcher
        self._known: BaseMounts | None = None
        self._secrets = SecretIndex(
            str(workspace), active=os.path.realpath(env.get("VIRTUAL_ENV", "") or "/")
        )
        self.masks = Masks()
        """Placeholders that commands see instead of secrets."""
        self._ignored: object = None
        self._watch = FolderWatch(str(workspace))
        self._rules = LandlockRules()
        self._looking = threading.Lock()  # guards the data about the folder, which several threads use

    def base(self, temporary: Path) -> BaseMounts:
        """Return the mounts that all commands get."""
        if self._known is None or self._known.temporary != str(temporary):
            closed = [str(path) for path in self._closed]
            seen = {**self._env, "PATH": ":".join((self._env.get("PATH", ""), *map(str, self._programs)))}
            base = base_mounts(
                str(self._workspace),
                str(temporary),
                seen,
                closed,
                reads=self._reads,
                writes=self._writes,
                home_source=self._home,
            )
            self._known = replace(base, mounts=self._with_masks(base))
            settings = Path(base.home_source, ".gitconfig")
            settings.write_text(passed_on(self._known.home, self._env), "utf-8", "surrogateescape")
            self._launcher.expect(self._known.mounts[: self._known.ahead])
        return self._known

    def on_copy(self, temporary: Path, copy: WorkspaceCopy, secrets: Collection[str] = ()) -> MountPlan:
        """Return the mounts for a command on a copy. `secrets` are the secret files that it may see."""
        with self._looking:
            masks = self._hide(temporary, secrets)
            return mount_plan(self.base(temporary), masks=masks, git_directory=copy.about.git_directory)

    def _hide(self, temporary: Path, secrets: Collection[str]) -> Mapping[str, str]:
        """Return an empty file to show for each secret of the workspace, except for granted ones."""
        granted = {os.path.normpath(self._workspace / path) for path in secrets}
        found = {path: noted for path, noted in self._secrets.find().items() if path not in granted}
        masks = self.masks.find(found, temporary / _MASKS)
        if (tuple(found), temporary) != self._ignored:
            home = self.base(temporary).home_source
            ignore(f"{home}/{IGNORED}", str(self._workspace), found)
            self._ignored = (tuple(found), temporary)
        return masks

    def _with_masks(self, base: BaseMounts) -> tuple[Mount, ...]:
        hidden = dict.fromkeys(one.target for one in base.mounts if one.kind in MASK_KINDS)
        masks = self.masks.find(hidden, Path(base.temporary, _MASKS))
        return tuple(
            replace(one, source=masks[one.target]) if one.target in masks else one for one in base.mounts
        )

    def confine(
        self,
        command: str,
        sandbox: Sandbox,
        limits: Limits,
        temporary: Path,
        secrets: Collection[str] = (),
        *,
        network: bool,
        access: Literal["none", "read", "write"] = "write",
    ) -> LaunchOrder:
        """Return the order for a command without a copy. `changed` reports the changes afterwards."""
        with self._looking:
            whole = str(self._workspace)
            guarded = self._watch.begin() if access == "write" else (whole,)
            if access == "none" and sandbox.level in ("bubblewrap", "namespaces"):
                reach = mount_plan(self.base(temporary), masks={whole: ""})
            elif sandbox.level in ("bubblewrap", "namespaces"):
                masks = self._hide(temporary, secrets)
                reach = mount_plan(self.base(temporary), masks=masks, guarded=guarded)
            else:
                home = Path(self._env.get("HOME") or Path.home())
                reach = visibility_of(self._workspace, temporary, home, self._closed, guarded)
                reach = replace(reach, writes=(*self._writes, *((self._home,) if self._home else ())))
            return confine(command, sandbox, reach, limits, self._env, network=network, rules=self._rules)

    def changed(self) -> tuple[str, ...]:
        """Return the files that the last command without a copy created, changed or removed."""
        with self._looking:
            return self._watch.end()

    def hidden(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return which of these workspace paths commands see empty unless the user grants access."""
        with self._looking:
            found = self._secrets.find()
        return tuple(path for path in paths if os.path.normpath(self._workspace / path) in found)

    def close(self) -> None:
        """Stop watching the folder."""
        self._secrets.close()
        self.masks.close()
        self._watch.close()
        self._rules.close()
