"""The lists behind commands that choose something (M2). A command without arguments opens one."""

from datetime import datetime

from duckflow.domain.session_client import SessionClient
from duckflow.i18n.catalogue import text
from duckflow.ui.commands.table import find_command, read_command
from duckflow.ui.input.picker import Choice, Pick
from duckflow.ui.views.approval import kind_text
from duckflow.ui.views.extensions import allowed_tools


def pick_for(client: SessionClient, line: str) -> Pick | None:
    """Return the list that a typed command opens, None if it can be carried out as it is."""
    typed = read_command(line)
    command = find_command(typed.name) if typed else None
    if typed is None or command is None:
        return None
    match (command.name, *typed.argument.split()):
        case ("resume",):
            kind, choices = "resume", _sessions(client)
        case ("rewind",):
            kind, choices = "rewind", _messages(client)
        case ("rewind", number, "?"):
            kind, choices = "rewind_part", _parts(number)
        case ("model",):
            kind, choices = "model", _models(client)
        case ("permissions",):
            kind, choices = "permissions", _permissions(client)
        case ("permissions", number, "?") if number in map(str, range(1, len(client.permissions()) + 1)):
            kind, choices = "permission_change", _changes(client, number)
        case ("config",):
            kind, choices = "config", _settings(client)
        case _:
            return None
    return Pick(text(f"picker.{kind}"), choices) if choices else None


def _sessions(client: SessionClient) -> list[Choice]:
    here = client.state.session_id
    listed = [one for one in client.sessions() if one.session_id != here]
    said = client.conversations()
    return [
        Choice(f"/resume {one.session_id}", one.title, _when(one.updated), said.get(one.session_id, ""))
        for one in listed
    ]


def _messages(client: SessionClient) -> list[Choice]:
    newest_first = reversed(client.messages())
    return [
        Choice(f"/rewind {one.number} ?", f"{one.number}. {one.text}", _when(one.at)) for one in newest_first
    ]


def _parts(number: str) -> list[Choice]:
    parts = ("both", ""), ("conversation", " conversation"), ("files", " files")
    return [Choice(f"/rewind {number}{typed}", text(f"picker.rewind_parts.{part}")) for part, typed in parts]


def _models(client: SessionClient) -> list[Choice]:
    remarks = {client.state.model: text("picker.current")}
    return [Choice(f"/model {name}", name, remarks.get(name, "")) for name in client.models()]


def _permissions(client: SessionClient) -> list[Choice]:
    return [
        Choice(
            f"/permissions {number} ?",
            kind_text(one.kind),
            text(f"permissions.lasts.{one.lasts}", since=one.since),
        )
        for number, one in enumerate(client.permissions(), start=1)
    ] + [
        Choice("/mcp", text("permissions.mcp", server=one.name, tools=allowed_tools(one)))
        for one in client.servers()
        if one.allowed
    ]


def _changes(client: SessionClient, number: str) -> list[Choice]:
    chosen = client.permissions()[int(number) - 1]
    lines = {"revoked": f"revoke {number}"}  # first, so that Enter alone never allows more
    if chosen.lasts == "session":
        lines |= {"here": f"keep {number}"}
        lines |= (
            {"everywhere": f"keep {number} everywhere"} if chosen.kind.what in ("command", "site") else {}
        )
    return [
        Choice(f"/permissions {line}", text(f"picker.permission_changes.{change}"))
        for change, line in lines.items()
    ]


def _settings(client: SessionClient) -> list[Choice]:
    found = (line.partition("  # ") for line in client.settings(every=True))
    return [Choice(f"/config {shown.partition(' = ')[0]}", shown, remark) for shown, _, remark in found]


def _when(at: datetime) -> str:
    return at.astimezone().strftime("%Y-%m-%d %H:%M")
