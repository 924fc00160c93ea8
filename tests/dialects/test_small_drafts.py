"""Drafts of a small model: which are drawn, kept, left out (J11, G1)."""

from duckflow.dialects.compact import Compact
from duckflow.dialects.compact_prompt import Choices
from duckflow.dialects.drafts import DraftLimits
from duckflow.domain.live_updates import LiveUpdate, ReplyPiece, Writing
from duckflow.domain.questions.approval import STOPPED
from duckflow.domain.state import TranscriptEntry
from duckflow.domain.work.objective import AttemptResult, TaskObjective
from fakes.model import FakeModel
from fakes.rows import every_row
from fakes.small_folder import SMALL, WRITE, Decided, SmallFolder, asked, content_of, decide, flat


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


async def test_J11_an_empty_draft_is_none():
    """The real model wrote an empty CHANGES.txt and stopped there."""
    content, _ = await content_of("```", "x = 1")
    assert content == "x = 1\n"


NO, STOP = "The user said no: two", f"{STOPPED} If they go on, it may be proposed again."


@every_row(
    ("answer", "said", "drafts", "written"),
    [
        (NO, "", ["x = 1", "x = 2"], "x = 2\n"),
        (NO, "", ["x = 1"] * 3, None),
        (NO, "Write a.py again", ["x = 1"] * 3, None),
        (STOP, "Write a.py please", ["x = 1", "x = 2"], "x = 2\n"),
        (STOP, "Write a.py please", ["x = 1"] * 3, None),
        (STOP, "go on", ["x = 1"], "x = 1\n"),
    ],
)
async def test_G1_a_refused_draft_is_not_drawn_again(answer, said, drafts, written):
    """Four times in five minutes, the real model drew the same draft."""
    state = asked("Write a.py")
    shown = (
        TranscriptEntry(role="user", text="Now write a.py"),
        TranscriptEntry(role="assistant", text="```python\nx = 1\n```"),
        TranscriptEntry(
            role="user",
            text=answer,
            evidence_id="e1",
            operation="file_ops.write_file",
            path="a.py",
            failed=True,
        ),
        *((TranscriptEntry(role="user", text=said, said=True),) if said else ()),
    )
    state = state.model_copy(update={"transcript": (*state.transcript, *shown)})
    model = FakeModel(WRITE, *drafts, traits=SMALL)
    decider = Compact(model, SmallFolder(), "", lambda _: (), DraftLimits(most=3))
    decided = (await decider.decide(state, lambda _: None)).decision
    assert (decided.actions[0].args["content"] if decided.actions else None) == written
    assert written or "no other version of a.py" in decided.reply


async def test_J11_drafts_end_with_the_first_good_one_and_with_the_time():
    content, model = await content_of("wrong", "good")
    assert (content, len(model.requests)) == ("good\n", 3)
    content, model = await content_of("wrong", seconds=-1.0)
    assert (content, len(model.requests)) == ("wrong\n", 2)
    content, model = await content_of("x = 1", "x = 2", current="x = 1\n", seconds=-1.0)
    assert (content, len(model.requests)) == ("x = 2\n", 3), "one unusable draft is no answer yet"


async def test_J11_a_new_attempt_is_drawn_with_other_seeds_and_differs_from_what_is_there():
    state = asked("Write a.py")
    failed = TaskObjective(request="Write a.py", attempts=(AttemptResult(number=1),))
    state = state.model_copy(update={"request": state.request.model_copy(update={"objective": failed})})
    model = FakeModel(WRITE, "x = 1", "x = 2", traits=SMALL)
    folder = SmallFolder(a_py="x = 1\n")
    decided = await Compact(model, folder, "", lambda _: (), DraftLimits(most=3)).decide(
        state, lambda _: None
    )
    assert decided.decision.actions[0].args["content"] == "x = 2\n"
    assert [(one.temperature, one.seed) for one in model.requests[1:]] == [(0.8, 3), (0.8, 4)]


async def test_J11_the_only_file_of_a_change_is_drawn_again_if_nothing_changed():
    content, model = await content_of("x = 1", "x = 2", current="x = 1\n")
    assert (content, len(model.requests)) == ("x = 2\n", 3)


@every_row(
    ("asked_for", "drafts", "written"),
    [
        ("Fix a.py", ["x = 1"] * 3, None),
        ("Fix a.py", ["# now it works\nx = 1"] * 3, None),
        ("Fix a.py", ['"""It works."""\nx = 1', "x = 2"], "x = 2\n"),
        ("Add a comment to a.py", ["# now it works\nx = 1"], "# now it works\nx = 1\n"),
        ("a.py にコメントを付けて", ["# 値\nx = 1"], "# 値\nx = 1\n"),
    ],
)
async def test_J11_comments_alone_are_no_change_of_what_a_program_does(asked_for, drafts, written):
    """The real model added docstrings where a fix was wanted, and that counted as the fix."""
    model = FakeModel(WRITE, *drafts, traits=SMALL)
    decided = (await decide(model, SmallFolder(a_py="x = 1\n"), asked_for)).decision
    assert [one.args["content"] for one in decided.actions] == ([written] if written else [])
    assert written or "no change to make in a.py" in decided.reply


@every_row(
    ("path", "said", "placed"),
    [
        ("app.py", "Fix the greeting", "src/app.py"),
        ("web/app.py", "Fix the greeting", "src/app.py"),
        ("web/app.py", "Create web/app.py", "web/app.py"),
        ("src/app.py", "Fix the greeting", "src/app.py"),
        ("new/util.py", "Fix the greeting", "new/util.py"),
    ],
)
async def test_J11_no_file_of_the_same_name_is_written_beside_the_one_that_is_there(path, said, placed):
    folder = SmallFolder()
    folder.files = {"src/app.py": "x = 1\n"}
    decided = await decide(FakeModel(flat("write", paths=[path]), "x = 2", traits=SMALL), folder, said)
    assert [one.args["path"] for one in decided.decision.actions] == [placed]


@every_row(
    ("said", "files", "written"),
    [
        ("make a program that says hello", (), "hello.py"),
        ("make a Ruby program that says hello", (), "hello.rb"),
        ("make hello.rb", (), "hello.rb"),
        ("make a program that says hello", ("app.rb",), "hello.rb"),
    ],
)
async def test_J11_a_program_in_no_named_language_is_python(said, files, written):
    """The real model wrote hello.rb for a user who had asked for "a program"."""
    folder = SmallFolder()
    folder.files = dict.fromkeys(files, "puts 1\n")
    model = FakeModel(flat("write", paths=["hello.rb"]), "print(1)", traits=SMALL)
    decided = await decide(model, folder, said)
    assert decided.decision.actions[0].args["path"] == written


async def test_J11_the_file_is_announced_before_it_is_written():
    """A small model writes for minutes, and the announcement is the only sign of its work."""
    for choices, answers in (
        (Choices(wish="change", writes="a.py"), ["x = 1"]),
        (Choices(wish="change"), [WRITE, "x = 1"]),
    ):
        shown: list[LiveUpdate] = []
        decider = Compact(
            FakeModel(*answers, traits=SMALL), Decided(choices), "", lambda _: (), DraftLimits()
        )
        await decider.decide(asked("Write a.py"), shown.append)
        first, *rest = shown
        assert first == ReplyPiece(text="I'll write a.py.\n")
        assert sum(one.size for one in rest if isinstance(one, Writing)) == len("x = 1")
