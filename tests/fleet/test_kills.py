"""Workers as processes of their own, killed at any moment."""

import tempfile
from pathlib import Path

import pytest

from fakes.fleet_drill import Count, drill, postgres


def check(count: Count, kills: int) -> None:
    assert count.wrong == []
    assert count.kills == kills
    assert count.unknown == count.asked
    assert sum(count.outcomes.values()) == count.runs


def test_workers_are_killed_and_no_command_runs_twice(tmp_path: Path):
    """M8, C5: three workers, six runs that ask, six times kill -9; bench/fleet.py does more of it."""
    count = drill(tmp_path, f"sqlite:///{tmp_path / 'fleet.db'}", runs=6, kills=6, commands=1, limit_s=240)
    check(count, kills=6)


def test_the_same_on_postgres():
    """M8: across machines the database is Postgres."""
    with tempfile.TemporaryDirectory(prefix="pg") as made:  # a socket's path must be short
        base = Path(made)
        try:
            server = postgres(base)
            url = server.__enter__()
        except Exception as error:
            pytest.skip(f"no Postgres can be started here: {error}")
        try:
            check(drill(base, url, runs=2, kills=1, commands=1, size=2, limit_s=200), kills=1)
        finally:
            server.__exit__(None, None, None)
