"""The compact form: the schema a small model gets, and the Decision made from its short answer."""

from pathlib import Path

import pytest

from duckflow.dialects.compact import Compact, CompactDecision
from duckflow.dialects.compact_prompt import Choices, compact_schema, content_prompt
from duckflow.dialects.drafts import DraftLimits, inside_fence
from duckflow.domain.decision import Decision
from duckflow.domain.errors import BadAnswer
from duckflow.domain.events import ActionFinished
from duckflow.domain.state import AgentState, TranscriptEntry
from duckflow.domain.work.objective import TaskObjective
from fakes.engine import engine
from fakes.model import FakeModel, said
from fakes.rows import every_row
from fakes.small_folder import SMALL, WRITE, Decided, SmallFolder, asked, content_of, decide, flat


class Asked(SmallFolder):
    """A folder, and a user who is known to want an answer."""

    async def choices(self, state: AgentState) -> Choices:
        return Choices(wish="answer")


def answer(reply: str) -> dict[str, str]:
    return {"for": "Answer", "text": reply}


def offered(choices: Choices) -> set[tuple[str, str]]:
    alternatives = compact_schema(choices)["anyOf"]
    return {(a["properties"]["wants"]["const"], a["properties"]["operation"]["const"]) for a in alternatives}


def test_an_empty_folder_offers_no_reading():
    assert offered(Choices()) == {("answer", "reply"), ("change", "write")}


def test_what_was_wanted_stays_for_the_request():
    files = ("a.py",)
    choices = Choices(wish="answer", files=files, unseen=files, may_search=True)
    assert {wish for wish, _ in offered(choices)} == {"answer"}
    assert ("change", "delete") in offered(Choices(wish="change", files=files))
    assert ("change", "delete") not in offered(Choices(wish="change", files=files, may_delete=False))


def test_paths_can_only_be_files_that_are_there():
    schema = compact_schema(Choices(files=("a.py", "b.py"), unseen=("b.py",)))
    by_operation = {a["properties"]["operation"]["const"]: a["properties"] for a in schema["anyOf"]}
    assert by_operation["read"]["paths"]["items"] == {"enum": ["b.py"]}
    assert by_operation["move"]["path"] == {"enum": ["a.py", "b.py"]}


def test_a_flat_answer_is_a_whole_decision():
    answer = CompactDecision.model_validate_json(flat("write", paths=["a", "b", "a"]))
    assert [action.args for action in answer.actions] == [{"path": "a"}, {"path": "b"}]
    assert (answer.next_step, answer.task_profile) == ("done", "file_operation")
    looking = CompactDecision.model_validate_json(flat("search", wants="answer", pattern="x"))
    assert (looking.next_step, looking.task_profile) == ("continue", "simple_question")
    assert CompactDecision.model_validate_json(flat("reply", wants="answer", reply="x")).actions == ()


def test_a_full_decision_is_accepted_too():
    """N: a complete Decision is accepted where the compact form was requested."""
    whole = {"next_step": "done", "reply": "Hello."}
    assert CompactDecision.model_validate(whole).reply == "Hello."


@every_row(("test", "written"), [("# fails", ["calc.py"]), ("# passes", ["calc.py", "test_calc.py"])])
async def test_a_test_that_fails_is_not_written_together_with_its_code(test: str, written: list[str]):
    """J11: the code must pass a failing test; a passing one may be meant to grow."""
    folder = SmallFolder(calc_py="x = 1")
    folder.files["test_calc.py"] = test
    answers = [flat("write", paths=["calc.py", "test_calc.py"]), "x = 2", "y = 2"]
    decided = await decide(FakeModel(*answers, traits=SMALL), folder, "Fix calc.py")
    assert [action.args["path"] for action in decided.decision.actions] == written


async def test_each_content_is_asked_for_by_itself_and_continues_the_same_prompt():
    """A7 for small models: nothing is read twice, and code is not squeezed into JSON."""
    model = FakeModel(flat("write", paths=["hello.py"]), "print('hello')", traits=SMALL)
    decided = await decide(model, SmallFolder())
    (action,) = decided.decision.actions
    assert action.args == {"path": "hello.py", "content": "print('hello')\n"}
    first, second = model.requests
    assert second.messages[: len(first.messages)] == first.messages
    assert second.messages[len(first.messages)].text == flat("write", paths=["hello.py"])
    assert decided.decision.reply == "I'll write hello.py."
    assert second.messages[-1].text == "```python\n"
    assert second.stop == ("\n```",)
    assert second.answer_schema is None
    assert "Create hello.py" not in second.messages[-2].text
    assert [call.output for call in decided.calls] == ["Decision", "Content"]
    assert type(decided.decision) is Decision


async def test_the_next_prompt_repeats_what_was_said_word_for_word():
    """F5: the exchange holds the model's own words, so that the runtime's memory of them is used."""
    model = FakeModel(flat("write", paths=["a.py"]), "x = 1", traits=SMALL)
    decided = await decide(model, SmallFolder())
    assert [message.role for message in decided.exchange] == ["assistant", "user", "assistant"]
    assert decided.exchange[2].text == "```python\nx = 1\n```"


async def test_a_file_it_has_not_seen_is_shown_before_it_is_written_anew():
    model = FakeModel(flat("write", paths=["calc.py"]), "new", traits=SMALL)
    await decide(model, SmallFolder(calc_py="def add(): ...\n"), "Add sub to calc.py")
    assert "def add(): ..." in model.requests[1].messages[-2].text


async def test_a_content_that_was_cut_off_is_never_written():
    cut = said("half of", stop="length")
    model = FakeModel(flat("write", paths=["a.py"]), cut, cut, cut, traits=SMALL)
    with pytest.raises(BadAnswer) as error:
        await decide(model, SmallFolder())
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
    async with engine(tmp_path, answer("It adds."), answer("Two numbers."), small=True) as duck:
        assert await duck.app.chat.say("What does calc.py do?") == "done"
        (read,) = duck.of(ActionFinished)
        assert (read.operation, read.path) == ("file_ops.read_file", "calc.py")
        assert await duck.app.chat.say("Explain calc.py") == "done"
        assert len(duck.of(ActionFinished)) == 1, "a file that is in view is not read again"


async def test_after_a_look_an_answer_can_only_be_an_answer(tmp_path: Path):
    """A question must not end in a changed file because a small model lost its way."""
    (tmp_path / "main.go").write_text("package main\n")
    look = flat("read", wants="answer", paths=["main.go"])
    reply = flat("reply", wants="answer")
    async with engine(tmp_path, look, reply, answer("A program."), small=True) as duck:
        assert await duck.app.chat.say("What is this?") == "done"
        assert duck.state.transcript[-1].role == "assistant"


async def test_J11_the_question_stands_at_the_end_of_the_prompt_for_an_answer():
    """Without it, the real model answered 「説明して」 with a greeting."""
    looked = TranscriptEntry(role="user", text="a.py", evidence_id="e1", operation="file_ops.read_file")
    for text, ending in (("How do I sort?", "The question: How do I sort?"), ("説明して", "質問: 説明して")):
        state = asked(text)
        later = state.model_copy(update={"transcript": (*state.transcript, looked)})
        model = FakeModel("sort() でできます", "sort()", traits=SMALL)
        await Compact(model, Asked(), "", lambda _: (), DraftLimits()).decide(later, lambda _: None)
        assert model.requests[0].messages[-1].text.startswith(ending)


async def test_J11_a_file_that_can_not_be_shown_whole_is_never_written_anew():
    """The model would write a short new file over a long one."""
    decided = await decide(FakeModel(WRITE, traits=SMALL), Decided(Choices(wish="change", files=("a.py",))))
    assert decided.decision.actions == ()
    assert "too large" in decided.decision.reply


async def test_J11_a_name_without_its_folder_means_the_file_that_is_there():
    """The real model wrote counter.js beside the folder js, where the page does not look."""
    folder = Decided(Choices(wish="change", files=("js/a.py",)))
    folder.files["js/a.py"] = "y = 1\n"
    decided = await decide(FakeModel(WRITE, "x = 1", traits=SMALL), folder)
    assert decided.decision.actions[0].args["path"] == "js/a.py"


async def test_J11_docstrings_and_blank_lines_stay_when_a_file_is_written_anew():
    """The real model left out both, on each of its first changes in three projects."""
    current = '"""Counts."""\n\nimport os\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return 2\n'
    content, model = await content_of(
        "import os\n\ndef f():\n    return 3\n\ndef g():\n    return 2", current=current
    )
    assert content == current.replace("return 1", "return 3")
    assert model.requests[-1].messages[-1].text.endswith('"""Counts."""\n\n')


async def test_F8_what_it_does_is_said_in_the_language_of_the_request():
    for text, told in (("Write a.py", "I'll write a.py."), ("a.py を書いて", "a.py を書きます。")):
        model = FakeModel(WRITE, "x", traits=SMALL)
        assert (await decide(model, SmallFolder(), text)).decision.reply == told


async def test_F8_an_english_answer_to_a_japanese_question_is_translated_by_itself_once():
    asks = "リストとは何ですか？"
    model = FakeModel("A list.", "リストです。\n", traits=SMALL)
    decided = await decide(model, Asked(), asks)
    assert decided.decision.reply == "リストです。"
    assert [one.text for one in model.requests[1].messages][1:] == ["A list."]
    assert decided.exchange[-1].text == "リストです。"
    for second in ("A list.", "ユーザーの文章を日本語に訳してください。", ""):
        model = FakeModel("A list.", second, traits=SMALL)
        assert (await decide(model, Asked(), asks)).decision.reply == "A list."
    model = FakeModel("リストです。", traits=SMALL)
    await decide(model, Asked(), asks)
    assert len(model.requests) == 1
    assert "日本語で答えてください" in model.requests[0].messages[-1].text


async def test_F8_a_japanese_answer_to_an_english_question_is_asked_for_in_english_once():
    model = FakeModel("リストです。", "A list.", traits=SMALL)
    assert (await decide(model, Asked(), "What is a list?")).decision.reply == "A list."
    assert "English" in model.requests[1].messages[-1].text
    model = FakeModel("リストです。", traits=SMALL)
    assert (await decide(model, Asked(), "What is a list in Japanese?")).decision.reply == "リストです。"


@every_row(
    ("written", "reply"),
    [
        ("It adds:\n- two numbers\n- lists", "It adds:\n- two numbers\n- lists"),
        ('{"wants":"answer","operation":"reply","reply":"It adds."}', "It adds."),
        ("{x} is a set.", "{x} is a set."),
    ],
)
async def test_F8_an_answer_is_given_in_plain_words_after_the_decision_to_answer(written: str, reply: str):
    """Inside JSON, the real model ended its answer with `Here is a list of the most common ones:`."""
    model = FakeModel(flat("reply", wants="answer"), written, traits=SMALL)
    decided = await decide(model, SmallFolder(a_py="x"), "Is this good code?")
    assert (decided.decision.reply, decided.decision.actions) == (reply, ())
    assert [call.output for call in decided.calls] == ["Decision", "Answer"]
    assert model.requests[1].answer_schema is None
    assert decided.exchange[-1].text == reply


async def test_where_there_are_rules_a_long_request_is_not_read_twice_and_its_end_is_where_the_question_is():
    story = "Once there was a duck. " * 60 + "Now write a.py."
    model = FakeModel(WRITE, "x", traits=SMALL)
    decider = Compact(model, SmallFolder(), "Rules.", lambda _: (), DraftLimits())
    await decider.decide(asked(story), lambda _: None)
    first, second = model.requests
    assert "Now write a.py." in first.messages[-1].text
    assert "Once there was" not in second.messages[-2].text
    assert "The request: short" in content_prompt("short", "a.py", exists=True, unseen=None).question


async def test_J11_what_the_user_adds_to_a_request_is_part_of_it():
    """The model sees the first message as well as a follow-up."""
    state = asked("Write a.py")
    objective = TaskObjective(request="Write a.py\n\nwith two functions")
    later = (
        TranscriptEntry(role="assistant", text="…"),
        TranscriptEntry(role="user", text="with two functions", said=True),
    )
    request = state.request.model_copy(update={"objective": objective})
    state = state.model_copy(update={"request": request, "transcript": state.transcript + later})
    model = FakeModel(WRITE, "x", traits=SMALL)
    await Compact(model, SmallFolder(), "", lambda _: (), DraftLimits()).decide(state, lambda _: None)
    question = model.requests[1].messages[-2].text
    assert "Write a.py" in question
    assert "with two functions" in question


def drafts(*texts: str) -> list[dict[str, str]]:
    return [{"for": "Content", "text": text} for text in texts]


async def test_J11_the_draft_that_passes_the_example_of_the_request_is_the_one_that_is_written(
    tmp_path: Path,
):
    contents = drafts("def add(a, b):\n    return a - b", "def add(a, b):\n    return a + b")
    async with engine(tmp_path, WRITE, *contents, small=True, checks={}) as duck:
        assert await duck.app.chat.say("Write a.py so that add(2, 3) == 5") == "done"
        assert (tmp_path / "a.py").read_text() == "def add(a, b):\n    return a + b\n"
        assert len(duck.of(ActionFinished)) == 1


async def test_J11_after_a_failed_check_the_next_attempt_sees_it_and_is_not_refused(tmp_path: Path):
    contents = drafts(*["def ("] * 4, "def (", "x = 1")
    async with engine(tmp_path, WRITE, WRITE, *contents, small=True) as duck:
        assert await duck.app.chat.say("Write a.py") == "done"
        assert (tmp_path / "a.py").read_text() == "x = 1\n"
        assert [one.outcome for one in duck.of(ActionFinished)] == ["ok", "ok"]
        told = [entry.text for entry in duck.state.transcript if "this failed" in entry.text]
        assert len(told) == 1
        assert "a.py" in told[0]


STORY = "A duck wants its ponds in order. " * 12 + "Write pond.py for it."


class Told(SmallFolder):
    """An empty folder, and a long message that names one file."""

    async def choices(self, state: AgentState) -> Choices:
        return Choices(wish="change", told="pond.py", files=tuple(self.files))


async def test_J11_a_long_message_that_can_only_mean_one_file_costs_one_plain_call():
    model = FakeModel("x = 1", traits=SMALL)
    decided = await decide(model, Told(), STORY)
    (asked_for,) = model.requests
    assert [message.role for message in asked_for.messages] == ["user", "assistant"]
    assert asked_for.messages[0].text == f"{STORY}\n\nWrite the whole content of pond.py in one code block."
    assert decided.decision.actions[0].args == {"path": "pond.py", "content": "x = 1\n"}
    assert (decided.decision.next_step, decided.decision.task_profile) == ("done", "file_operation")
    assert [message.role for message in decided.exchange] == ["assistant", "user", "assistant"]


async def test_J11_a_stub_is_in_view_and_rules_are_never_left_out():
    stub = "def pond(): ...\n"
    model = FakeModel(flat("write", paths=["pond.py"]), "x", traits=SMALL)
    await decide(model, Told(pond_py=stub), STORY)
    assert stub in model.requests[1].messages[0].text
    model = FakeModel(flat("write", paths=["pond.py"]), "x", traits=SMALL)
    decider = Compact(model, Told(), "Use tabs.", lambda _: (), DraftLimits())
    await decider.decide(asked(STORY), lambda _: None)
    assert all("Use tabs." in one.messages[0].text for one in model.requests)
