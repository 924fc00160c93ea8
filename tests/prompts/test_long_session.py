"""A session of four hundred calls in a window of 64k tokens loses neither its task nor its rules (F3, F8)."""

from datetime import UTC, datetime
from typing import NamedTuple

from duckflow.dialects.json_text import json_prompt
from duckflow.dialects.prompt import DecisionPrompt, PromptFrame
from duckflow.domain.decision import Decision
from duckflow.domain.events import ActionFinished, DecisionMade, Event, StoredEvent, UserMessage
from duckflow.domain.files.changes import FileChange
from duckflow.domain.model import ChatMessage, ModelTraits
from duckflow.domain.reduce.apply import apply
from duckflow.domain.state import AgentState
from duckflow.i18n.catalogue import set_language
from duckflow.llm.tokens import TokenCounter
from duckflow.prompts.sections import RenderedPrompt
from duckflow.ui.views.tables import context_text

CALLS, WINDOW = 400, 65_536
NOW = datetime(2026, 1, 1, tzinfo=UTC)
RULES = "Write every comment in verse."


class Spoken(NamedTuple):
    """Texts of a session in one language."""

    task: str
    later: str
    goal: str
    why: str
    recap: tuple[str, ...]


ENGLISH = Spoken(
    task="Bring all parts up to date, one by one.",
    later="Never touch the folder legacy.",
    goal="all parts are up to date",
    why="the next part is number {0}",
    recap=("Goal: ", "Said by the user: ", "Decided: ", "Files changed: ", "Open problems: "),
)
JAPANESE = Spoken(
    task="すべての部品を順番に新しくしてください。",
    later="legacy フォルダには触らないでください。",
    goal="すべての部品が新しい",
    why="次の部品は {0} 番",
    recap=("目標: ", "ユーザーの発言: ", "決めたこと: ", "変更したファイル: ", "未解決の問題: "),
)


def events(spoken: Spoken, call: int) -> list[Event]:
    """Play one loop: a long answer, and a long result; now and then a change or a failure."""
    why = spoken.why.format(call)
    delta = {"goal": spoken.goal, "decision_log": ["tabs"]} if call == 1 else {}
    body = {"next_step": "continue", "reply": why, "rationale": why, "state_delta": delta}
    said = ChatMessage(role="assistant", text=f"{why} {'and so on ' * 60}")
    decided = DecisionMade(loop=call, decision=Decision.model_validate(body), exchange=(said,))
    path = "missing.py" if call == 5 else f"part_{call}.py"
    changes = (FileChange(path=path, before=None, after="0"),) if call % 40 == 0 else ()
    finished = ActionFinished(
        action_id=f"a{call}",
        operation="file_ops.read_file",
        outcome="failed" if call == 5 else "ok",
        text="some line of a file\n" * 100,
        path=path,
        changes=changes,
        evidence_id=f"e{call}",
        digest=str(call),
    )
    later = [UserMessage(request_id="r", text=text) for text in (spoken.later, "Go on.") if call == len(text)]
    return [decided, finished, *later]


def asking() -> DecisionPrompt:
    """A process that asks a model of this window."""
    return json_prompt(ModelTraits(name="m", window=WINDOW), (), PromptFrame(rules=RULES), TokenCounter())


async def work(spoken: Spoken) -> tuple[AgentState, RenderedPrompt]:
    """The session and its last prompt; task and rules are in every one, and each fits."""
    prompt = asking()
    state, seq = AgentState(), 0
    seen = await prompt.assemble(state)
    for call in range(CALLS):
        happened = events(spoken, call) if call else [UserMessage(request_id="r", text=spoken.task)]
        for event in happened:
            seq += 1
            state = apply(state, StoredEvent(seq=seq, at=NOW, event=event))
        seen = await prompt.assemble(state)
        texts = [message.text for message in seen.request.messages]
        assert spoken.task in texts, call
        assert RULES in texts[0], call
        assert sum(seen.tokens.values()) <= WINDOW * 3 // 4, call
    return state, seen


async def test_F3_four_hundred_calls_keep_task_rules_and_what_matters():
    for language, spoken in {"en": ENGLISH, "ja": JAPANESE}.items():
        state, seen = await work(spoken)
        opening = seen.request.messages[1].text
        assert opening == seen.recap
        lines = dict(zip(spoken.recap, opening.splitlines()[1:], strict=True))
        assert all(line.startswith(label) for label, line in lines.items()), opening
        goal, said, decided, files, problems = lines.values()
        assert spoken.goal in goal
        assert "Go on." in said
        assert spoken.later in [message.text for message in seen.request.messages]
        assert "tabs" in decided
        assert spoken.why.partition(" {")[0] in decided
        assert files.count("part_") >= 7
        assert "missing.py" in problems

        # Another process that opens the session says the same, from the state alone.
        again = asking()
        assert (await again.assemble(state)).recap.splitlines()[:3] == opening.splitlines()[:3]

        set_language(language)
        shown = context_text(seen, 200)
        assert seen.left_out["evidence"] > CALLS // 2
        assert seen.dropped[0] in shown
        assert goal in shown
