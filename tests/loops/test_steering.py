"""C6, C4: words of the user during work reach the next decision; stopped work can be continued."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from duckflow.domain.commands import RunShellCommand, SayMessage
from duckflow.domain.events import (
    ActionFinished,
    ActionStarted,
    Evaluated,
    RequestFinished,
    RequirementsFound,
    StoredEvent,
    UserMessage,
)
from duckflow.domain.transitions import Step
from fakes.engine import Watched, action, decision, engine
from fakes.gate import Gate

WRITE = action("write_file", path="a.txt", content="argv\n")
OTHER = action("write_file", path="a.txt", content="argparse\n")
INSTEAD = "use argparse instead"


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")


async def test_C6_words_typed_while_the_model_thinks_outdate_its_actions(folder: Path, gate: Gate):
    answers = [gate.hold(decision("", WRITE, WRITE)), decision("", OTHER), decision("Done.")]
    async with engine(folder, *answers) as duck:
        work = asyncio.ensure_future(duck.app.chat.say("Write a parser"))
        await gate.wait_until_asked()
        duck.app.session.steer(SayMessage(text=INSTEAD))
        gate.open()
        assert await work == "done"
        assert (folder / "a.txt").read_text() == "argparse\n"
        first = duck.of(ActionFinished)[0]
        assert (first.outcome, first.declined, len(first.not_run)) == ("refused", "outdated", 1)
        assert f"outdated: the user said “{INSTEAD}”" in first.text
        said = duck.of(UserMessage)
        assert [one.text for one in said] == ["Write a parser", INSTEAD]
        assert len({one.request_id for one in said}) == 1
        finished = duck.state.finished
        assert finished is not None
        assert not any(one.declined for one in (*finished.objective.attempts, finished.objective.current))


async def test_C6_words_typed_meanwhile_stop_no_look(folder: Path, gate: Gate):
    (folder / "a.txt").write_text("known\n")
    looks = decision("", action("read_file", path="a.txt"), WRITE)
    async with engine(folder, gate.hold(looks), decision("", OTHER), decision("Done.")) as duck:
        work = asyncio.ensure_future(duck.app.chat.say("Write a parser"))
        await gate.wait_until_asked()
        duck.app.session.steer(SayMessage(text=INSTEAD))
        gate.open()
        assert await work == "done"
        ended = [(one.operation, one.declined) for one in duck.of(ActionFinished)][:2]
        assert ended == [("file_ops.read_file", None), ("file_ops.write_file", "outdated")]


async def test_C6_a_reply_that_would_end_the_work_does_not_end_it(folder: Path, gate: Gate):
    async with engine(
        folder, gate.hold(decision("All done.")), decision("", OTHER), decision("Now.")
    ) as duck:
        work = asyncio.ensure_future(duck.app.chat.say("Write a parser"))
        await gate.wait_until_asked()
        duck.app.session.steer(SayMessage(text=INSTEAD))
        gate.open()
        assert await work == "done"
        assert len(duck.of(RequestFinished)) == 1
        assert (folder / "a.txt").read_text() == "argparse\n"


def steer_at(duck: Watched, kind: type, *said: str) -> None:
    """Let the user speak at the first event of this kind."""
    words = list(said)

    def watch(what: object) -> None:
        if isinstance(what, StoredEvent) and isinstance(what.event, kind):
            while words:
                duck.app.session.steer(SayMessage(text=words.pop(0)))

    duck.app.session.subscribe(watch)


async def test_C6_a_running_command_counts_and_what_follows_it_is_outdated(folder: Path):
    run = {"operation": "shell.run", "args": {"command": "echo kept > kept.txt"}}
    answers = [decision("", run, WRITE), decision("", OTHER), decision("Ok.")]
    async with engine(folder, *answers, mode="auto") as duck:
        steer_at(duck, ActionStarted, INSTEAD)
        assert await duck.app.chat.say("Write a parser") == "done"
        assert (folder / "kept.txt").read_text() == "kept\n", "the command is not killed, its effects count"
        assert (folder / "a.txt").read_text() == "argparse\n"
        declined = [one.operation for one in duck.of(ActionFinished) if one.declined]
        assert declined == ["file_ops.write_file"]


async def test_C6_lines_are_heard_one_by_one_and_never_merged(folder: Path):
    answers = [decision("", WRITE), decision("", OTHER), decision("Ok.")]
    async with engine(folder, *answers) as duck:
        steer_at(duck, ActionStarted, INSTEAD, "and add --version")
        assert await duck.app.chat.say("Write a parser") == "done"
        assert [one.text for one in duck.of(UserMessage)][1:] == [INSTEAD, "and add --version"]
        told = [one.text.partition("\n")[0] for one in duck.state.transcript if one.said]
        assert told[1:] == [INSTEAD, "and add --version"]


async def test_C6_what_is_said_after_the_answer_waits_for_the_next_request(folder: Path):
    async with engine(folder, decision("", WRITE), decision("Ok.")) as duck:
        steer_at(duck, Evaluated, INSTEAD)
        assert await duck.app.chat.say("Write a parser") == "done"
        assert [one.text for one in duck.of(UserMessage)] == ["Write a parser"]
        assert [one.text for one in duck.app.session.unheard if isinstance(one, SayMessage)] == [INSTEAD]


async def test_C6_typed_commands_run_in_order_between_the_messages(folder: Path):
    answers = [decision("", WRITE), decision("", OTHER), decision("Ok.")]
    async with engine(folder, *answers) as duck:
        typed = [RunShellCommand(command="cat a.txt"), SayMessage(text=INSTEAD)]

        def watch(what: object) -> None:
            if isinstance(what, StoredEvent) and isinstance(what.event, ActionStarted):
                while typed:
                    duck.app.session.steer(typed.pop(0))

        duck.app.session.subscribe(watch)
        assert await duck.app.chat.say("Write a parser") == "done"
        order = [
            one.text if isinstance(one, UserMessage) else one.operation
            for one in duck.events
            if isinstance(one, UserMessage) or (isinstance(one, ActionFinished) and one.by_user)
        ]
        assert order == ["Write a parser", "shell.run", INSTEAD]
        told = "\n".join(entry.text for entry in duck.state.transcript)
        assert "The user ran this command: cat a.txt" in told, (
            "the model sees whose result it is, and of what"
        )


async def test_C6_a_typed_command_alone_neither_outdates_actions_nor_asks_the_model_again(folder: Path):
    async with engine(folder, decision("", WRITE, OTHER), decision("Ok.")) as duck:
        typed = [RunShellCommand(command="cat a.txt")]

        def watch(what: object) -> None:
            if isinstance(what, StoredEvent) and isinstance(what.event, ActionStarted) and typed:
                duck.app.session.steer(typed.pop())

        duck.app.session.subscribe(watch)
        assert await duck.app.chat.say("Write a parser") == "done"
        assert (folder / "a.txt").read_text() == "argparse\n"
        assert [one.by_user for one in duck.of(ActionFinished)] == [False, False, True]


FIRST = {"requirements": [{"requirement": "a parser is there"}, {"requirement": "it uses argv"}]}
SECOND = {"requirements": [{"requirement": "a parser is there"}, {"requirement": "it uses argparse"}]}


SCORES = [{"requirement": str(n), "score": 1.0, "evidence": ["reply", "e1", "e2", "e3"]} for n in (1, 2)]
CONTENT = {
    "for": "SatisfactionEvaluation",
    "text": json.dumps({"requirement_scores": SCORES, "completion_recommendation": True}),
}


def listing(answer: dict[str, Any]) -> dict[str, Any]:
    return {"for": "RequirementList", "text": json.dumps(answer)}


async def test_C6_the_requirements_follow_the_new_words(folder: Path):
    answers = [
        decision("", WRITE),
        decision("", OTHER),
        decision("Ok."),
        listing(FIRST),
        listing(SECOND),
        CONTENT,
    ]
    async with engine(folder, *answers) as duck:
        steer_at(duck, RequirementsFound, INSTEAD)
        await duck.app.chat.say("Write a parser")
        found = [[one.requirement for one in event.requirements] for event in duck.of(RequirementsFound)]
        assert found == [["a parser is there", "it uses argv"], ["a parser is there", "it uses argparse"]]


async def stopped(duck: Watched, gate: Gate, said: str) -> None:
    """Say something, and stop while the model answers from the gate."""
    work = asyncio.ensure_future(duck.app.chat.say(said))
    await gate.wait_until_asked()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


@pytest.mark.parametrize("words", ["go on", "続けて"])
async def test_C4_go_on_continues_the_stopped_request(folder: Path, gate: Gate, words: str):
    """Its goal, requirements, evidence and title stay."""
    goal = {"state_delta": {"goal": "a parser"}}
    answers = [decision("", WRITE, **goal), gate.hold(decision("late")), decision("Done.")]
    async with engine(folder, *answers, listing(FIRST), listing(SECOND), CONTENT) as duck:
        await stopped(duck, gate, "Write a parser")
        before = duck.state.request
        assert before is not None
        assert await duck.app.chat.say(words) == "done"
        after = duck.state.finished
        assert after is not None
        assert (after.request_id, after.text, after.changed) == (
            before.request_id,
            "Write a parser",
            ("a.txt",),
        )
        assert after.objective.request == "Write a parser"
        assert [one.requirement for one in after.objective.requirements] == [
            "a parser is there",
            "it uses argv",
        ]
        assert duck.state.items.goal == "a parser"


async def test_C4_a_correction_after_a_stop_extends_the_request(folder: Path, gate: Gate):
    answers = [decision("", WRITE), gate.hold(decision("late")), decision("", OTHER), decision("Done.")]
    async with engine(folder, *answers, listing(FIRST), listing(SECOND), CONTENT) as duck:
        await stopped(duck, gate, "Write a parser")
        assert await duck.app.chat.say(INSTEAD) == "done"
        after = duck.state.finished
        assert after is not None
        assert after.objective.request == f"Write a parser\n\n{INSTEAD}"
        assert after.objective.requirements[-1].requirement == "it uses argparse"


async def test_C4_another_wish_after_a_stop_does_not_resume_the_work(folder: Path, gate: Gate):
    other = {"requirements": [{"requirement": "the capital is named"}], "replaces": True}
    capital = decision("", action("write_file", path="b.txt", content="Paris\n"))
    answers = [decision("", WRITE), gate.hold(decision("late")), capital, decision("Paris.")]
    async with engine(folder, *answers, listing(FIRST), listing(other), CONTENT) as duck:
        await stopped(duck, gate, "Write a parser")
        wish = "Write the capital of France to b.txt, nothing else"
        assert await duck.app.chat.say(wish) == "done"
        after = duck.state.finished
        assert after is not None
        assert after.objective.request == wish


async def test_C6_words_that_were_not_heard_before_a_stop_are_kept(folder: Path, gate: Gate):
    async with engine(folder, gate.hold(decision("late")), decision("", OTHER), decision("Done.")) as duck:
        work = asyncio.ensure_future(duck.app.chat.say("Write a parser"))
        await gate.wait_until_asked()
        duck.app.session.steer(SayMessage(text=INSTEAD))
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert [one.text for one in duck.of(UserMessage)] == ["Write a parser", INSTEAD]
        assert duck.of(RequestFinished)[-1].outcome == "interrupted"
        assert await duck.app.chat.say("go on") == "done"


async def test_C4_a_question_after_a_stop_is_answered_and_nothing_goes_on(folder: Path):
    """No tests, no verdict, no next attempt: only the user lets the work continue."""
    (folder / "test_a.py").write_text("def test_a():\n    assert False\n")
    first = decision("", action("write_file", path="a.py", content="x = 1\n"))
    answers = [first, decision("a.py is written."), decision("", OTHER), decision("Done.")]
    async with engine(folder, *answers, mode="ask", attended=True) as duck:
        assert await duck.app.chat.say("Write a.py and more") == "awaiting_approval"
        assert await duck.app.chat.decline() == "interrupted"
        before = duck.state.seq
        assert await duck.app.chat.say("How far are you?") == "pending_user"
        assert not any(isinstance(one.event, ActionStarted | Evaluated) for one in since(duck, before))
        told = [one.text for one in duck.state.transcript if one.role == "user"]
        at = next(place for place, text in enumerate(told) if text.startswith("How far"))
        assert told[at - 1].startswith("The user stopped the work here"), "the model knows why it is asked"
        assert await duck.app.chat.say("go on") == "awaiting_approval"


async def test_C4_a_command_after_a_stop_that_changes_nothing_lets_nothing_go_on(folder: Path):
    look = {"operation": "shell.run", "args": {"command": "echo log"}}
    answers = [decision("", WRITE), decision("", look), decision("That is the log.")]
    async with engine(folder, *answers, mode="ask", attended=True) as duck:
        assert await duck.app.chat.say("Write a parser") == "awaiting_approval"
        assert await duck.app.chat.decline() == "interrupted"
        assert await duck.app.chat.say("git log") == "pending_user"
        assert not duck.of(Evaluated)


async def test_C4_words_after_a_stop_during_the_verdict_begin_with_a_plan(folder: Path, gate: Gate):
    verdict = gate.hold(CONTENT["text"], "SatisfactionEvaluation")
    answers = [decision("", WRITE), decision("Done."), decision("You are welcome."), verdict]
    async with engine(folder, *answers, attended=True) as duck:
        await stopped(duck, gate, "Write a parser")
        assert duck.state.step == Step.REVIEW
        assert await duck.app.chat.say("thanks") == "pending_user"
        assert duck.state.step == Step.PLANNING


def since(duck: Watched, seq: int) -> list[StoredEvent]:
    return [*duck.app.log.load_after(duck.state.session_id, seq)]


async def test_J1_an_answer_goes_into_the_request_with_the_question_it_answers(folder: Path):
    """The fast model reads only the user's words, and "keep it" says nothing without the question."""
    asks = decision("I looked around. Keep the root element?", next_step="pending_user")
    async with engine(folder, asks, decision("Ok.")) as duck:
        assert await duck.app.chat.say("Leave out None") == "pending_user"
        assert await duck.app.chat.say("残す方向で") == "done"
        assert duck.state.finished.objective.request == (
            "Leave out None\n\n“I looked around. Keep the root element?” → 残す方向で"
        )
