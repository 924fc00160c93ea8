"""Our operations by the names and arguments that hooks written for Claude Code look for (L5)."""

import os
import re
import shlex
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, cast

from duckflow.domain.decision import Action
from duckflow.domain.extensions import Hook
from duckflow.domain.patterns import lazy_regex

_EXACT = lazy_regex(r"[\w\-, |]+")
_CONDITION = lazy_regex(r"(\w+)\((.*)\)", re.DOTALL)
_PARTS = lazy_regex(r"&&|\|\||[;|&\n]")


class KnownTool(NamedTuple):
    """A tool as a hook knows it."""

    name: str
    input: dict[str, Any]


class _Call(NamedTuple):
    """An action as the table below reads it."""

    args: dict[str, Any]
    root: str
    why: str

    def text(self, name: str) -> str:
        """An argument in words."""
        return str(self.args.get(name) or "")

    def path(self, name: str = "path") -> str:
        """An argument as a whole path without detours: that is what hooks get elsewhere."""
        return os.path.normpath(os.path.join(self.root, self.text(name)))  # noqa: PTH118 - Path keeps ".."


def known_as(action: Action, root: str) -> tuple[KnownTool, ...]:
    """The tools that an action is, for hooks; the first name that a hook is for is what it gets.

    There is no tool for deleting or moving elsewhere: that is `rm` and `mv`, and a change of the file.
    """
    args: dict[str, Any] = dict(action.args)
    view = _KNOWN.get(action.operation)
    if view is not None:
        return view(_Call(args, root, action.reasoning or ""))
    if action.operation.startswith("mcp."):
        return (KnownTool("__".join(action.operation.split(".", 2)), args),)
    return (KnownTool(action.operation, args),)


def fits(hook: Hook, tool: KnownTool) -> bool:
    """Whether a hook is for this tool."""
    return matches(hook.matcher, tool.name) and _meets(hook.condition, tool)


def matches(matcher: str, name: str) -> bool:
    """Names, alone or in a list, are meant exactly; anything else is a pattern to be found in the name."""
    if matcher in ("", "*"):
        return True
    if _EXACT.fullmatch(matcher):
        return name in {one.strip() for one in re.split(r"[|,]", matcher)}
    try:
        return re.search(matcher, name) is not None
    except re.error:
        return True  # what can't be read is for everything: a hook can only tighten


def _meets(condition: str, tool: KnownTool) -> bool:
    """Whether a rule such as `Bash(git push *)` holds; one that can't be read does."""
    if not condition:
        return True
    found = _CONDITION.fullmatch(condition)
    if found is None:
        return condition == tool.name or not re.fullmatch(r"\w+", condition)
    if found[1] != tool.name:
        return False
    pattern = found[2].removesuffix(":*") + "*" if found[2].endswith(":*") else found[2]
    meant = str(tool.input.get("command") or tool.input.get("file_path") or "")
    parts = [meant, *(part.strip() for part in _PARTS.split(meant))]
    return any(fnmatchcase(part, pattern) or part.endswith(f"/{pattern}") for part in parts)


def _reads(call: _Call) -> tuple[KnownTool, ...]:
    start, end = call.args.get("start"), call.args.get("end")
    lines = {"offset": start} if start else {}
    lines |= {"limit": end - (start or 1) + 1} if isinstance(end, int) else {}
    return (KnownTool("Read", {"file_path": call.path(), **lines}),)


def _edits(call: _Call) -> tuple[KnownTool, ...]:
    given = cast("list[dict[str, Any]]", call.args.get("edits") or [])
    edits = [{"old_string": one.get("find", ""), "new_string": one.get("replace", "")} for one in given]
    whole = {key: "\n".join(str(one[key]) for one in edits) for key in ("old_string", "new_string")}
    where = {"file_path": call.path()}
    return KnownTool("Edit", {**where, **whole}), KnownTool("MultiEdit", {**where, "edits": edits})


def _deletes(call: _Call) -> tuple[KnownTool, ...]:
    return (
        KnownTool("Bash", {"command": shlex.join(["rm", call.text("path")]), "description": call.why}),
        KnownTool("Write", {"file_path": call.path(), "content": ""}),
    )


def _moves(call: _Call) -> tuple[KnownTool, ...]:
    command = shlex.join(["mv", call.text("path"), call.text("to")])
    return (
        KnownTool("Bash", {"command": command, "description": call.why}),
        KnownTool("Write", {"file_path": call.path(), "content": ""}),
        KnownTool("Write", {"file_path": call.path("to"), "content": ""}),
    )


def _runs(call: _Call) -> tuple[KnownTool, ...]:
    seconds = call.args.get("timeout_s")
    limit = {"timeout": seconds * 1000} if isinstance(seconds, int) else {}
    return (KnownTool("Bash", {"command": call.text("command"), "description": call.why, **limit}),)


_KNOWN: Mapping[str, Callable[[_Call], tuple[KnownTool, ...]]] = {
    "file_ops.read_file": _reads,
    "file_ops.outline": _reads,
    "file_ops.write_file": lambda call: (
        KnownTool("Write", {"file_path": call.path(), "content": call.text("content")}),
    ),
    "file_ops.edit_file": _edits,
    "file_ops.delete_file": _deletes,
    "file_ops.move_file": _moves,
    "file_ops.list_files": lambda call: (
        KnownTool("Glob", {"pattern": call.text("pattern") or "*", "path": call.path()}),
        KnownTool("LS", {"path": call.path()}),
    ),
    "file_ops.search": lambda call: (KnownTool("Grep", {**call.args, "path": call.path()}),),
    "web.fetch": lambda call: (KnownTool("WebFetch", {"url": call.text("url"), "prompt": call.why}),),
    "skill.read": lambda call: (KnownTool("Skill", {"skill": call.text("name")}),),
    "shell.run": _runs,
    "shell.start": lambda call: (KnownTool("Bash", {**_runs(call)[0].input, "run_in_background": True}),),
    "shell.read": lambda call: (KnownTool("BashOutput", {"bash_id": call.text("id")}),),
    "shell.stop": lambda call: (KnownTool("KillShell", {"shell_id": call.text("id")}),),
}
