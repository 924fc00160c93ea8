"""Output of the `duckflow audit` commands. Entries are read and printed one by one."""

import json as jsons
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime
from typing import Any

from duckflow.app.places import open_log
from duckflow.domain.errors import UserError
from duckflow.i18n.catalogue import text
from duckflow.store.audit.log import read_entries
from duckflow.store.audit.stats import COLUMNS, count_entries
from duckflow.store.audit.verification import check_audit
from duckflow.store.database.database import Database
from duckflow.ui.output.escaping import echo
from duckflow.ui.views.tables import aligned


def print_entries(session: str | None, *, json: bool) -> None:
    """Print all entries, or those of sessions whose id begins with this text."""
    with closing(open_log()) as log:
        for content in _contents(log.database):
            if session is None or str(content.get("session", "")).startswith(session):
                echo(jsons.dumps(content) if json else _line(content))


def print_check(*, json: bool) -> int:
    """Print whether the log is intact; return the exit code."""
    with closing(open_log()) as log:
        checked = check_audit(log.database)
    finding = checked.finding
    if json:
        found = {"fault": finding.fault, "number": finding.number} if finding else {"fault": None}
        echo(jsons.dumps({"whole": finding is None, "entries": checked.entries, **found}))
        return int(finding is not None)
    if finding is not None:
        raise UserError(f"audit.{finding.fault}", number=finding.number)
    echo(text("audit.whole", entries=checked.entries))
    return 0


def print_export() -> None:
    """Print every entry as it was hashed, with its hash."""
    with closing(open_log()) as log:
        for entry in read_entries(log.database):
            hashed = f'{{"entry":{entry.body},"hash":{jsons.dumps(entry.hash)}}}'  # the hashed text
            echo(hashed)


def print_stats(*, json: bool) -> None:
    """Print counts of questions, answers and outcomes, by operation and by risk."""
    with closing(open_log()) as log:
        stats = count_entries(_contents(log.database))
    tables = {"operation": stats.operations, "risk": stats.risks}
    if json:
        for name, rows in tables.items():
            for key, counts in sorted(rows.items()):
                echo(jsons.dumps({name: key, **{column: counts[column] for column in COLUMNS}}))
    elif not any(tables.values()):
        echo(text("audit.nothing_asked"))
    else:
        for name, rows in tables.items():
            heads = [text(f"audit.by_{name}"), *(text(f"audit.column_{one}") for one in COLUMNS)]
            counted = [[key, *(str(one[name]) for name in COLUMNS)] for key, one in sorted(rows.items())]
            echo("\n".join(aligned([heads, *counted])))


def _contents(database: Database) -> Iterator[Mapping[str, Any]]:
    """Read all entries, but only the number of a damaged one, which `verify` reports."""
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
