"""`duckflow audit`: the record of questions, answers and actions, and the check that it is intact (G6)."""

import json as jsons
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duckflow.cli.commands.flags import JsonFlag, option
from duckflow.domain.errors import UserError
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import echo

if TYPE_CHECKING:
    from duckflow.store.database.database import Database

commands = typer.Typer(help=text("help.audit"), no_args_is_help=True)


@commands.command("show", help=text("help.audit_show"))
def show(
    session: Annotated[str | None, option("session", "audit_session", metavar="ID")] = None,
    *,
    json: JsonFlag = False,
) -> None:
    """Print all entries, oldest first, or those of sessions whose id begins with this text."""
    with _database() as database:
        for content in _contents(database):
            if session is None or str(content.get("session", "")).startswith(session):
                echo(jsons.dumps(content) if json else _line(content))


@commands.command("verify", help=text("help.audit_verify"))
def verify(*, json: JsonFlag = False) -> None:
    """Check that no entry was changed or removed; exit code 1 if one was."""
    from duckflow.store.audit.verification import check_audit  # noqa: PLC0415 - heavy, and not for --help

    with _database() as database:
        checked = check_audit(database)
    finding = checked.finding
    if json:
        found = {"fault": finding.fault, "number": finding.number} if finding else {"fault": None}
        echo(jsons.dumps({"whole": finding is None, "entries": checked.entries, **found}))
        raise typer.Exit(int(finding is not None))
    if finding is not None:
        raise UserError(f"audit.{finding.fault}", number=finding.number)
    echo(text("audit.whole", entries=checked.entries))


@commands.command("export", help=text("help.audit_export"))
def export() -> None:
    """Print every entry exactly as it was hashed, with its hash, one JSON object a line."""
    from duckflow.store.audit.log import read_entries  # noqa: PLC0415 - heavy, and not for --help

    with _database() as database:
        for entry in read_entries(database):
            hashed = f'{{"entry":{entry.body},"hash":{jsons.dumps(entry.hash)}}}'
            echo(hashed)


@commands.command("stats", help=text("help.audit_stats"))
def stats(*, json: JsonFlag = False) -> None:
    """Count questions, answers and outcomes, by operation and by risk."""
    from duckflow.store.audit.stats import COLUMNS, count_entries  # noqa: PLC0415 - heavy, and not for --help
    from duckflow.ui.views.tables import aligned  # noqa: PLC0415 - as above

    with _database() as database:
        counted = count_entries(_contents(database))
    tables = {"operation": sorted(counted.operations.items()), "risk": sorted(counted.risks.items())}
    if not json and not any(tables.values()):
        echo(text("audit.nothing_asked"))
        return
    for name, rows in tables.items():
        if json:
            for key, counts in rows:
                echo(jsons.dumps({name: key, **{column: counts[column] for column in COLUMNS}}))
        else:
            heads = [text(f"audit.by_{name}"), *(text(f"audit.column_{one}") for one in COLUMNS)]
            lines = [[key, *(str(counts[column]) for column in COLUMNS)] for key, counts in rows]
            echo("\n".join(aligned([heads, *lines])))


@contextmanager
def _database() -> Generator["Database"]:
    from duckflow.app.places import open_log  # noqa: PLC0415 - heavy, and not for --help

    with closing(open_log()) as log:
        yield log.database


def _contents(database: "Database") -> Iterator[Mapping[str, Any]]:
    """Yield the content of each entry; of a damaged one, which `verify` reports, only the number."""
    from duckflow.store.audit.log import read_entries  # noqa: PLC0415 - heavy, and not for --help

    for entry in read_entries(database):
        try:
            yield dict(jsons.loads(entry.body))
        except (ValueError, TypeError):
            yield {"n": entry.number, "kind": "?"}


def _line(content: Mapping[str, Any]) -> str:
    said = [content.get(name) for name in ("kind", "operation", "verdict", "outcome", "risk", "digest")]
    words = "  ".join(str(one) for one in said if one)
    return f"{content.get('n', 0):>7}  {_when(content)}  {content.get('session', ''):<8}  {words}"


def _when(content: Mapping[str, Any]) -> str:
    try:
        return datetime.fromisoformat(str(content.get("at"))).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return str(content.get("at", ""))
