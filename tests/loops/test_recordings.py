"""Answers that strong models really gave: read without a repair, and their work ends done (A5, A6, A8).

The trees that the recordings were made on are not here: stand-in files hold what the recorded edits look for.
`bench/replay.py` plays a recording again in a real tree.
"""

from collections.abc import Iterator
from pathlib import Path

from duckflow.dialects.native import Native
from duckflow.dialects.prompt import PromptFrame
from duckflow.domain.decision import Action
from duckflow.domain.events import ActionFinished, DecisionMade
from duckflow.domain.model import ModelTraits, StreamEnd, TextPiece, ToolCall
from duckflow.loops.thinking.model import operations_of
from fakes.engine import engine
from fakes.model import FakeModel
from fakes.model_server import Answer, ModelServer
from fakes.prompt_states import asked
from fakes.recorded import RECORDINGS, Recording, answer_of, stand_in_tree
from fakes.rows import every_row
from fakes.tools import plain_catalogue

FILES = sorted(file.name for file in RECORDINGS.glob("*.jsonl"))
CATALOGUE = plain_catalogue()
EDITS = ("file_ops.edit_file", "file_ops.write_file")
TRAITS = ModelTraits(name="large", window=400_000, native_tools=True)


async def actions_of(answer: Answer) -> tuple[Action, ...]:
    """The actions of one answer, read without asking again."""
    calls = [ToolCall(name=name, arguments=args, id=f"c{at}") for at, (name, args) in enumerate(answer.calls)]
    model = FakeModel([TextPiece(text=answer.text), *calls, StreamEnd()], traits=TRAITS)
    dialect = Native(model, operations_of(CATALOGUE), PromptFrame(), lambda _: ())
    decided = await dialect.decide(asked("work"), lambda _: None)
    assert len(model.requests) == 1
    return decided.decision.actions


@every_row("file", FILES)
async def test_A6_A8_recorded_work_ends_done(tmp_path: Path, file: str):
    recording = Recording(RECORDINGS / file)
    answers = [answer_of(text) for kind, text in recording.answers if kind == "Decision"]
    folder = tmp_path / file
    folder.mkdir()
    actions = [action for answer in answers for action in await actions_of(answer)]
    stand_in_tree(folder, actions)
    with ModelServer(recording) as server:
        async with engine(folder, server=server, model="openai:gpt-6", mode="auto", max_loops=100) as duck:
            assert await duck.app.chat.say(recording.request) == "done"
            made = len(duck.of(DecisionMade))
            edits = list(_edits(duck.of(ActionFinished)))
    wanted = [action for action in actions if action.operation in EDITS]
    assert edits == ["ok"] * len(wanted)
    # An answer that was asked for only because the one before had been refused is not needed any more.
    # A reply beside commands that fail in these files is held back, and given after them.
    assert len(answers) - 1 <= made <= len(answers) + 2


def _edits(finished: list[ActionFinished]) -> Iterator[str]:
    return (one.outcome for one in finished if one.operation in EDITS)
