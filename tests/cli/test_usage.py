"""M4: errors in arguments are in the user's language, with nothing of another one."""

import os
import re
import sys

from fakes import warm

WRONG = {
    "run --nope": "--nope というオプションはありません",
    "run --mode wild t": "--mode には plan, ask, edits, auto のいずれか",
    "run --model": "オプション --model には値が必要です",
    "run --max-loops x t": "--max-loops の値が正しくありません: x（指定できるのは 数値）",
    "run --max-loops 0 t": "（指定できるのは ≥ 1）",
    "run --answer x": "--resume でセッション ID",
    "frobnicate": "frobnicate というコマンドはありません",
    "rn x": "rn というコマンドはありません。run のことでしょうか？",
    "sessions lst": "lst というコマンドはありません。list のことでしょうか？",
    "undo": "undo は会話の中で使うコマンドです。duckflow を起動して /undo と入力してください",
    "run exit": "「exit」はシェルの言葉で、タスクではありません",
    "run a b": "余分な引数があります: b",
    "sessions show": "ID が指定されていません",
    "sessions nope": "nope というコマンドはありません",
}


def said(arguments: str, language: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "duckflow", *arguments.split()]
    env = {**os.environ, "DUCKFLOW_LANGUAGE": language}
    ended = warm.run(command, capture_output=True, text=True, encoding="utf-8", env=env, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def test_M4_usage_and_option_errors_are_in_the_language_of_the_user():
    wrong = {}
    for arguments, words in WRONG.items():
        code, told = said(arguments, "ja")
        english = re.findall(r"[A-Za-z]{3,}", told.replace(arguments, ""))
        known = {
            *re.findall(r"[a-z]+", arguments),
            "duckflow",
            "help",
            "python",
            "plan",
            "ask",
            "edits",
            "auto",
            "mode",
        }
        known |= {"undo", "list", "hello", "model", "run", "sessions", "show", "resume"}
        if code != 2 or words not in told or set(english) - known:
            wrong[arguments] = (code, told)
    assert not wrong
    assert said("run --nope", "en")[1].startswith("Error: There is no option --nope.")


def test_M4_help_pages_have_their_frame_in_the_language_of_the_user():
    english = r"Usage|Options:|Arguments:|Commands:|Show |Install|required|default:"
    for arguments in ("--help", "run -h", "sessions", "sessions show --help"):
        page = said(arguments, "ja")[1]
        assert not re.search(english, page), page
        assert page.startswith("使い方: python -m duckflow"), page
    assert said("sessions show --help", "en")[1].startswith("Usage: python -m duckflow sessions show")
