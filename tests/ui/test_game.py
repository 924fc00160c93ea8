"""B6 as the user sees it: the game, in Japanese, in a window of tmux over real HTTP."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fakes.engine import CONTENT
from fakes.model_server import Answer, ModelServer
from fakes.plays import asked_for
from fakes.repository import git, make_repository
from fakes.sent_prompts import written
from fakes.tmux import Window

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

NAMES = ("盤面とルール", "画面", "テストと記録")
PLAN = {
    "name": "三目並べ",
    "goal": "3×3 の三目並べ",
    "risk": "low",
    "success_criteria": ["`python3 -m unittest` が 0 で終わる"],
    "steps": [
        {"name": name, "description": f"{name}を作る。", "depends_on": [place] if place else []}
        for place, name in enumerate(NAMES)
    ],
}
IN_WORDS = """\
📋 計画: 三目並べ（リスク: 低）
目標: 3×3 の三目並べ
状態: 案
完了の条件:
   - `python3 -m unittest` が 0 で終わる
1. 盤面とルール
   盤面とルールを作る。
2. 画面（1 のあと）
   画面を作る。
3. テストと記録（2 のあと）
   テストと記録を作る。
お返事をどうぞ"""
HELD_BACK = "テストが失敗しました。記録していません。"
FAILING = """\
import unittest


class Test(unittest.TestCase):
    def test_win(self):
        self.fail('斜め')
"""


def write(path: str, content: str) -> dict[str, Any]:
    return {"operation": "file_ops.write_file", "args": {"path": path, "content": content}}


def shell(command: str) -> dict[str, Any]:
    return {"operation": "shell.run", "args": {"command": command}}


def call(operation: str, **args: Any) -> tuple[str, str]:
    return "other", json.dumps({"operation": operation, "args": args})


class Player:
    """Plays a model with native calls. While tasks run and the user says nothing new, it only waits."""

    def __init__(self) -> None:
        self.lists = [
            [write("board.py", "SIZE = 3\n")],
            [write("board.py", "SIZE = 6\n"), shell("echo 'ここまで'; sleep 600")],
        ]
        self.drafted: list[str] = []
        """The prompts for lists of tasks."""
        self.reports: list[str] = []
        self._steps: list[str] = []
        self._turns = iter(self._script())
        self._next = next(self._turns)

    def __call__(self, body: dict[str, Any]) -> Answer:
        told = written(body)
        self._steps = self._steps or list(dict.fromkeys(re.findall(r"\d\. (step_[0-9a-f]{8}) \[", told)))
        match asked_for(body):
            case "Decision":
                return self._decide(told.rpartition("State of the work")[2], told)
            case "PlanDraft":
                return Answer(json.dumps(PLAN))
            case "TaskListDraft":
                self.drafted.append(told)
                return Answer(json.dumps({"tasks": self.lists.pop(0)}))
            case "TaskReport":
                self.reports.append(told)
                failed = ": failed" in told
                report = {"status": "partial" if failed else "success", "summary": "作業の報告です。"}
                return Answer(json.dumps(report))
            case other:
                return Answer(json.dumps(CONTENT.get(other, {"title": "ゲーム"})))

    def _decide(self, work: str, told: str) -> Answer:
        when, answer = self._next
        if "In the background" in work and when not in told:
            return Answer("裏で進めています。")
        self._next = next(self._turns, ("", lambda: Answer("ほかにありますか。")))
        return answer()

    def _script(self) -> list[tuple[str, Callable[[], Answer]]]:
        def begin() -> Answer:
            first = self._steps[0]
            return Answer(
                "始めます。",
                (call("task_tool.generate_list", step_id=first), call("task_loop.run", step_id=first)),
            )

        def change() -> Answer:
            first, *others = self._steps
            steps = [{"step_id": first, "description": "6×6 の盤面を作る。"}]
            steps += [{"step_id": one} for one in others]
            revise = call("plan_tool.revise", goal="6×6 の四目並べ", steps=steps)
            return Answer("6×6 に変えます。", (call("task_loop.cancel"), revise))

        def run(place: int, *tasks: dict[str, Any]) -> Callable[[], Answer]:
            return lambda: Answer(
                "", (call("task_loop.run", step_id=self._steps[place], task_list=list(tasks)),)
            )

        never = "(only when nothing runs)"
        test = [write("test_board.py", FAILING), shell("python3 -m unittest"), shell("git commit -qam x")]
        return [
            (never, lambda: Answer("計画を立てます。", (call("plan_tool.propose", goal="三目並べ"),))),
            (never, lambda: Answer("斜めの勝ちも確かめます。")),
            (never, begin),
            ("盤面は 6×6 にしてください", change),
            (never, begin),
            (never, run(0, shell("python3 -c 'import board; print(board.SIZE)'"))),
            (never, run(1, *test)),
            (
                never,
                lambda: Answer("", (("ask_user", json.dumps({"question": HELD_BACK})),)),
            ),
        ]


def test_B6_a_game_with_a_question_a_change_of_direction_a_stop_an_undo_and_a_commit_held_back(folder: Path):
    """B3, B4, B7, C1, C3, C4, G1."""
    make_repository(folder)
    player = Player()
    command = [sys.executable, "-m", "duckflow", "--workspace", str(folder), "--model", "openai:gpt-6"]
    with ModelServer(player) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1", "DUCKFLOW_LANGUAGE": "ja", "OPENAI_API_KEY": "x"}
        with Window(folder.parent, command, env=env) as window:

            def ask_and_say(question: str, said: str, times: int = 1) -> str:
                shown = window.wait(
                    lambda shown: (
                        shown.count(question) == times and "お返事をどうぞ" in shown.rpartition(question)[2]
                    )
                )
                window.say(said)
                return shown

            window.wait_for_prompt()
            window.say("ゲームを実装して")
            plan = "この計画で進めてよいですか？"
            shown = ask_and_say(plan, "テストは何を確かめますか？")
            assert IN_WORDS in shown
            assert shown.count("盤面とルールを作る。") == 1, "the plan is shown once"
            assert not re.search(r"step_[0-9a-f]|plan_[0-9a-f]{8}|\{", shown), "without ids and JSON"
            shown = ask_and_say(plan, "はい、お願いします", times=2)
            assert "斜めの勝ちも確かめます。" in shown
            assert shown.count("盤面とルールを作る。") == 1

            ask_and_say("board.py に書き込んでよいですか？", "やはり盤面は 6×6 にしてください")
            shown = ask_and_say(plan, "はい", times=3)
            assert "目標: 6×6 の四目並べ" in shown
            assert not (folder / "board.py").exists()
            ask_and_say("board.py に書き込んでよいですか？", "はい", times=2)
            window.wait(lambda shown: "ここまで" in shown.rpartition("board.py に書き込みました")[2])
            assert (folder / "board.py").read_text() == "SIZE = 6\n"

            window.wait_for_prompt()
            window.keys("Escape")
            window.wait_for("バックグラウンドで実行中")
            window.keys("Escape")
            window.wait_for("バックグラウンドの作業を止めました: 完了 1、中断 1")
            window.wait_for_prompt()
            window.say("続けて")
            ask_and_say("test_board.py に書き込んでよいですか？", "はい")
            shown = window.wait_for(HELD_BACK)
            assert "✗ 失敗: $ python3 -m unittest" in shown
            window.wait_for_prompt()
            window.say("/plan")
            shown = window.wait_for("3 ステップ中 1 完了")
            assert "✗ 2. 画面" in shown
            assert "○ $ git commit" in shown
            assert (folder / "test_board.py").exists()

            window.say("/undo")
            window.wait(lambda _: not list(folder.glob("*.py")))
            window.wait_for_prompt()
    assert git(folder, "log", "--format=%s") == "first"
    assert git(folder, "status", "--short") == ""
    assert "6×6 の盤面を作る。" in player.drafted[1]
    assert "盤面は 6×6 にしてください" in player.drafted[1], "the user's own words"
    assert "斜め" in player.reports[-1]
    assert "FAILED (failures=1)" in player.reports[-1], "the end of the result"
