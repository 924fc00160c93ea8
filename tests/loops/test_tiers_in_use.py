"""Which model decides: the creative one first, then the fast one for simple work (K5)."""

from pathlib import Path

from duckflow.app.app import App
from duckflow.app.opening import Opening
from duckflow.config.loading import LoadedSettings
from duckflow.config.settings import LlmSettings, Settings
from duckflow.domain.events import StoredEvent, UsageReported
from duckflow.llm.default_model import ModelChoice
from fakes.engine import action, decision, write_script
from fakes.rows import every_row


async def deciders(folder: Path, *, by_task: bool) -> list[str]:
    """The tiers that made the decisions of one request."""
    steps = [
        decision("", action("write_file", path=f"{n}.txt", content="x\n"), task_profile="file_operation")
        for n in range(2)
    ]
    answers = [*steps, decision("Done.")]
    creative, fast = (write_script(folder.parent / f"{name}.jsonl", answers) for name in ("creative", "fast"))
    llm = LlmSettings(model=f"scripted:{creative}", fast=f"scripted:{fast}", by_task=by_task, max_retries=0)
    settings = Settings(mode="edits", llm=llm)
    choice = ModelChoice(name=f"scripted:{creative}", reason_key="x")
    app = App(Opening(LoadedSettings(settings=settings, sources={}), folder), choice, {})
    tiers: list[str] = []

    def hear(what: object) -> None:
        event = what.event if isinstance(what, StoredEvent) else None
        if isinstance(event, UsageReported) and event.output == "Decision":
            tiers.append(event.tier)

    app.session.subscribe(hear)
    try:
        app.begin()
        await app.chat.say("write two files")
    finally:
        await app.aclose()
    return tiers


@every_row(("by_task", "expected"), [(True, ["creative", "fast", "fast"]), (False, ["creative"] * 3)])
async def test_K5_simple_work_goes_to_the_fast_tier_unless_switched_off(folder: Path, by_task, expected):
    assert (await deciders(folder, by_task=by_task))[:3] == expected
