"""B6: "make a game", from the first word to the report, over real HTTP."""

import json
import re
from pathlib import Path
from typing import Any

from duckflow.domain.events import ApprovalRequested, PlanChanged, TaskReported
from duckflow.domain.questions.approval import AnswerApproval
from fakes.engine import action, decision, engine
from fakes.model_server import Answer, ModelServer
from fakes.plays import asked_for
from fakes.sent_prompts import written

STEPS = [
    {"name": name, "description": f"Do {name}.", "depends_on": needs}
    for name, needs in (("environment", []), ("core", [1]), ("polish", [2]))
]
PLAN = {
    "name": "Game",
    "goal": "a game",
    "risk": "low",
    "success_criteria": ["the game starts"],
    "steps": STEPS,
}
TASKS = {"tasks": [action("write_file", path="package.json", content="{}\n")]}
REPORT = {"status": "success", "summary": "The environment is set up.", "failures": [], "next_action": ""}


class Player:
    """Plays the model: each call gets the next answer for the type it asks for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.prompts: list[str] = []
        self._decisions = 0

    def __call__(self, body: dict[str, Any]) -> Answer:
        told, wanted = written(body), asked_for(body)
        self.asked.append(wanted)
        self.prompts.append(told)
        match wanted:
            case "PlanDraft":
                return Answer(json.dumps(PLAN))
            case "TaskListDraft":
                return Answer(json.dumps(TASKS))
            case "TaskReport":
                return Answer(json.dumps(REPORT))
        self._decisions += 1
        return Answer(self._decision(told))

    def _decision(self, told: str) -> str:
        step = next(iter(re.findall(r"step_[0-9a-f]{8}", told)), "")
        match self._decisions:
            case 1:
                return decision("", {"operation": "plan_tool.propose", "args": {"goal": "ゲームを実装する"}})
            case 2:
                return decision("この計画で進めます。", next_step="pending_user")
            case 3:
                return decision("", {"operation": "task_tool.generate_list", "args": {"step_id": step}})
            case 4:
                run = {"operation": "task_loop.run", "args": {"step_id": step}}
                return decision("始めます。", run, next_step="defer")
            case _:
                return decision("ステップ1が終わりました。次に進みますか？", next_step="pending_user")


async def test_B6_make_a_game_over_http(folder: Path):
    """B2, B3, B5, B7, C1, C3: plan, the user's own yes, tasks, background, report."""
    player = Player()
    with ModelServer(player) as server:
        async with engine(folder, server=server, mode="ask") as duck:
            chat = duck.app.chat
            assert await chat.say("ゲームを実装して") == "awaiting_approval"
            assert duck.state.active_plan.status == "draft"
            assert await chat.answer(AnswerApproval(yes=True)) == "pending_user"
            assert duck.state.active_plan.status == "approved"
            assert await chat.say("はい、お願いします") == "deferred"
            await duck.app.tasks.wait()
            assert duck.state.approval.task_id is not None
            await chat.answer(AnswerApproval(yes=True))
            await duck.app.session.wait_until(lambda state: not state.background_runs)
            assert await chat.go_on() == "pending_user"
            plan = duck.state.active_plan
            assert [step.status for step in plan.steps] == ["completed", "pending", "pending"]
            assert len(duck.of(ApprovalRequested)) == 2
            assert {change.change for change in duck.of(PlanChanged)} >= {"proposed", "approved", "tasks"}
            assert duck.of(TaskReported)[0].summary == "The environment is set up."
    assert player.asked == [
        "Decision",
        "PlanDraft",
        "Decision",
        "Decision",
        "TaskListDraft",
        "Decision",
        "TaskReport",
        "Decision",
    ]
    assert "1 of 3 steps complete" in player.prompts[-1]
    assert (folder / "package.json").read_text() == "{}\n"
