"""Whole sessions in each provider's own protocol, against a server that checks it strictly (A8, K6)."""

import json
from pathlib import Path
from typing import Any

from duckflow.domain.events import ActionFinished, DecisionMade, RequirementsFound
from duckflow.domain.events import Reply as ReplyEvent
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.loops.undo.rewind import fork
from fakes.engine import CONTENT, decision, engine
from fakes.model_server import Answer, Fault, ModelServer, Reply
from fakes.plays import asked_for, play
from fakes.repository import git
from fakes.rows import every_row
from fakes.strict_server import StrictServer

MODELS = ["openai:deepseek-chat", "anthropic:claude-sonnet-5-5", "responses:gpt-6.1-terra"]


def call(name: str, **args: Any) -> tuple[str, str]:
    return name, json.dumps(args)


A = call("read_file", path="a.txt")
X = call("read_file", path="x.txt")
LS = call("shell", command="ls")

TURNS = [
    Answer("I look around.", calls=(A, call("list_files"))),
    Answer(
        calls=(call("search", pattern="two"), call("read_file", path="no.txt"), call("shell", command="ls"))
    ),
    Answer("First the new file.", calls=(call("write_file", path="x.txt", content="x\n"), A)),
    Answer(calls=(call("write_file", path="y.txt", content="y\n"), call("shell", command="cat x.txt"))),
    Answer(calls=(call("note", goal="two files"), call("other", operation="file_ops.outline"))),
    Answer(calls=(call("edit_file", path="a.txt", old_string="one", new_string="1"), X)),
    Answer(calls=(call("shell", command="cat a.txt"),)),
    Answer("Both files are there."),
    Answer(calls=(A, X)),
    Answer("They hold one line each."),
    Answer(calls=(call("shell", command="wc -l a.txt"), call("list_files"))),
    Answer("Three lines."),
]
YES, NO = AnswerApproval(yes=True), AnswerApproval(yes=False, reason="one file is enough")


class Player:
    """Gives the turns in order, and content answers to all side questions."""

    def __init__(self) -> None:
        self.turns = list(TURNS)

    def __call__(self, body: dict[str, Any]) -> Reply:
        if body.get("tools"):
            return self.turns.pop(0)
        output = asked_for(body)
        return Answer(json.dumps(CONTENT[output])) if output in CONTENT else Fault(418, output)


@every_row("model", MODELS)
async def test_A8_a_session_with_parallel_calls_a_refusal_an_approval_a_resume_and_a_fork(
    tmp_path: Path, model: str
):
    folder = tmp_path / model.partition(":")[0]
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    options: dict[str, Any] = {"model": model, "mode": "ask", "attended": True}
    with StrictServer(Player()) as server:
        async with engine(folder, server=server, **options) as duck:
            chat = duck.app.chat
            assert await chat.say("Make two files") == "awaiting_approval"
            assert await chat.answer(YES) == "awaiting_approval"
            assert await chat.answer(NO) == "awaiting_approval"
            assert await chat.answer(YES) == "done", server.refusals
            session = duck.state.session_id
            assert "refused" in [one.outcome for one in duck.of(ActionFinished)]
        async with engine(folder, server=server, session=session, **options) as duck:
            assert await duck.app.chat.say("What do they hold?") == "done", server.refusals
            other = fork(duck.app.log, session)
        async with engine(folder, server=server, session=other, **options) as duck:
            assert await duck.app.chat.say("How many lines?") == "done", server.refusals
            assert len(duck.of(DecisionMade)) == 2
        assert server.refusals == []
        assert sum(bool(asked.body.get("tools")) for asked in server.requests) == len(TURNS)
    assert (folder / "a.txt").read_text() == "1\ntwo\nthree\n"
    assert [one.name for one in sorted(folder.iterdir())] == ["a.txt", "x.txt"]


async def test_A8_a_server_that_takes_no_tools_is_asked_for_json_text(tmp_path: Path):
    answer = play(decision("Hello."), decision("Hello again."))

    def reply(body: dict[str, Any]) -> Reply:
        no = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
        return Fault(400, no) if body.get("tools") else answer(body)

    with ModelServer(reply) as server:
        async with engine(tmp_path, server=server) as duck:
            assert await duck.app.chat.say("Say hello") == "done"
            assert await duck.app.chat.say("And again") == "done"
        assert sum(bool(asked.body.get("tools")) for asked in server.requests) == 1


async def test_A8_a_question_in_plain_text_waits_for_the_user_and_is_no_failed_attempt(tmp_path: Path):
    verdict = {"requirement_scores": [{"requirement": "1", "score": 0}], "completion_recommendation": False}
    answers = play(
        "Which of the two files do you mean?", "a.txt it is.", SatisfactionEvaluation=[verdict] * 2
    )
    with ModelServer(answers) as server:
        async with engine(tmp_path, server=server) as duck:
            assert await duck.app.chat.say("Explain the file") == "pending_user"
            assert len(duck.of(DecisionMade)) == 1


async def test_A8_a_turn_ends_with_its_last_calls_where_all_of_them_succeed(tmp_path: Path):
    """The requirements come with the first calls, the reply with the last: no call is made only for them."""
    answers = [
        Answer(calls=(call("note", requirements="x.txt is there"), call("shell", command="ls"))),
        Answer(calls=(call("shell", command="test -f x.txt"), call("finish", reply="It is there."))),
        Answer(
            calls=(
                call("write_file", path="x.txt", content="x\n"),
                call("shell", command="test -f x.txt"),
                call("finish", reply="Now it is there."),
            )
        ),
    ]
    asked: list[str] = []

    def reply(body: dict[str, Any]) -> Reply:
        asked.append("Decision" if body.get("tools") else asked_for(body))
        return answers.pop(0) if body.get("tools") else Answer(json.dumps(CONTENT[asked[-1]]))

    with StrictServer(reply) as server:
        async with engine(tmp_path, server=server, model=MODELS[0]) as duck:
            assert await duck.app.chat.say("Make x.txt") == "done", server.refusals
            assert [one.text for one in duck.of(ReplyEvent)] == ["Now it is there."]
            (found,) = duck.of(RequirementsFound)
            assert [one.requirement for one in found.requirements] == ["x.txt is there"]
    assert asked == ["Decision"] * 3 + ["SatisfactionEvaluation"]
    prompts = [json.dumps(one.body) for one in server.requests if one.body.get("tools")]
    assert all(prompt.count("x.txt is there") == 1 for prompt in prompts[1:])


async def test_A8_a_reply_that_was_held_back_is_given_though_there_were_words_beside_the_calls(
    tmp_path: Path,
):
    with StrictServer(
        _turns([Answer("Last look.", calls=(LS, call("finish", reply="It is there.")))])
    ) as server:
        async with engine(tmp_path, server=server, model=MODELS[0]) as duck:
            assert await duck.app.chat.say("Look") == "done", server.refusals
            assert [one.text for one in duck.of(ReplyEvent)] == ["Last look.", "It is there."]
            assert duck.state.reply == "It is there."


async def test_A8_files_that_a_command_leaves_behind_hold_the_end_back(tmp_path: Path):
    """Tests leave files that were not asked for; a file that the command names was."""
    leaves = call("shell", command="for n in a b; do echo > junk.$n; done; echo > named.txt")
    turns = [
        Answer(calls=(leaves, call("finish", reply="Made."))),
        Answer(calls=(call("shell", command="rm junk.*"), call("finish", reply="Made named.txt."))),
    ]
    with StrictServer(_turns(turns)) as server:
        async with engine(tmp_path, server=server, model=MODELS[0]) as duck:
            assert await duck.app.chat.say("Make named.txt") == "done", server.refusals
            assert [one.text for one in duck.of(ReplyEvent)] == ["Made named.txt."]
    (second,) = [json.dumps(one.body) for one in server.requests if one.body.get("tools")][1:]
    assert "left new files behind: junk.a, junk.b." in second


async def test_A8_what_git_writes_for_a_commit_is_not_left_behind(tmp_path: Path):
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "a.txt").write_text("a\n")
    commit = call("shell", command="git add -A && git -c user.name=n -c user.email=e@x.org commit -qm first")
    turns = [Answer(calls=(commit, call("finish", reply="Committed.")))]
    with StrictServer(_turns(turns)) as server:
        async with engine(tmp_path, server=server, model=MODELS[0]) as duck:
            assert await duck.app.chat.say("Commit a.txt") == "done", server.refusals
            assert [one.text for one in duck.of(ReplyEvent)] == ["Committed."]


def _turns(turns: list[Answer]):
    def reply(body: dict[str, Any]) -> Reply:
        return turns.pop(0) if body.get("tools") else Answer(json.dumps(CONTENT[asked_for(body)]))

    return reply


async def test_A8_a_reply_that_was_held_back_waits_for_the_users_answer(tmp_path: Path):
    """After a yes, given in a later start of the program, the reply is shown; after a no, it is not."""
    write = call("write_file", path="x.txt", content="x\n")
    turns = [
        Answer(calls=(write, call("finish", reply="x.txt is there."))),
        Answer(
            calls=(call("write_file", path="y.txt", content="y\n"), call("finish", reply="y.txt is there."))
        ),
        Answer("Then there is no y.txt."),
    ]
    options: dict[str, Any] = {"model": MODELS[0], "mode": "ask", "attended": True}
    with StrictServer(_turns(turns)) as server:
        async with engine(tmp_path, server=server, **options) as duck:
            assert await duck.app.chat.say("Make x.txt") == "awaiting_approval"
            session = duck.state.session_id
        async with engine(tmp_path, server=server, session=session, **options) as duck:
            assert await duck.app.chat.answer(YES) == "done", server.refusals
            assert [one.text for one in duck.of(ReplyEvent)] == ["x.txt is there."]
            assert await duck.app.chat.say("Make y.txt") == "awaiting_approval", server.refusals
            await duck.app.chat.answer(NO)
            assert "y.txt is there." not in [one.text for one in duck.of(ReplyEvent)]
