"""Translates operations to the tool names and arguments that hooks written for Claude Code expect (L5)."""

import os
import re
import shlex
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, cast

from duckflow.domain.decision import Action
from duckflow.domain.extensions import Hook
from duckflow.domain.patterns import lazy_regex

_EXACT = lazy_regex(r"[\w\-, |]+")
_CONDITION = lazy_regex(r"(\w+)\((.*)\)", re.DOTALL)
_PARTS = lazy_regex(r"&&|\|\||[;|&\n]")


class KnownTool(NamedTuple):
    """Tool name and input, as a hook receives them."""

    name: str
    input: dict[str, Any]


def known_as(action: Action, root: str) -> tuple[KnownTool, ...]:
    """Return the Claude Code tools that an action corresponds to. A hook gets the first one it matches.

    Claude Code has no tools for deleting and moving: they count as `rm` or `mv`, and as a change of the file.
    """
    args: dict[str, Any] = dict(action.args)

    def path(name: str = "path") -> str:
        """Return an argument as an absolute path without `..`, as Claude Code passes it."""
        return os.path.normpath(os.path.join(root, _text(args, name)))  # noqa: PTH118 - Path keeps ".."

    match action.operation:
        case "file_ops.read_file" | "file_ops.outline":
            start, end = args.get("start"), args.get("end")
            lines = {"offset": start} if start else {}
            lines |= {"limit": end - (start or 1) + 1} if isinstance(end, int) else {}
            return (KnownTool("Read", {"file_path": path(), **lines}),)
        case "file_ops.write_file":
            return (KnownTool("Write", {"file_path": path(), "content": _text(args, "content")}),)
        case "file_ops.edit_file":
            given = cast("list[dict[str, Any]]", args.get("edits") or [])
            edits = [
                {"old_string": one.get("find", ""), "new_string": one.get("replace", "")} for one in given
            ]
            whole = {key: "\n".join(str(one[key]) for one in edits) for key in ("old_string", "new_string")}
            return (
                KnownTool("Edit", {"file_path": path(), **whole}),
                KnownTool("MultiEdit", {"file_path": path(), "edits": edits}),
            )
        case "file_ops.edit_cell":
            known = {"notebook_path": path(), "new_source": _text(args, "source")}
            known |= {"cell_number": args.get("cell"), "edit_mode": args.get("change", "replace")}
            return (KnownTool("NotebookEdit", known),)
        case "file_ops.delete_file" | "file_ops.move_file" as operation:
            names = ("path", "to") if operation.endswith("move_file") else ("path",)
            program = "mv" if len(names) > 1 else "rm"
            command = shlex.join([program, *(_text(args, name) for name in names)])
            return (
                KnownTool("Bash", {"command": command, "description": action.reasoning or ""}),
                *(KnownTool("Write", {"file_path": path(name), "content": ""}) for name in names),
            )
        case "file_ops.list_files":
            pattern = _text(args, "pattern") or "*"
            return KnownTool("Glob", {"pattern": pattern, "path": path()}), KnownTool("LS", {"path": path()})
        case "file_ops.search":
            return (KnownTool("Grep", {**args, "path": path()}),)
        case _:
            return (_other_tool(action, args),)


def _other_tool(action: Action, args: dict[str, Any]) -> KnownTool:
    why = action.reasoning or ""
    match action.operation:
        case "web.fetch":
            return KnownTool("WebFetch", {"url": _text(args, "url"), "prompt": why})
        case "web.search":
            return KnownTool("WebSearch", {"query": _text(args, "query")})
        case "skill.read":
            return KnownTool("Skill", {"skill": _text(args, "name")})
        case "shell.run" | "shell.start" as operation:
            seconds = args.get("timeout_s")
            more: dict[str, Any] = {"timeout": seconds * 1000} if isinstance(seconds, int) else {}
            more |= {"run_in_background": True} if operation == "shell.start" else {}
            return KnownTool("Bash", {"command": _text(args, "command"), "description": why, **more})
        case "shell.read":
            return KnownTool("BashOutput", {"bash_id": _text(args, "id")})
        case "shell.stop":
            return KnownTool("KillShell", {"shell_id": _text(args, "id")})
        case operation if operation.startswith("mcp."):
            return KnownTool("__".join(operation.split(".", 2)), args)
        case operation:
            return KnownTool(operation, args)


def _text(args: dict[str, Any], name: str) -> str:
    return str(args.get(name) or "")


def fits(hook: Hook, tool: KnownTool) -> bool:
    """Return whether a hook applies to this tool."""
    return matches(hook.matcher, tool.name) and _meets(hook.condition, tool)


def matches(matcher: str, name: str) -> bool:
    """Return whether a matcher fits a tool name: it is a list of names, or a pattern to find in the name."""
    if matcher in ("", "*"):
        return True
    if _EXACT.fullmatch(matcher):
        return name in {one.strip() for one in re.split(r"[|,]", matcher)}
    try:
        return re.search(matcher, name) is not None
    except re.error:
        return True  # an invalid pattern fits everything, because a hook can only make rules stricter


def _meets(condition: str, tool: KnownTool) -> bool:
    """Return whether a rule such as `Bash(git push *)` fits. Invalid rules fit: hooks only restrict."""
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
