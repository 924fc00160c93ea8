"""Runs many tasks with approvals on three workers under repeated `kill -9`.

    python bench/fleet.py [--runs 60] [--kills 100] [--workers 3] [--commands 3] [--seed 1] [--postgres]

Every run must end and no command may run twice. Each command appends a line to a file outside all copies,
which is compared with the events at the end: every approved command ran once, or the program asked about it
because it may or may not have run, and asked about nothing else. With `--postgres` a temporary server is
started; otherwise the database is a SQLite file.
"""

import argparse
import os
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fakes.fleet_drill import drill, postgres


def main() -> None:
    """Run the drill and print its counts. Exit with code 1 if something was wrong."""
    parser = argparse.ArgumentParser()
    for name, default in (("runs", 60), ("kills", 100), ("workers", 3), ("commands", 3), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--limit", type=float, default=3600, help="seconds")
    parser.add_argument("--postgres", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        base = Path(made)
        for part in ("STATE", "CACHE", "FLEET"):
            os.environ[f"DUCKFLOW_{part}_DIR"] = str(base / part.lower())
        with postgres(base) if given.postgres else nullcontext(f"sqlite:///{base / 'fleet.db'}") as url:
            count = drill(
                base,
                url,
                runs=given.runs,
                kills=given.kills,
                commands=given.commands,
                size=given.workers,
                seed=given.seed,
                limit_s=given.limit,
            )
    print(f"{'Postgres' if given.postgres else 'SQLite'}: {count}")
    sys.exit(1 if count.wrong or count.approved != count.runs * given.commands else 0)


if __name__ == "__main__":
    main()
