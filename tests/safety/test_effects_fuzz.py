"""G9, SAFETY 11: some random cases of `bench/effects_fuzz.py`."""

import importlib.util
from pathlib import Path

from duckflow.domain.questions.approval import AnswerApproval
from fakes.engine import decision, engine

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


async def test_G9_a_yes_applies_a_file_that_moved_into_the_place_of_a_link(disk_path: Path):
    folder = disk_path / "work"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "file").write_text("words\n")
    (folder / "file").symlink_to("elsewhere")
    asks = {"operation": "shell.run", "args": {"command": "rm file; mv sub/file ."}}
    async with engine(folder, decision("", asks), decision("Done."), mode="ask") as duck:
        await duck.app.chat.say("go")
        await duck.app.chat.answer(AnswerApproval(yes=True))
        assert duck.state.approval is None
    assert not (folder / "file").is_symlink()
    assert (folder / "file").read_text() == "words\n"
