"""The compact form: what a small model is offered, and how its few words become a Decision."""

import json
from pathlib import Path

import pytest

from duckflow.dialects.compact import Compact, CompactDecision
from duckflow.dialects.compact_prompt import Choices, compact_schema, content_prompt
from duckflow.dialects.drafts import DraftCheck, DraftLimits, inside_fence
from duckflow.domain.decision import Decision
from duckflow.domain.errors import BadAnswer
from duckflow.domain.events import ActionFinished
from duckflow.domain.model import ModelTraits
from duckflow.domain.state import AgentState, Request, TranscriptEntry
from duckflow.domain.work.objective import AttemptResult, TaskObjective
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

    async def check(self, state: AgentState, path: str, content: str) -> DraftCheck:
        """A word `wrong` is a failed check, a word `right` a passed one."""
        return DraftCheck(failed=content.count("wrong"), passed=content.count("right"))

    async def failing_tests(self, paths) -> frozenset[str]:
        return frozenset(path for path in paths if "fails" in self.files.get(path, ""))


class Asked(Folder):
    """The same where the user is known to want an answer."""

    async def choices(self, state: AgentState) -> Choices:
        return Choices(wish="answer")


def asked(text: str) -> AgentState:
    return AgentState(
        request=Request(request_id="r_1", text=text),
        transcript=(TranscriptEntry(role="user", text=text, said=True),),
    )


def flat(operation: str, wants: str = "change", **args: object) -> str:
    return json.dumps({"wants": wants, "operation": operation, **args}, ensure_ascii=False)


async def decide(model: FakeModel, folder: Folder, text: str = "Create hello.py"):
    decider = Compact(model, folder, "", lambda _: None, DraftLimits(most=3))
    return await decider.decide(asked(text), lambda _: None)


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
    """N: whatever was asked for, a Decision is a Decision."""
    whole = {"next_step": "done", "reply": "Hello."}
    assert CompactDecision.model_validate(whole).reply == "Hello."


@every_row(("test", "written"), [("# fails", ["calc.py"]), ("# passes", ["calc.py", "test_calc.py"])])
async def test_a_test_that_fails_is_not_written_together_with_its_code(test: str, written: list[str]):
    """J11: it is what the code must pass; one that passes may be meant to grow."""
    folder = Folder(calc_py="x = 1")
    folder.files["test_calc.py"] = test
    answers = [flat("write", paths=["calc.py", "test_calc.py"]), "x = 2", "y = 2"]
    decided = await decide(FakeModel(*answers, traits=SMALL), folder, "Fix calc.py")
    assert [action.args["path"] for action in decided.decision.actions] == written


async def test_each_content_is_asked_for_by_itself_and_continues_the_same_prompt():
    """A7 for small models: nothing is read twice, and code is not squeezed into JSON."""
    model = FakeModel(flat("write", paths=["hello.py"]), "print('hello')", traits=SMALL)
    decided = await decide(model, Folder())
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
    decided = await decide(model, Folder())
    assert [message.role for message in decided.exchange] == ["assistant", "user", "assistant"]
    assert decided.exchange[2].text == "```python\nx = 1\n```"


async def test_a_file_it_has_not_seen_is_shown_before_it_is_written_anew():
    model = FakeModel(flat("write", paths=["calc.py"]), "new", traits=SMALL)
    await decide(model, Folder(calc_py="def add(): ...\n"), "Add sub to calc.py")
    assert "def add(): ..." in model.requests[1].messages[-2].text


async def test_a_content_that_was_cut_off_is_never_written():
    cut = said("half of", stop="length")
    model = FakeModel(flat("write", paths=["a.py"]), cut, cut, cut, traits=SMALL)
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
    look = flat("read", wants="answer", paths=["main.go"])
    async with engine(tmp_path, look, flat("reply", wants="answer", reply="A program."), small=True) as duck:
        assert await duck.app.chat.say("What is this?") == "done"
        assert duck.state.transcript[-1].role == "assistant"


WRITE = flat("write", paths=["a.py"])


async def content_of(*drafts: str, current: str = "", **fields: object) -> tuple[object, FakeModel]:
    model = FakeModel(WRITE, *drafts, traits=SMALL)
    folder = Folder(a_py=current) if current else Folder()
    decider = Compact(model, folder, "", lambda _: None, DraftLimits(most=3, **fields))
    decided = await decider.decide(asked("Write a.py"), lambda _: None)
    return decided.decision.actions[0].args["content"], model


async def test_J11_a_draft_with_nothing_wrong_is_taken_as_it_is_and_was_greedy():
    content, model = await content_of("fine")
    assert content == "fine\n"
    assert (model.requests[-1].temperature, model.requests[-1].seed) == (0.0, None)


async def test_J11_of_several_drafts_the_one_that_passes_most_checks_is_kept():
    content, model = await content_of("wrong wrong", "wrong right", "wrong")
    assert content == "wrong right\n"
    drawn = [(one.temperature, one.seed) for one in model.requests[1:]]
    assert drawn == [(0.0, None), (0.8, 1), (0.8, 2)]
    assert len({one.messages for one in model.requests[1:]}) == 1


async def test_J11_drafts_end_with_the_first_good_one_and_with_the_time():
    content, model = await content_of("wrong", "good")
    assert (content, len(model.requests)) == ("good\n", 3)
    content, model = await content_of("wrong", seconds=-1.0)
    assert (content, len(model.requests)) == ("wrong\n", 2)


async def test_J11_a_new_attempt_is_drawn_with_other_seeds_and_differs_from_what_is_there():
    state = asked("Write a.py")
    failed = TaskObjective(request="Write a.py", attempts=(AttemptResult(number=1),))
    state = state.model_copy(update={"request": state.request.model_copy(update={"objective": failed})})
    model = FakeModel(WRITE, "x = 1", "x = 2", traits=SMALL)
    folder = Folder(a_py="x = 1\n")
    decided = await Compact(model, folder, "", lambda _: None, DraftLimits(most=3)).decide(
        state, lambda _: None
    )
    assert decided.decision.actions[0].args["content"] == "x = 2\n"
    assert [(one.temperature, one.seed) for one in model.requests[1:]] == [(0.8, 3), (0.8, 4)]


async def test_J11_the_only_file_of_a_change_is_drawn_again_if_nothing_changed():
    content, model = await content_of("x = 1", "x = 2", current="x = 1\n")
    assert (content, len(model.requests)) == ("x = 2\n", 3)
    content, _ = await content_of("x = 1", "x = 1", "x = 1", current="x = 1\n")
    assert content == "x = 1\n"


async def test_J11_a_question_is_repeated_behind_what_was_looked_up_for_it():
    state = asked("How do I reverse a list?")
    looked = TranscriptEntry(role="user", text="a.py", evidence_id="e1", operation="file_ops.read_file")
    later = state.model_copy(update={"transcript": (*state.transcript, looked)})
    for one, repeated in ((state, False), (later, True)):
        model = FakeModel(flat("reply", wants="answer", reply="list.reverse()"), traits=SMALL)
        decider = Compact(model, Asked(), "", lambda _: None, DraftLimits())
        await decider.decide(one, lambda _: None)
        assert ("The question: How do I" in model.requests[0].messages[-1].text) == repeated


async def test_F8_what_it_does_is_said_in_the_language_of_the_request():
    for text, told in (("Write a.py", "I'll write a.py."), ("a.py を書いて", "a.py を書きます。")):
        model = FakeModel(WRITE, "x", traits=SMALL)
        assert (await decide(model, Folder(), text)).decision.reply == told


async def test_F8_an_english_answer_to_a_japanese_question_is_translated_by_itself_once():
    english, japanese = (flat("reply", wants="answer", reply=one) for one in ("A list.", "リストです。"))
    model = FakeModel(english, "リストです。\n", traits=SMALL)
    decided = await decide(model, Folder(), "リストとは何ですか？")
    assert decided.decision.reply == "リストです。"
    assert [one.text for one in model.requests[1].messages][1:] == ["A list."]
    assert "リストです。" in decided.exchange[-1].text
    for second in ("A list.", "ユーザーの文章を日本語に訳してください。", ""):
        model = FakeModel(english, second, traits=SMALL)
        assert (await decide(model, Folder(), "リストとは何ですか？")).decision.reply == "A list."
    model = FakeModel(japanese, traits=SMALL)
    assert len((await decide(model, Folder(), "リストとは何ですか？")).calls) == 1


async def test_F8_a_japanese_answer_to_an_english_question_is_asked_for_in_english_once():
    english, japanese = (flat("reply", wants="answer", reply=one) for one in ("A list.", "リストです。"))
    model = FakeModel(japanese, english, traits=SMALL)
    assert (await decide(model, Folder(), "What is a list?")).decision.reply == "A list."
    assert "English" in model.requests[1].messages[-1].text
    model = FakeModel(japanese, traits=SMALL)
    assert (await decide(model, Folder(), "What is a list in Japanese?")).decision.reply == "リストです。"


async def test_where_there_are_rules_a_long_request_is_not_read_twice_and_its_end_is_where_the_question_is():
    story = "Once there was a duck. " * 60 + "Now write a.py."
    model = FakeModel(WRITE, "x", traits=SMALL)
    decider = Compact(model, Folder(), "Rules.", lambda _: None, DraftLimits())
    await decider.decide(asked(story), lambda _: None)
    first, second = model.requests
    assert "Now write a.py." in first.messages[-1].text
    assert "Once there was" not in second.messages[-2].text
    assert "The request: short" in content_prompt("short", "a.py", exists=True, unseen=None).question


async def test_J11_what_the_user_adds_to_a_request_is_part_of_it():
    """A follow-up does not make the first message forgotten, nor is it forgotten itself."""
    state = asked("Write a.py")
    objective = TaskObjective(request="Write a.py\n\nwith two functions")
    later = (
        TranscriptEntry(role="assistant", text="…"),
        TranscriptEntry(role="user", text="with two functions", said=True),
    )
    request = state.request.model_copy(update={"objective": objective})
    state = state.model_copy(update={"request": request, "transcript": state.transcript + later})
    model = FakeModel(WRITE, "x", traits=SMALL)
    await Compact(model, Folder(), "", lambda _: None, DraftLimits()).decide(state, lambda _: None)
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


class Told(Folder):
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
    decider = Compact(model, Told(), "Use tabs.", lambda _: None, DraftLimits())
    await decider.decide(asked(STORY), lambda _: None)
    assert all("Use tabs." in one.messages[0].text for one in model.requests)
