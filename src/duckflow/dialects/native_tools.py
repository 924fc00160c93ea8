"""Operations as native tools: the common ones each as a tool, the rare ones through one shared tool (A8)."""

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import cast

from duckflow.domain.decision import Action, Operation
from duckflow.domain.model import JsonSchema, NativeTool, ToolCall
from duckflow.llm.answers.strict_json import JsonObject, UnusableAnswer, parse_object

NOTE, ASK_USER, FINISH, RARE = "note", "ask_user", "finish", "other"

COMMON: Mapping[str, str] = {
    "file_ops.read_file": "read_file",
    "file_ops.write_file": "write_file",
    "file_ops.edit_file": "edit_file",
    "file_ops.search": "search",
    "shell.run": "shell",
    "changes.undo": "undo_changes",
    "review.report_finding": "report_finding",
}
"""Tool name of each operation that has a separate tool; models know these names."""

ALIASES: Mapping[str, str] = {
    "bash": "shell.run",
    "run_command": "shell.run",
    "grep": "file_ops.search",
    "delete_file": "file_ops.delete_file",
    "move_file": "file_ops.move_file",
    "list_files": "file_ops.list_files",
}
"""Operations by names that models use although no such tool was offered."""

_OWN = ("file_ops", "shell", "plan_tool", "task_tool", "task_loop", "memory", "code")
"""Families listed only by the names of their operations; operations of other families get a line each."""

FAMILIES: Mapping[str, str] = {
    "shell": "background; read also shows results that were cut",
    "plan_tool": "long work",
    "code": "exact, by a language server: symbol, path?",
    "task_loop": "background",
}
"""Purpose of families of rare operations whose names do not explain their purpose."""

_OPERATIONS = {name: operation for operation, name in COMMON.items()} | dict(ALIASES)
_STRING: JsonSchema = {"type": "string"}


def _schema(properties: JsonSchema, *required: str) -> JsonSchema:
    return {"type": "object", "properties": properties, **({"required": [*required]} if required else {})}


EDIT_SCHEMA = _schema(
    {
        "path": _STRING,
        "old_string": {**_STRING, "description": "exact, found once"},
        "new_string": _STRING,
        "replace_all": {"type": "boolean"},
    },
    "path",
    "old_string",
    "new_string",
)

NOTE_TOOL = NativeTool(
    name=NOTE,
    description=(
        "Notes beside other calls, an item a line. With a request's first calls: requirements, all that the "
        "user wants, (2) or (3) behind what matters less, (answer) behind what the reply must tell; profile "
        "(debugging, file_operation, research, …). doubt: why these calls may be wrong. pattern "
        "base_main_specialized: show the step's procedure"
    ),
    parameters=_schema(
        dict.fromkeys(("requirements", "profile", "goal", "plan", "doubt", "pattern"), _STRING)
    ),
)

FINISH_TOOL = NativeTool(
    name=FINISH,
    description="Beside the last calls, such as tests: ends your turn with this reply if they all succeed",
    parameters=_schema({"reply": _STRING}, "reply"),
)

ASK_TOOL = NativeTool(
    name=ASK_USER,
    description="ask what only the user can answer; ends your turn",
    parameters=_schema({"question": _STRING}, "question"),
)


def native_tools(operations: Sequence[Operation]) -> tuple[NativeTool, ...]:
    """Return a tool for each common operation, one for all others, and those to note, finish and ask."""
    common = [_common(operation) for operation in operations if operation.name in COMMON]
    rare = [operation for operation in operations if operation.name not in COMMON]
    return (*common, *([_rare(rare)] if rare else []), NOTE_TOOL, FINISH_TOOL, ASK_TOOL)


def _common(operation: Operation) -> NativeTool:
    edits, name = operation.name == "file_ops.edit_file", COMMON[operation.name]
    return NativeTool(
        name=name,
        description=_KNOWN.get(name) or operation.line.partition("): ")[2],
        parameters=EDIT_SCHEMA if edits else _slim(operation.schema()),
    )


_KNOWN = {
    "read_file": "read file; also a picture, a notebook, or a PDF by pages",
    "write_file": "write file",
    "edit_file": "edit file",
}
"""Descriptions of tools whose name and arguments say almost everything."""

_PLAIN = ("path", "content", "start", "end", "pattern", "glob", "command", "context", "timeout_s")
"""Arguments that need no description."""


def _slim(schema: JsonSchema) -> JsonSchema:
    properties = {
        name: {
            key: value
            for key, value in field.items()
            if key not in ("default", "minimum") and not (key == "description" and name in _PLAIN)
        }
        for name, field in schema.get("properties", {}).items()
    }
    return _schema(properties, *schema.get("required", []))


def _rare(operations: Sequence[Operation]) -> NativeTool:
    """Build one tool for many operations. It describes an operation when called without arguments."""
    families = groupby(operations, key=lambda operation: operation.name.partition(".")[0])
    lines = "; ".join(_family(name, list(members)) for name, members in families)
    return NativeTool(
        name=RARE,
        description=f"Rare operations; without args you get a description. {lines}",
        parameters=_schema({"operation": _STRING, "args": {"type": "object"}}, "operation"),
    )


def _family(name: str, members: Sequence[Operation]) -> str:
    if name not in _OWN:
        return "\n".join(member.line for member in members)
    first, *others = (member.name for member in members)
    calls = ", ".join([first, *(other.rpartition(".")[2] for other in others)])
    return f"{calls} ({FAMILIES[name]})" if name in FAMILIES else calls


def describe(operation: Operation) -> str:
    """Describe an operation and its arguments in full."""
    schema = json.dumps(operation.schema(), ensure_ascii=False)
    return f"{operation.line}\nargs: {schema}\nCall it with its args to run it."


def asks_for_description(call: ToolCall, args: JsonObject) -> str | None:
    """Return the operation whose description a call requests, or None if the call is for something else."""
    bare = set(args) <= {"operation", "args"} and args.get("args") in (None, {}, "", "{}")
    return str(args.get("operation", "")) if call.name == RARE and bare else None


def native_name(operation: str) -> str:
    """Return the name by which models know an operation."""
    return COMMON.get(operation, operation)


def action_of(call: ToolCall, args: JsonObject) -> Action:
    """Convert a call to the action that it stands for."""
    name = call.name.strip()
    if name == RARE:
        name, args = str(args.get("operation", "")).strip(), _inner(args)
    operation = _OPERATIONS.get(name, name.replace("__", "."))
    if not operation:
        raise UnusableAnswer(f"`{RARE}` needs the name of an operation")
    return Action(operation=operation, args=args, call_id=call.id)


def _inner(args: JsonObject) -> JsonObject:
    """Return the arguments of a rare operation. Some models write them beside `operation`, or as text."""
    inner = args.get("args")
    if isinstance(inner, str) and inner.strip():
        return parse_object(inner)
    if isinstance(inner, dict):
        return cast("JsonObject", inner)
    return {name: value for name, value in args.items() if name not in ("operation", "args")}
