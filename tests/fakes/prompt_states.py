"""States of a session, made by hand for the prompts."""

from typing import Any

from duckflow.domain.reduce.transcript import remember
from duckflow.domain.state import AgentState, Items, Request, TranscriptEntry
from duckflow.domain.transitions import Status, Step
from duckflow.domain.work.plan import Plan, PlanStep, Task, TaskList


def said(text: str) -> TranscriptEntry:
    """What the user said."""
    return TranscriptEntry(role="user", text=text, said=True)


def answered(text: str) -> TranscriptEntry:
    """What the model said."""
    return TranscriptEntry(role="assistant", text=text)


def found(number: int, text: str, path: str | None = None, **fields: Any) -> TranscriptEntry:
    """What a tool returned."""
    return TranscriptEntry(
        role="user",
        text=f"[e{number}] file_ops.read_file: ok\n{text}",
        evidence_id=f"e{number}",
        operation="file_ops.read_file",
        path=path,
        digest="0" if path else None,
        **fields,
    )


def asked(text: str, *entries: TranscriptEntry, **fields: Any) -> AgentState:
    """A session in which the user asked for something and some things followed."""
    base = AgentState(
        workspace="/home/me/parts",
        request=Request(request_id="r_1", text=text),
        step=Step.EXECUTION,
        status=Status.SUCCESS,
        **fields,
    )
    return remember(base, said(text), *entries)


def looks(state: AgentState, first: int, count: int, size: int = 100) -> AgentState:
    """The state after some loops in which the model looked at something of `size` characters."""
    for number in range(first, first + count):
        text = (f"line {number} " * (size // 7 + 1))[:size]
        state = remember(state, answered(f'{{"look": {number}}}'), found(number, text, f"part_{number}.py"))
    return state


def game_plan() -> Plan:
    """A plan of three steps, one of them done."""
    return Plan(
        plan_id="plan_1a2b3c4d",
        name="A small game",
        goal="A game that can be played",
        status="in_progress",
        steps=(
            PlanStep(step_id="step_1", name="Board", description="the board", status="completed"),
            PlanStep(step_id="step_2", name="Moves", description="the moves", depends_on=("step_1",)),
            PlanStep(step_id="step_3", name="Score", description="the score", depends_on=("step_2",)),
        ),
    )


def background() -> TaskList:
    """A list under way: one done, one failed, one running, one waiting."""
    statuses = ("completed", "failed", "in_progress", "pending")
    tasks = tuple(
        Task(task_id=f"task_{place}", operation="file_ops.write_file", status=status)
        for place, status in enumerate(statuses)
    )
    return TaskList(list_id="list_1", tasks=tasks)


ENGLISH = asked(
    "Make a small game in Python that I can play in the terminal.",
    answered('{"next_step": "continue", "actions": [{"operation": "file_ops.read_file"}]}'),
    found(1, "game.py (lines 1-2 of 2)\nimport random\nprint('soon')", "game.py"),
    items=Items(
        goal="A game that can be played",
        why_now="The user wants to show it today",
        constraints=("standard library only",),
        plan_brief=("write the moves", "play a round"),
        open_questions=("how large is the board?",),
    ),
    plans=(game_plan(),),
    active_plan_id="plan_1a2b3c4d",
    task_list=background(),
    summaries=("What is in this folder? → Only a README.",),
)
JAPANESE = asked(
    "端末で遊べる小さなゲームを Python で作ってください。",
    answered('{"next_step": "continue", "reply": "まず中身を見ます。", "actions": []}'),
    found(1, "game.py (1行)\nprint('準備中')", "game.py"),
    items=Items(goal="遊べるゲームを作る", constraints=("標準ライブラリだけを使う",)),
    plans=(game_plan(),),
    active_plan_id="plan_1a2b3c4d",
    summaries=("このフォルダには何がありますか？ → README だけです。",),
)
