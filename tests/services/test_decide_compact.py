"""The compact form: what a small model is offered, and how its few words become a Decision."""

import json
from pathlib import Path

import pytest

from duckflow.domain.decision import Decision
from duckflow.domain.errors import BadAnswer
from duckflow.domain.events import ActionFinished
from duckflow.domain.model import ModelTraits
from duckflow.domain.state import AgentState, Request, TranscriptEntry
from duckflow.prompts.compact import Choices, compact_schema, content_prompt
from duckflow.services.decide_compact import CompactDecider, CompactDecision, inside_fence
from fakes.engine import engine
from fakes.model import FakeModel, said
from fakes.rows import every_row

SMALL = ModelTraits(name="small", window=4096, small=True)


class Folder:
    """A workspace of a few files."""

    def __init__(self, **files: str) -> None:
        self.files = {name.replace("_", "."): text for name, text in files.items()}

    async def choices(self, state: AgentState) -> Choices:
        names = tuple(self.files)
        return Choices(files=names, unseen=names, hidden=names, may_search=bool(names))

    async def content(self, path: str) -> str | None:
        return self.files.get(path)


def asked(text: str) -> AgentState:
    return AgentState(
        request=Request(request_id="r_1", text=text),
        transcript=(TranscriptEntry(role="user", text=text, said=True),),
    )


def flat(operation: str, wants: str = "change", reply: str = "ok", **args: object) -> str:
    return json.dumps({"wants": wants, "operation": operation, **args, "reply": reply})


async def decide(model: FakeModel, folder: Folder, text: str = "Create hello.py"):
    return await CompactDecider(model, folder, "", lambda _: None).decide(asked(text), lambda _: None)


def offered(choices: Choices) -> set[tuple[str, str]]:
    alternatives = compact_schema(choices)["anyOf"]
    return {(a["properties"]["wants"]["const"], a["properties"]["operation"]["const"]) for a in alternatives}


def test_an_empty_folder_offers_no_reading():
    assert offered(Choices()) == {("answer", "reply"), ("change", "file_ops.write_file")}


def test_what_was_wanted_stays_for_the_request():
    files = ("a.py",)
    choices = Choices(wish="answer", files=files, unseen=files, may_search=True)
    assert {wish for wish, _ in offered(choices)} == {"answer"}
    assert ("change", "file_ops.delete_file") in offered(Choices(wish="change", files=files))


def test_paths_can_only_be_files_that_are_there():
    schema = compact_schema(Choices(files=("a.py", "b.py"), unseen=("b.py",)))
    by_operation = {a["properties"]["operation"]["const"]: a["properties"] for a in schema["anyOf"]}
    assert by_operation["file_ops.read_file"]["paths"]["items"] == {"enum": ["b.py"]}
    assert by_operation["file_ops.move_file"]["path"] == {"enum": ["a.py", "b.py"]}


def test_a_flat_answer_is_a_whole_decision():
    answer = CompactDecision.model_validate_json(flat("file_ops.write_file", paths=["a", "b", "a"]))
    assert [action.args for action in answer.actions] == [{"path": "a"}, {"path": "b"}]
    assert (answer.next_step, answer.task_profile) == ("done", "file_operation")
    looking = CompactDecision.model_validate_json(flat("file_ops.search", wants="answer", pattern="x"))
    assert (looking.next_step, looking.task_profile) == ("continue", "simple_question")
    assert CompactDecision.model_validate_json(flat("reply", wants="answer")).actions == ()


def test_a_full_decision_is_accepted_too():
    """N: whatever was asked for, a Decision is a Decision."""
    whole = {"next_step": "done", "reply": "Hello."}
    assert CompactDecision.model_validate(whole).reply == "Hello."


async def test_each_content_is_asked_for_by_itself_and_continues_the_same_prompt():
    """A7 for small models: nothing is read twice, and code is not squeezed into JSON."""
    model = FakeModel(flat("file_ops.write_file", paths=["hello.py"]), "print('hello')", traits=SMALL)
    decided = await decide(model, Folder())
    (action,) = decided.decision.actions
    assert action.args == {"path": "hello.py", "content": "print('hello')\n"}
    first, second = model.requests
    assert second.messages[: len(first.messages)] == first.messages
    said = json.loads(second.messages[len(first.messages)].text)
    assert said == {**json.loads(flat("file_ops.write_file", paths=["hello.py"])), "reply": "…"}
    assert decided.decision.reply == "ok"
    assert second.messages[-1].text == "```python\n"
    assert second.stop == ("\n```",)
    assert second.answer_schema is None
    assert "Create hello.py" in second.messages[-2].text
    assert [call.output for call in decided.calls] == ["Decision", "Content"]
    assert type(decided.decision) is Decision


async def test_the_next_prompt_repeats_what_was_said_word_for_word():
    """F5: the exchange holds the model's own words, so that the runtime's memory of them is used."""
    model = FakeModel(flat("file_ops.write_file", paths=["a.py"]), "x = 1", traits=SMALL)
    decided = await decide(model, Folder())
    assert [message.role for message in decided.exchange] == ["assistant", "user", "assistant"]
    assert decided.exchange[2].text == "```python\nx = 1\n```"


async def test_a_file_it_has_not_seen_is_shown_before_it_is_written_anew():
    model = FakeModel(flat("file_ops.write_file", paths=["calc.py"]), "new", traits=SMALL)
    await decide(model, Folder(calc_py="def add(): ...\n"), "Add sub to calc.py")
    assert "def add(): ..." in model.requests[1].messages[-2].text


async def test_a_content_that_was_cut_off_is_never_written():
    model = FakeModel(
        flat("file_ops.write_file", paths=["a.py"]), said("half of", stop="length"), traits=SMALL
    )
    with pytest.raises(BadAnswer) as error:
        await decide(model, Folder())
    assert error.value.key == "llm.content_cut"
    assert error.value.usage is not None


@every_row(
    ("text", "content"),
    [
        ("print(1)", "print(1)\n"),
        ("```python\nprint(1)\n```", "print(1)\n"),
        ("```\nprint(1)", "print(1)\n"),
        ("\n\nprint(1)\n\n", "print(1)\n"),
        ("print(1)\n```\nThis prints one.", "print(1)\n"),
        ("    indented = 1", "    indented = 1\n"),
        ("", ""),
        ("```", ""),
        ("```python\n```", ""),
    ],
)
def test_only_what_is_inside_the_fence_counts(text: str, content: str):
    prompt = content_prompt("request", "a.py", exists=False, unseen=None)
    assert inside_fence(text, prompt) == content


def test_markdown_may_hold_fences():
    prompt = content_prompt("request", "README.md", exists=False, unseen=None)
    text = "# Title\n```sh\nmake\n```\nEnd"
    assert inside_fence(text, prompt) == f"{text}\n"


async def test_files_the_user_names_are_read_before_a_small_model_is_asked(tmp_path: Path):
    (tmp_path / "calc.py").write_text("def add(a, b): ...\n")
    (tmp_path / "other.py").write_text("")
    async with engine(tmp_path, flat("reply", wants="answer", reply="It adds."), small=True) as duck:
        assert await duck.app.chat.say("What does calc.py do?") == "done"
        (read,) = duck.of(ActionFinished)
        assert (read.operation, read.path) == ("file_ops.read_file", "calc.py")


async def test_after_a_look_an_answer_can_only_be_an_answer(tmp_path: Path):
    """A question must not end in a changed file because a small model lost its way."""
    (tmp_path / "main.go").write_text("package main\n")
    look = flat("file_ops.read_file", wants="answer", paths=["main.go"])
    async with engine(tmp_path, look, flat("reply", wants="answer"), small=True) as duck:
        assert await duck.app.chat.say("What is this?") == "done"
        assert duck.state.transcript[-1].role == "assistant"
