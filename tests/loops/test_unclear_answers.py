"""Answers whose meaning is not plain run nothing, and what is left out of an answer is said (A6, E2)."""

import json
from pathlib import Path

from duckflow.domain.events import ActionStarted, ErrorReported
from fakes.engine import action, decision, engine
from fakes.model_server import ModelServer
from fakes.plays import asked_for, play

REPLY = decision("Here it is.")


def prompts(server: ModelServer) -> list[list[str]]:
    """The messages of each request for a Decision."""
    asked = [one.body for one in server.requests if asked_for(one.body) == "Decision"]
    return [[message["content"] for message in body["messages"]] for body in asked]


async def test_A6_all_unknown_operations_and_unfit_arguments_are_told_at_once_and_nothing_runs(folder: Path):
    (folder / "a.txt").write_text("a\n")
    wrong = decision(
        "",
        action("read_file", path="a.txt"),
        action("wirte_file", path="b.txt", content="b"),
        action("write_file", path="b.txt"),
        action("edit_file", path="a.txt", edits=[{"find": "a"}]),
        {"operation": "shell.execute", "args": {"command": "touch c"}},
    )
    with ModelServer(play(wrong, REPLY)) as server:
        async with engine(folder, server=server, llm={"native_tools": False}) as duck:
            assert await duck.app.chat.say("go") == "done"
            assert duck.of(ActionStarted) == []
        first, repair = prompts(server)
    assert repair[: len(first)] == first
    assert repair[-2] == wrong
    for fault in (
        "no operation file_ops.wirte_file. The nearest is file_ops.write_file",
        "file_ops.write_file(path, content) can't be called so: `content` is missing",
        "can't be called so: `edits[0].replace` is missing",
        "no operation shell.execute",
    ):
        assert fault in repair[-1]
    assert "the JSON object and its blocks" in repair[-1]


async def test_A6_arguments_with_a_plain_meaning_fit(folder: Path):
    """Booleans and numbers as text, a list of lines as a text, one item as a list."""
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    acts = [
        action("read_file", path="a.txt", start="2", end="2"),
        action("write_file", path="b.txt", content=["x", "", "y"]),
        action("edit_file", path="a.txt", edits={"find": ["one", "two"], "replace": "1"}),
    ]
    with ModelServer(play(decision("", *acts), REPLY)) as server:
        async with engine(folder, server=server, llm={"native_tools": False}) as duck:
            assert await duck.app.chat.say("go") == "done"
        assert len(prompts(server)) == 2
    assert (folder / "b.txt").read_text() == "x\n\ny"
    assert (folder / "a.txt").read_text() == "1\nthree\n"


async def test_A6_a_command_or_a_path_in_parts_is_not_joined(folder: Path):
    parts = [
        {"operation": "shell.run", "args": {"command": ["touch", "c"]}},
        action("read_file", path=["a", "b"]),
    ]
    with ModelServer(play(decision("", *parts), REPLY)) as server:
        async with engine(folder, server=server, llm={"native_tools": False}) as duck:
            assert await duck.app.chat.say("go") == "done"
            assert duck.of(ActionStarted) == []
        assert "`command`: must be a string" in prompts(server)[1][-1]
        assert "`path`: must be a string" in prompts(server)[1][-1]


async def test_A6_E2_what_is_left_out_of_an_answer_is_told_to_the_model_and_the_user(folder: Path):
    said = decision("Wait.", action("list_files"), state_delta={"goal": "g", "mood": "x"})
    said += "\n<<<block NOTES\na note\n>>>block NOTES\n"
    with ModelServer(play(said, REPLY)) as server:
        async with engine(folder, server=server, llm={"native_tools": False}) as duck:
            assert await duck.app.chat.say("go") == "done"
            notices = [error for error in duck.of(ErrorReported) if error.notice]
            assert duck.state.items.goal == "g"
        (_, second) = prompts(server)
    assert [(one.key, one.values) for one in notices] == [("llm.left_out", {"names": "NOTES"})]
    told = json.dumps(second)
    assert "state_delta did not set mood" in told
    assert "Nothing named the block NOTES, so it was left out." in told
