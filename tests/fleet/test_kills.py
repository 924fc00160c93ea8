"""Workers as processes of their own, killed at any moment; bench/fleet.py does the same on Postgres."""

from pathlib import Path

import pytest

from fakes.fleet_drill import drill


@pytest.mark.long
def test_workers_are_killed_and_no_command_runs_twice(tmp_path: Path):
    """M8, C5: six runs that ask, six times kill -9; what was approved ran or is asked about."""
    count = drill(tmp_path, f"sqlite:///{tmp_path / 'fleet.db'}", runs=6, kills=6, commands=1, limit_s=240)
    assert count.wrong == []
    assert (count.kills, count.approved) == (6, count.runs)
    assert count.unknown == count.asked
    assert count.commands + count.unknown == count.approved
    assert sum(count.outcomes.values()) == count.runs
