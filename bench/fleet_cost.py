"""Measures the load of a run on the fleet's database: transactions, rows and bytes, on a temporary Postgres.

    python bench/fleet_cost.py [--runs 20] [--loops 10] [--idle 30]

Every run writes one file per loop, with a scripted model that answers at once, and asks nothing. Then an idle
worker is observed for some seconds. The numbers are the server's own.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import sqlalchemy as sa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.fleet import open_fleet
from duckflow.fleet.runs import RunOptions
from fakes.engine import action, decision, write_script
from fakes.fleet_drill import postgres
from fakes.repository import make_repository

COUNTED = """SELECT xact_commit AS transactions, tup_inserted AS inserted, tup_updated AS updated,
  tup_deleted AS deleted, pg_database_size(current_database()) AS bytes,
  pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') AS wal
  FROM pg_stat_database WHERE datname = current_database()"""
TABLES = "SELECT relname, n_tup_ins, n_tup_upd FROM pg_stat_user_tables WHERE n_tup_ins + n_tup_upd > 0"


def look(database: FleetDatabase) -> dict[str, float]:
    """Return the server's counters. Sessions report theirs when they end, so this waits a moment first."""
    time.sleep(2)
    with database.begin() as connection:
        return {
            name: float(value)
            for name, value in connection.execute(sa.text(COUNTED)).mappings().one().items()
        }


def main() -> None:
    """Start a database, measure and print."""
    parser = argparse.ArgumentParser()
    for name, default in (("runs", 20), ("loops", 10), ("idle", 30)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        base = Path(made)
        for part in ("STATE", "CACHE", "FLEET"):
            os.environ[f"DUCKFLOW_{part}_DIR"] = str(base / part.lower())
        with postgres(base) as url:
            measure(base, url, given)


def measure(base: Path, url: str, given: argparse.Namespace) -> None:
    """Measure runs first, then an idle worker."""
    writes = [
        decision("", action("write_file", path=f"file{n}.py", content=f"print({n})\n" * 20))
        for n in range(given.loops)
    ]
    script = write_script(base / "script.jsonl", [*writes, decision("Done.")])
    command = [sys.executable, "-m", "duckflow", "fleet", "worker", "--database", url]
    database = FleetDatabase(url)
    with open_fleet(url) as fleet:
        before = look(database)
        options = RunOptions(model=f"scripted:{script}", mode="edits", max_loops=given.loops + 5)
        fleet.submit(make_repository(base / "repository"), "Write the files", options, given.runs)
        began = time.monotonic()
        subprocess.run([*command, "--until-idle"], check=True)
        took = time.monotonic() - began
        after = look(database)
        events = sum(len(fleet.runs.events(run.id)) for run in fleet.runs.listed())
        print(
            {run.outcome for run in fleet.runs.listed()},
            f"{took:.1f} s, {events / given.runs:.0f} events a run",
        )
        print("a run:", {name: round((after[name] - before[name]) / given.runs, 1) for name in after})
        with database.begin() as connection:
            for row in connection.execute(sa.text(TABLES)):
                made, changed = row.n_tup_ins / given.runs, row.n_tup_upd / given.runs
                print(f"  {row.relname}: {made:.1f} inserted, {changed:.1f} updated")
    before = look(database)
    idle = subprocess.Popen(command)
    time.sleep(given.idle)
    after = look(database)
    idle.kill()
    idle.wait()
    seconds = given.idle + 2
    print("an idle worker, a second:", {n: round((after[n] - before[n]) / seconds, 2) for n in after})
    database.close()


if __name__ == "__main__":
    main()
