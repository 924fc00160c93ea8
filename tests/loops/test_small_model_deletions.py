"""SAFETY 24: a small model deletes only what the user asked for in words; otherwise the user is asked."""

from pathlib import Path

from duckflow.domain.events import ApprovalRequested
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.loops.acting.deletions import asks_to_delete
from fakes.engine import action, decision, engine
from fakes.model_server import ModelServer
from fakes.plays import play

DELETE = action("delete_file", path="a.py")
REMOVE = {"operation": "shell.run", "args": {"command": "rm a.py"}}


async def test_SAFETY24_unasked_deletions_by_a_small_model_are_asked_about_in_every_mode(folder: Path):
    for mode in ("ask", "edits", "auto"):
        for act in (DELETE, REMOVE):
            (folder / "a.py").write_text("x\n")
            with ModelServer(play(decision("", act), decision("Done."))) as server:
                async with engine(folder, server=server, mode=mode, small=True) as duck:
                    assert await duck.app.chat.say("Make the program nicer") == "awaiting_approval", (
                        mode,
                        act,
                    )
                    asked = duck.of(ApprovalRequested)[-1].approval
                    assert mode != "auto" or (asked.because, asked.kind) == ("deletion", None)
                    await duck.app.chat.answer(AnswerApproval(yes=False, reason="keep it"))
            assert (folder / "a.py").exists()


async def test_SAFETY24_deletions_that_the_user_asked_for_and_those_of_other_models_follow_the_mode(
    folder: Path,
):
    for said, small in (("Please delete a.py", True), ("a.pyを消してください", True), ("Tidy it", False)):
        for act in (DELETE, REMOVE):
            (folder / "a.py").write_text("x\n")
            with ModelServer(play(decision("", act), decision("Done."))) as server:
                async with engine(folder, server=server, mode="auto", small=small) as duck:
                    await duck.app.chat.say(said)
                    assert duck.of(ApprovalRequested) == [], (said, act)
            assert not (folder / "a.py").exists()


async def test_SAFETY24_what_the_model_itself_made_it_may_delete(folder: Path):
    steps = (decision("", action("write_file", path="n.txt", content="n\n")), decision("", REMOVE_N))
    with ModelServer(play(*steps, decision("Done."))) as server:
        async with engine(folder, server=server, mode="auto", small=True) as duck:
            await duck.app.chat.say("Try something")
            assert duck.of(ApprovalRequested) == []


REMOVE_N = action("delete_file", path="n.txt")


def test_SAFETY24_words_that_ask_for_a_deletion_and_words_that_do_not():
    asks = (
        *(
            "delete old.py",
            "please remove the tests",
            "rm -rf build",
            "clean up this folder",
            "get rid of it all",
        ),
        *(
            "throw the drafts away",
            "drop the table file",
            "erase everything",
            "uninstall that",
            "clear out tmp/",
        ),
        *("古いファイルを削除してください", "これを消して", "不要なものを片付けて", "build を取り除いて"),
    )
    not_asking = (
        *(
            "clear",
            "clean",
            "rm",
            "exit",
            "削除",
            "make it clear how it works",
            "write clean code",
            "fix the bug",
        ),
        *(
            "don't delete anything, only list",
            "do not remove the old one",
            "improve it without deleting files",
        ),
        *("ファイルを消さずに直して", "削除しないでください", "見やすくして"),
    )
    assert [said for said in asks if not asks_to_delete(said)] == []
    assert [said for said in not_asking if asks_to_delete(said)] == []
