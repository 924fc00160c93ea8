"""Adds MCP servers to the user's configuration file, or removes them. All other text stays unchanged."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from duckflow.config.layers import validate
from duckflow.config.mcp import VARIABLE, McpServer, from_home, user_variables
from duckflow.config.toml_file import parse, read_text, save_text
from duckflow.domain.errors import UsageError
from duckflow.domain.frozen import replace
from duckflow.domain.lines import TextLine, line
from duckflow.domain.patterns import lazy_regex

_NAME = lazy_regex(r"[a-z0-9][a-z0-9_-]{0,39}")
_LARGEST = 1_000_000
_COMMENT = lazy_regex(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = lazy_regex(r'"(?:\\.|[^"\\])*"|,(?=\s*[}\]])', re.DOTALL)
_REFERENCE = lazy_regex(r"\$\{(?:env|input):([^}:]+)\}")
_CODE = (".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".rb", ".php", ".jar")
_MARKS = {".git", "node_modules", "package.json", "pyproject.toml", "requirements.txt", ".venv", "venv"}
_SYSTEM = ("/usr/", "/bin/", "/opt/", "/nix/", "/snap/")
"""Folders that every command can read anyway."""


def add_server(path: Path, name: str, server: McpServer) -> None:
    """Add a server to the file. Raise UsageError if the name is taken or not allowed."""
    if not _NAME.fullmatch(name):
        raise UsageError("mcp.bad_name", name=name)
    before = read_text(path) or ""
    if name in _servers(parse(before, path)):
        raise UsageError("mcp.exists", name=name)
    _save(path, f"{before.rstrip()}\n\n{_table(name, server)}".lstrip("\n"))


def remove_server(path: Path, name: str) -> None:
    """Remove a server. Raise UsageError if it is not in the file, or if it must be removed by hand."""
    before = read_text(path) or ""
    if name not in _servers(parse(before, path)):
        raise UsageError("mcp.no_such", name=name)
    kept: list[str] = []
    inside = False
    for row in before.split("\n"):
        if row.lstrip().startswith("["):
            inside = re.match(rf"\s*\[mcp\.servers\.{re.escape(name)}[.\]]", row) is not None
        if not inside:
            kept.append(row)
    after = "\n".join(kept)
    try:
        left = _servers(parse(after, path))
    except UsageError:
        left = {name: None}
    if name in left:
        raise UsageError("mcp.by_hand", name=name, path=path)
    _save(path, after)


def read_foreign(path: Path) -> tuple[dict[str, McpServer], dict[str, str]]:
    """Return two tables from another agent's JSON: the servers, and the reason for each unusable server."""
    try:
        with path.open("rb") as file:
            entries = _entries(file.read(_LARGEST).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError) as exc:
        raise UsageError("mcp.bad_file", path=path) from exc
    return foreign_servers(entries)


def project_servers(content: str, path: Path) -> tuple[dict[str, object], list[TextLine]]:
    """Return the servers in a project's `.mcp.json` as settings, and a notice for each unusable one.

    They run in the sandbox, and get no files and no variables of the user.
    """
    try:
        found, unusable = foreign_servers(_entries(VARIABLE.sub(_default, content)))
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return {}, [line("mcp.bad_file", path=str(path))]
    notices = [line("mcp.skipped", name=name, reason=reason) for name, reason in unusable.items()]
    servers: dict[str, object] = {}
    for name, server in found.items():
        if server.env_file or user_variables(server.model_dump_json()):
            notices.append(line("mcp.needs_import", name=name, path=str(path)))
        else:
            servers[name] = replace(server, read=()).model_dump(mode="json")
    return servers, notices


def _default(place: re.Match[str]) -> str:
    return place[0] if place[2] is None else place[2]


def _entries(content: str) -> dict[str, Any]:
    """Return the servers in another agent's JSON, which may have comments and trailing commas."""
    for noise in (_COMMENT, _LAST_COMMA):
        content = noise.sub(lambda found: found[0] if found[0][0] == '"' else "", content)
    whole = cast("dict[str, Any]", json.loads(content))
    holders = cast(
        "list[dict[str, Any]]", [*(whole.get("projects") or {}).values(), whole.get("mcp") or {}, whole]
    )
    tables = [one[name] for one in holders for name in ("servers", "mcpServers") if one.get(name) is not None]
    if not tables:
        raise LookupError("mcpServers")
    return {name: entry for table in tables for name, entry in table.items()}


def foreign_servers(entries: Mapping[str, Any]) -> tuple[dict[str, McpServer], dict[str, str]]:
    """Convert servers from another agent's format. Return them, and the reason for each unusable server."""
    servers: dict[str, McpServer] = {}
    unusable: dict[str, str] = {}
    for given, entry in entries.items():
        name = re.sub(r"[^a-z0-9_-]+", "-", given.casefold()).strip("-_")[:40]
        try:
            server = _foreign(entry)
            validate({"mcp.servers": {name: server.model_dump(mode="json")}})
        except (TypeError, ValueError, AttributeError) as exc:
            told = exc.errors()[0]["msg"] if isinstance(exc, ValidationError) else str(exc)
            unusable[given] = told.split("\n")[0]
        else:
            servers[name] = server
    return servers, unusable


def _foreign(entry: Mapping[str, Any]) -> McpServer:
    """Convert an entry written for Claude, Cursor or VS Code. These allow servers to use the network."""
    command = (entry["command"], *entry.get("args", ())) if entry.get("command") else ()
    if command and entry.get("cwd"):
        command = ("env", "-C", entry["cwd"], *command)
    command = tuple(_named(word) for word in command)
    url = _named(str(entry.get("url") or entry.get("serverUrl") or ""))
    return McpServer(
        command=command,
        url=url,
        env=_filled(entry.get("env")),
        env_file=_named(str(entry.get("envFile") or "")),
        headers=_filled(entry.get("headers")),
        network=bool(command),
        read=named_paths(command),
        enabled=not entry.get("disabled", False),
    )


def named_paths(command: Sequence[str]) -> tuple[str, ...]:
    """Return the paths in a command, which the server must read; instead of a program, its project."""
    words = (from_home(word.partition("=")[2] if word[:1] == "-" else word) for word in command)
    found = (_project_of(word) for word in words if os.path.isabs(word) and os.path.exists(word))  # noqa: PTH110, PTH117
    return tuple(
        path for path in dict.fromkeys(found) if not path.startswith(_SYSTEM) and not _holds_home(path)
    )


def _project_of(path: str) -> str:
    """Return the outermost project around a program, or its folder; any other path unchanged."""
    if os.path.isdir(path) or not (path.endswith(_CODE) or os.access(path, os.X_OK)):  # noqa: PTH112
        return path
    above = [str(folder) for folder in Path(path).parents if not _holds_home(str(folder))]
    marked = [folder for folder in above if not _MARKS.isdisjoint(one.name for one in Path(folder).iterdir())]
    return [path, *above[:1], *marked][-1]


def _holds_home(path: str) -> bool:
    return Path(from_home("~")).is_relative_to(path)


def _filled(values: object) -> dict[str, str]:
    pairs = cast("dict[str, object]", values).items() if isinstance(values, dict) else ()
    return {key: _named(str(one)) for key, one in pairs}


def _named(value: str) -> str:
    """Convert references to variables and inputs of VS Code to the form `${NAME}`."""
    value = value.replace("${userHome}", "${HOME}")
    return _REFERENCE.sub(lambda found: f"${{{re.sub(r'[^A-Za-z0-9]', '_', found[1]).upper()}}}", value)


def _servers(tables: Mapping[str, Any]) -> dict[str, Any]:
    return cast("dict[str, dict[str, Any]]", tables).get("mcp", {}).get("servers", {})


def _table(name: str, server: McpServer) -> str:
    lines = [f"[mcp.servers.{name}]"]
    for key, value in server.model_dump(mode="json", exclude_defaults=True).items():
        lines.append(f"{key} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    """Format a value as TOML, which here is the same as JSON, except for tables."""
    if isinstance(value, dict):
        pairs = cast("dict[str, object]", value).items()
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(one)}" for key, one in pairs) + "}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _save(path: Path, text: str) -> None:
    parse(text, path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_text(path, text)
    except OSError as exc:
        raise UsageError("config.unreadable", path=path, reason=exc.strerror or exc) from exc
