"""Hook files: JSON as in Claude Code's settings. Parsed strictly, because hooks protect the user."""

from pathlib import Path
from typing import Any, cast, get_args

from pydantic import BaseModel, Field, ValidationError

from duckflow.config.toml_file import read_text
from duckflow.domain.errors import UsageError
from duckflow.domain.extensions import HOOK_SECONDS, Hook, HookEvent, HookList
from duckflow.domain.reading.faults import describe_faults

HOOKS_FILE = "hooks.json"
_LONGEST_S = 3_600.0


class _Entry(BaseModel, defer_build=True):
    type: str = "command"
    command: str = ""
    args: tuple[str, ...] | None = None
    condition: str = Field(default="", alias="if")
    timeout: float = HOOK_SECONDS
    on_failure: Any = Field(default=None, alias="onFailure")


class _Group(BaseModel, defer_build=True):
    matcher: str | None = None
    hooks: tuple[_Entry, ...]


class _File(BaseModel, defer_build=True):
    hooks: dict[str, Any] = {}


def read_hooks(path: Path, *, named: bool = False) -> HookList:
    """Read the hooks of a file. A missing file has no hooks, but is an error if the user `named` it."""
    content = read_text(path)
    if content is None and named:
        raise UsageError("hooks.broken", path=path, reason="there is no such file")
    return parse_hooks(content, str(path)) if content is not None else HookList()


def parse_hooks(content: str, origin: str) -> HookList:
    """Parse hooks. Any mistake is a UsageError, because a hook that protects the user must not be lost."""
    hooks: list[Hook] = []
    unused: list[str] = []
    try:
        for event, groups in _File.model_validate_json(content).hooks.items():
            if event not in get_args(HookEvent):
                unused.append(event)
                continue
            for group in map(_Group.model_validate, groups):
                own = [one for one in group.hooks if one.type == "command"]
                unused += [f"{event}: {one.type}" for one in group.hooks if one.type != "command"]
                hooks += [_hook(cast("HookEvent", event), group.matcher, one, origin) for one in own]
    except (ValueError, TypeError) as exc:
        reason = describe_faults(exc, _Group) if isinstance(exc, ValidationError) else exc
        raise UsageError("hooks.broken", path=origin, reason=reason) from exc
    return HookList(hooks=tuple(hooks), unused=tuple(dict.fromkeys(unused)))


def _hook(event: HookEvent, matcher: str | None, entry: _Entry, origin: str) -> Hook:
    from shlex import join  # noqa: PLC0415 - only if there are hooks

    if not entry.command.strip():
        raise ValueError("a command is empty")
    return Hook(
        event=event,
        matcher=matcher or "",
        condition=entry.condition,
        command=entry.command if entry.args is None else join([entry.command, *entry.args]),
        seconds=min(entry.timeout, _LONGEST_S),
        blocks_on_failure=entry.on_failure == "block",
        origin=origin,
    )
