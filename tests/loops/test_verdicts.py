"""J3: a verdict that people agree with, as it stands below what the user has seen."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from duckflow.domain.commands import SayMessage
from duckflow.domain.events import ActionStarted, DecisionMade, Evaluated, Reply, StoredEvent, VerifySet
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.domain.questions.consultation import ChooseWay
from duckflow.i18n.catalogue import set_language
from duckflow.tools.shell import RUN
from duckflow.ui.views.goal import evaluation_text, goal_text
from fakes.engine import CONTENT, action, decision, engine
from fakes.model_server import ModelServer
from fakes.plays import asked_for, play
from fakes.repository import git, make_repository
from fakes.rows import every_row

CLAIM = "memo.md を作成しました。"
TEST = "make test"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@every_row("guidance", ["", "もっと短くして"])
async def test_J3_G1_a_small_model_that_only_claims_a_refused_file_is_never_done(
    tmp_path: Path, guidance: str
):
    folder = tmp_path / (guidance or "bare")
    folder.mkdir()
    wants = {"wants": "change", "operation": "write", "paths": ["memo.md"]}
    claims = {"wants": "answer", "operation": "reply", "reply": CLAIM}
    answers = [json.dumps(wants), "# メモ\n", *[json.dumps(claims, ensure_ascii=False)] * 4]
    with ModelServer(play(*answers)) as server:
        async with engine(folder, server=server, mode="ask", small=True) as duck:
            assert await duck.app.chat.say("買い物メモが memo.md に必要です") == "awaiting_approval"
            outcome = await duck.app.chat.answer(AnswerApproval(yes=False, reason=guidance))
            if outcome == "consultation":
                outcome = await duck.app.chat.choose(ChooseWay(choice="instruct", text="もっと短くして"))
            assert outcome == "not_judged"
            set_language("ja")
            shown = goal_text(duck.state)
    assert "ファイルが変更されていません" in shown
    assert shown.endswith("? 終了（未評価）")
    assert "0 %" not in shown
    assert not (folder / "memo.md").exists()


@every_row(
    ("reply", "done"),
    [
        (CLAIM, False),
        ("I created memo.md for you.", False),
        ("I created there.md before.", True),
        ("memo.md は touch memo.md で作れます。", True),
        ("こんにちは", True),
    ],
)
async def test_J3_a_reply_that_only_claims_to_have_written_a_file_is_never_done(
    tmp_path: Path, reply: str, done: bool
):
    folder = tmp_path / reply[:12].replace(" ", "_")
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "there.md").write_text("x")
    claims = json.dumps({"wants": "answer", "operation": "reply", "reply": reply}, ensure_ascii=False)
    wants = json.dumps({"wants": "change", "operation": "write", "paths": ["memo.md"]})
    with ModelServer(play(claims, wants, "# メモ\n", "# メモ\n")) as server:
        async with engine(folder, server=server, small=True) as duck:
            asked = "memo.md please" if reply.isascii() else "買い物メモが memo.md に必要です"
            assert await duck.app.chat.say(asked) == "done"
            judged = [one.evaluation.done for one in duck.of(Evaluated)]
    assert judged == ([] if done else [False, True])
    assert (folder / "memo.md").exists() is not done


async def test_J11_a_small_model_that_is_done_has_closing_words_and_no_score_without_a_reason(folder: Path):
    wants = {"wants": "change", "operation": "write", "paths": ["memo.md"]}
    with ModelServer(play(json.dumps(wants), "# メモ\n")) as server:
        async with engine(folder, server=server, small=True) as duck:
            set_language("ja")
            assert await duck.app.chat.say("買い物メモを memo.md に書いて") == "done"
            assert duck.of(Reply)[-1].text == "memo.md に書き込みました。内容をご確認ください。"
            shown = evaluation_text(duck.of(Evaluated)[-1])
    assert shown.startswith("⚖ 書き込みました（動作は未確認です）\n")
    assert "動作は確認していません" in shown
    assert "%" not in shown


@every_row(
    ("path", "content", "told"),
    [
        ("hello.py", "print('hello')", "!python3 hello.py"),
        ("ask.py", "print(input('Name? '))", "another terminal: python3 ask.py"),
        ("my game.py", "if True:\n    print(1)", "!python3 'my game.py'"),
        ("shapes.py", "def area(r):\n    return r", "“write a test for shapes.py”"),
        ("index.html", "<p>Hello</p>", "open index.html in a browser"),
        ("backup.js", "save()", "!node backup.js"),
        ("memo.md", "# Memo", "read it over"),
    ],
)
async def test_M1_what_was_written_without_a_test_ends_with_how_to_try_it(
    tmp_path: Path, path: str, content: str, told: str
):
    folder = tmp_path / path.replace(".", "_")
    folder.mkdir()
    wants = {"wants": "change", "operation": "write", "paths": [path]}
    with ModelServer(play(json.dumps(wants), content)) as server:
        async with engine(folder, server=server, small=True) as duck:
            assert await duck.app.chat.say("Please add the page or javascript we talked about") == "done"
            assert told in duck.of(Reply)[-1].text


async def test_J1_J3_a_reply_after_a_refused_change_is_no_talk(folder: Path):
    no = {"requirement_scores": [{"requirement": "1", "score": 0.0}], "missing_aspects": ["memo.md"]}
    answers = [
        decision("", action("write_file", path="memo.md", content="x\n")),
        *[decision("I wrote memo.md.", task_profile="general_chat")] * 4,
    ]
    with ModelServer(play(*answers, SatisfactionEvaluation=[no] * 4)) as server:
        async with engine(folder, server=server, mode="ask") as duck:
            await duck.app.chat.say("Write memo.md")
            assert await duck.app.chat.answer(AnswerApproval(yes=False, reason="shorter")) == "not_satisfied"
            assert len(duck.of(Evaluated)) == 3


@every_row(
    ("reply", "done"),
    [("As you like: nothing was changed.", True), ("I created memo.md.", False), (CLAIM, False)],
)
@every_row("profile", ["general_chat", "file_operation"])
async def test_J3_a_change_that_the_user_refused_is_not_missed_but_no_claim_makes_it_done(
    tmp_path: Path, reply: str, done: bool, profile: str
):
    folder = tmp_path / f"{reply[:9]}{profile}"
    folder.mkdir()
    wanted = {"requirements": [{"requirement": "memo.md is there", "asks_for": "change"}]}
    content = {"requirement_scores": [{"requirement": "1", "score": 1.0, "evidence": ["reply", "e1"]}]}
    answers = [
        decision("", action("write_file", path="memo.md", content="x\n")),
        *[decision(reply, task_profile=profile)] * 4,
    ]
    questions = {"RequirementList": [wanted] * 2, "SatisfactionEvaluation": [content] * 9}
    with ModelServer(play(*answers, **questions)) as server:
        async with engine(folder, server=server, mode="ask") as duck:
            await duck.app.chat.say("Write memo.md")
            outcome = await duck.app.chat.answer(AnswerApproval(yes=False, reason="I don't need it any more"))
    assert (outcome == "done") is done


OLD = "def add(a, b):\n    return a + b\n\n\ndef half(a):\n    return a\n"
TESTS = """from calc import add, half

failed = [name for name, good in {"add": add(1, 2) == 3, "half": half(4) == 2}.items() if not good]
print(*(f"FAILED {name}" for name in failed), sep="\\n")
raise SystemExit(bool(failed))
"""


def praise() -> dict[str, Any]:
    scores = [{"requirement": "1", "score": 1.0, "evidence": [f"e{n}" for n in range(1, 30)]}]
    return {"requirement_scores": scores, "completion_recommendation": True}


def edits(find: str, by: str) -> dict[str, Any]:
    return action("edit_file", path="calc.py", edits=[{"find": find, "replace": by}])


def runs(command: str) -> dict[str, Any]:
    return {"operation": "shell.run", "args": {"command": command}}


@every_row(
    ("edit", "before", "outcome"),
    [
        (("a + b", "a + b  # the sum"), True, "done"),
        (("a + b", "a - b"), False, "not_satisfied"),
    ],
)
@every_row("who", ["the model's own run", "an exit code that hides it", "the project's tests"])
async def test_J3_tests_that_fail_below_a_verdict_are_old_or_the_request_is_not_done(
    tmp_path: Path, edit: tuple[str, str], before: bool, outcome: str, who: str
):
    folder = tmp_path / f"{edit[1]}{who}".replace(" ", "_")
    folder.mkdir()
    (folder / "calc.py").write_text(OLD)
    (folder / "try_all.py").write_text(TESTS)
    (folder / "Makefile").write_text(f"test:\n\t{sys.executable} try_all.py\n")
    attended = who == "the project's tests"
    command = f"{TEST} || true" if who == "an exit code that hides it" else TEST
    answers = [
        decision("", action("read_file", path="calc.py")),
        decision("", edits(*edit), *([] if attended else [runs(command)])),
        *[decision("All tests pass.")] * 6,
    ]
    with ModelServer(play(*answers, SatisfactionEvaluation=[praise()] * 6)) as server:
        async with engine(folder, server=server, mode="auto", attended=attended) as duck:
            ended = await duck.app.chat.say("Give add a comment in calc.py")
            if ended == "awaiting_approval":
                ended = await duck.app.chat.answer(AnswerApproval(yes=True))
            verdicts = duck.of(Evaluated)
            asked = [asked_for(one.body) for one in server.requests]
    assert ended == outcome, (ended, asked, verdicts)
    (ran,) = [one for one in verdicts[0].results if one.name == command]
    assert (ran.state, ran.before, ran.binding) == ("failed", before, not before), ran
    said = "failed before this request, too" if before else f"✗ {command} failed"
    assert said in evaluation_text(verdicts[0])


async def test_J3_a_test_run_that_failed_is_repeated_before_the_verdict_if_files_changed_since(folder: Path):
    (folder / "calc.py").write_text(OLD.replace("return a\n", "return a / 2\n"))
    (folder / "try_all.py").write_text(TESTS)
    (folder / "Makefile").write_text(f"test:\n\t{sys.executable} try_all.py\n")
    answers = [
        decision("", action("read_file", path="calc.py")),
        decision("", edits("a + b", "a - b"), runs(TEST)),
        decision("", edits("a - b", "a + b  # the sum")),
        decision("I put it right."),
    ]
    with ModelServer(play(*answers, SatisfactionEvaluation=[praise()])) as server:
        async with engine(folder, server=server, mode="auto") as duck:
            assert await duck.app.chat.say("Give add a comment in calc.py") == "done"
            (verdict,) = duck.of(Evaluated)
    (ran,) = verdict.results
    assert (ran.name, ran.state, ran.evidence_id) == (TEST, "passed", verdict.checks[-1].evidence_id)
    assert "Checks: 1 passed" in evaluation_text(verdict)


@every_row(
    ("name", "last"),
    [
        ("an edit", action("edit_file", path="calc.py", edits=[{"find": "nowhere", "replace": "x"}])),
        ("a command", runs("exit 3")),
        ("a refusal", action("write_file", path="../outside.txt", content="x")),
        ("a look", action("read_file", path="missing.py")),
    ],
)
async def test_J3_what_failed_last_goes_back_to_the_model_before_any_verdict(
    tmp_path: Path, name: str, last: dict[str, Any]
):
    folder = tmp_path / name.replace(" ", "_")
    folder.mkdir()
    (folder / "calc.py").write_text(OLD)
    writes = action("write_file", path="b.txt", content="b\n")
    answers = [decision("All done.", writes, last, next_step="done"), decision("I saw it.")]
    async with engine(folder, *answers, mode="auto") as duck:
        await duck.app.chat.say("Write b.txt")
        kinds = [type(one) for one in duck.events if isinstance(one, DecisionMade | Evaluated)]
    assert kinds == [DecisionMade, DecisionMade, Evaluated]


@every_row(
    ("writes", "runs"),
    [(None, []), ("README.md", []), ("a.py", ["make test"])],
)
async def test_J3_the_projects_tests_run_only_after_a_change_of_more_than_prose(folder: Path, writes, runs):
    (folder / "Makefile").write_text("test:\n\techo 1 passed\n")
    acts = [action("write_file", path=writes, content="x = 1\n")] if writes else []
    async with engine(folder, decision("It is a cart.", *acts), decision("Done."), attended=True) as duck:
        duck.app.session.record(VerifySet(command="make test"))
        await duck.app.chat.say("go")
        ran = [one.action.args["command"] for one in duck.of(ActionStarted) if one.action.operation == RUN]
        assert ran == runs


async def test_J3_a_commit_does_not_hide_that_tests_failed_before_the_request(folder: Path):
    make_repository(folder)
    (folder / "Makefile").write_text("test:\n\t@echo 'FAILED test_a - AssertionError: 1 == 2'; exit 1\n")
    (folder / "a.py").write_text("x = 0\n")
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", "first")
    commit = {"operation": "shell.run", "args": {"command": "git add -A && git commit -qm more"}}
    write = action("write_file", path="a.py", content="x = 1\n")
    answers = [decision("I change it.", write, commit), decision("Done."), decision("Done.")]
    async with engine(folder, *answers, attended=True, mode="auto") as duck:
        duck.app.session.record(VerifySet(command="make test"))
        assert await duck.app.chat.say("go") == "done"
        (result,) = duck.of(Evaluated)[-1].results
        assert (result.name, result.state, result.before) == ("make test", "failed", True)


async def test_C3_a_question_before_the_first_change_waits_for_the_user(folder: Path):
    """A plan that waits for a yes is no failed attempt, even if commands ran to make it."""
    look = decision("I look.", {"operation": RUN, "args": {"command": "true"}})
    no = {"requirement_scores": [{"requirement": "1", "score": 0}], "completion_recommendation": False}
    answers = [look, decision("That is my plan. Shall I go ahead?")]
    with ModelServer(play(*answers, SatisfactionEvaluation=[no])) as server:
        async with engine(folder, server=server, attended=True, mode="auto") as duck:
            assert await duck.app.chat.say("make a.txt, but plan it first") == "pending_user"


async def test_J2_an_evaluator_reads_all_replies_of_the_request(folder: Path):
    """A later reply does not repeat what an earlier one has explained."""
    answers = [
        decision("I look.", runs("echo 3 passed")),
        decision("force_list makes lists."),
        decision("There is no command line."),
    ]
    with ModelServer(play(*answers, SatisfactionEvaluation=[praise()])) as server:
        async with engine(folder, server=server, mode="auto", attended=True) as duck:
            more = ["Is there a command line?"]

            def watch(what: object) -> None:
                said = what.event if isinstance(what, StoredEvent) else None
                if more and isinstance(said, Reply) and said.text.startswith("force_list"):
                    duck.app.session.steer(SayMessage(text=more.pop()))

            duck.app.session.subscribe(watch)
            assert await duck.app.chat.say("What is force_list? And run the tests.") == "done"
        (judged,) = [
            json.dumps(one.body) for one in server.requests if asked_for(one.body) == "SatisfactionEvaluation"
        ]
    told = judged.partition("What the user was told")[2]
    assert "force_list makes lists." in told
    assert "There is no command line." in told
    assert "I look." not in told, "words beside actions are no reply"


async def test_J3_a_command_whose_changes_the_user_kept_is_not_judged_as_waiting(folder: Path):
    """A commit, say: the result that the model saw first said that the user is asked."""
    answers = [decision("I write it.", runs("echo one > a.txt")), decision("It is written.")]
    with ModelServer(play(*answers, SatisfactionEvaluation=[praise()])) as server:
        async with engine(folder, server=server, mode="ask", attended=True) as duck:
            assert await duck.app.chat.say("Write one into a.txt with the shell.") == "awaiting_approval"
            assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "done"
        (judged,) = [
            json.dumps(one.body) for one in server.requests if asked_for(one.body) == "SatisfactionEvaluation"
        ]
    assert "The user has kept this: new a.txt" in judged
    assert "Not yet real" not in judged


FAILING = "test:\n\t@echo 'FAILED test_a - AssertionError: 1 == 2'; exit 1\n"


async def test_J3_tests_that_the_user_lets_fail_count_for_nothing(folder: Path):
    make_repository(folder)
    (folder / "Makefile").write_text(FAILING)
    (folder / "a.py").write_text("def one():\n    return 1\n")
    (folder / "test_a.py").write_text("import a\n\n\ndef test_one():\n    assert a.one() == 1\n")
    answers = [
        decision(
            "", action("write_file", path="a.py", content="def one():\n    return 3\n"), runs("make test")
        ),
        decision("", action("write_file", path="a.py", content="def one():\n    return 2\n")),
        decision("a.py is written, and the test fails."),
    ]
    wanted = {"requirements": [{"requirement": "a.py is written"}], "failures_accepted": True}
    listed = {"RequirementList": [wanted], "SatisfactionEvaluation": [praise()]}
    with ModelServer(play(*answers, **listed)) as server:
        options: dict[str, Any] = {"mode": "auto", "attended": True, "checks": {"after_edit": False}}
        async with engine(folder, server=server, **options) as duck:
            duck.app.session.record(VerifySet(command="make test"))
            assert await duck.app.chat.say("Write a.py. The test may fail for now.") == "done"
            ran = [
                one.action.args["command"] for one in duck.of(ActionStarted) if one.action.operation == RUN
            ]
            assert ran == ["make test"], "it is not run again"
            (verdict,) = duck.of(Evaluated)
    assert verdict.evaluation.done
    assert not verdict.evaluation.missing_aspects
    assert [one.accepted for one in verdict.results if one.state == "failed"] == [True], verdict.results
    assert "failed, as you said it may for now: test_a.py" in evaluation_text(verdict)


async def test_J3_a_command_that_the_user_set_decides_even_if_they_let_tests_fail(folder: Path):
    (folder / "Makefile").write_text(FAILING)
    answers = [decision("", action("write_file", path="a.py", content="x = 1\n")), *[decision("Done.")] * 4]
    wanted = {"requirements": [{"requirement": "a.py is written"}], "failures_accepted": True}
    listed = {"RequirementList": [wanted], "SatisfactionEvaluation": [praise()] * 4}
    with ModelServer(play(*answers, **listed)) as server:
        async with engine(folder, server=server, mode="auto") as duck:
            duck.app.session.record(VerifySet(command="make test"))
            assert await duck.app.chat.say("Write a.py. The test may fail for now.") == "not_satisfied"


async def test_C4_another_wish_after_a_stop_is_not_judged_by_the_tests_of_the_stopped_work(folder: Path):
    make_repository(folder)
    (folder / "Makefile").write_text(FAILING)
    answers = [
        decision("", action("write_file", path="a.py", content="x = 1\n")),
        decision("", action("write_file", path="b.py", content="x = 1\n")),
        decision("", action("write_file", path="b.md", content="x\n")),
        decision("b.md is written."),
    ]
    wanted = {"requirements": [{"requirement": "b.md is written"}], "replaces": True}
    listed = {"RequirementList": [CONTENT["RequirementList"], wanted], "SatisfactionEvaluation": [praise()]}
    with ModelServer(play(*answers, **listed)) as server:
        async with engine(folder, server=server, mode="ask", attended=True) as duck:
            duck.app.session.record(VerifySet(command="make test"))
            assert await duck.app.chat.say("Write a.py and b.py") == "awaiting_approval"
            assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "awaiting_approval"
            assert await duck.app.chat.decline() == "interrupted"
            assert await duck.app.chat.say("Never mind. Only write b.md.") == "awaiting_approval"
            assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "done"
            assert not [one for one in duck.of(ActionStarted) if one.action.operation == RUN]
