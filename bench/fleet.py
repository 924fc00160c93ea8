"""Three workers, many runs with approvals, kill -9 again and again: every run ends, no command runs twice.

    python bench/fleet.py [--runs 60] [--kills 100] [--workers 3] [--commands 3] [--seed 1] [--postgres]

Each command appends a line to a file outside all copies. At the end all events are compared with that file:
every command that was approved ran once, or may or may not have run and was asked about; nothing is there
twice, and nobody was asked for more than that. With `--postgres` a server of its own is started; else the
database is a SQLite file.
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
    """Drill, and say what was counted; exit code 1 if something was wrong."""
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
