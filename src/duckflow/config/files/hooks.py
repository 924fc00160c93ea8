"""Hook files: JSON as in Claude Code's settings. Parsed strictly, because hooks protect the user."""

import json
from pathlib import Path
from typing import Any, cast, get_args

from duckflow.config.toml_file import read_text
from duckflow.domain.errors import UsageError
from duckflow.domain.extensions import HOOK_SECONDS, Hook, HookEvent, HookList

HOOKS_FILE = "hooks.json"
_LONGEST_S = 3_600.0


def read_hooks(path: Path, *, named: bool = False) -> HookList:
    """Read the hooks of a file. A missing file has no hooks, but is an error if the user `named` it."""
    content = read_text(path)
    if content is None and named:
        raise UsageError("hooks.broken", path=path, reason="there is no such file")
    return parse_hooks(content, str(path)) if content is not None else HookList()


def parse_hooks(content: str, origin: str) -> HookList:
    """Parse hooks. Any mistake is a UsageError, because a hook that protects the user must not be lost."""
    try:
        tables: object = _table(json.loads(content)).get("hooks", {})
        hooks: list[Hook] = []
        unused: list[str] = []
        for event, groups in _table(tables).items():
            if event not in get_args(HookEvent):
                unused.append(event)
                continue
            for group in groups:
                _read_group(cast("HookEvent", event), _table(group), origin, hooks, unused)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as exc:
        raise UsageError("hooks.broken", path=origin, reason=_reason(exc)) from exc
    return HookList(hooks=tuple(hooks), unused=tuple(dict.fromkeys(unused)))


def _read_group(
    event: HookEvent, group: dict[str, Any], origin: str, hooks: list[Hook], unused: list[str]
) -> None:
    for one in map(_table, group["hooks"]):
        if one.get("type", "command") != "command":
            unused.append(f"{event}: {one['type']}")
            continue
        hooks.append(
            Hook(
                event=event,
                matcher=_text(group.get("matcher") or ""),
                condition=_text(one.get("if", "")),
                command=_command(one),
                seconds=min(float(one.get("timeout", HOOK_SECONDS)), _LONGEST_S),
                blocks_on_failure=one.get("onFailure") == "block",
                origin=origin,
            )
        )


def _command(one: dict[str, Any]) -> str:
    from shlex import join  # noqa: PLC0415 - only if there are hooks

    words = one.get("args")
    command = _text(one["command"])
    if not command.strip():
        raise ValueError("a command is empty")
    return join([command, *map(_text, words)]) if words is not None else command


def _table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{str(value)[:40]!r} is no object")
    return cast("dict[str, Any]", value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:40]!r} is no text")
    return value


def _reason(exc: Exception) -> str:
    return f"{exc} is missing" if isinstance(exc, KeyError) else str(exc)
