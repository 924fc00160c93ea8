"""G9, SAFETY 11: some random cases of `bench/effects_fuzz.py`."""

import importlib.util
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "bench" / "effects_fuzz.py"


async def test_G9_random_commands_lose_nothing_and_are_undone_exactly(disk_path: Path):
    spec = importlib.util.spec_from_file_location("effects_fuzz", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    fuzz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz)
    for seed in range(12):
        place = disk_path / str(seed)
        place.mkdir()
        assert await fuzz.run(fuzz.Case(seed), place) == [], f"seed {seed}"
