"""Recognises words for a shell or an editor that people type out of habit, so that no model gets them (M1).

A model that is given "clear" may well clear the folder.
"""

import unicodedata
from collections.abc import Mapping
from typing import Literal

from duckflow.domain.patterns import lazy_regex

Habit = Literal["leave", "clear", "help", "shell"]

_TYPED: Mapping[Habit, str] = {
    "leave": "exit exit() exit(0) quit quit() :q :q! :qa :qa! :wq :wq! :wqa :x :x! zz q q() .exit .quit \\q"
    " logout logoff bye goodbye sayonara 終了 終わり おわり 退出 終了する 終了します 終わる 閉じる",
    "clear": "clear cls clear() cls() reset \\c クリア 画面クリア 画面消去 クリアー",
    "help": "help help() :h :help -h --help ? ?? h man /? usage ヘルプ へるぷ 使い方 つかいかた",
    "shell": "ls ll la l dir cd pwd cd.. .. ~ whoami",
}
_HABITS: Mapping[str, Habit] = {word: habit for habit, words in _TYPED.items() for word in words.split()}
_WITH_ARGUMENTS = lazy_regex(
    r"(?a)(?:ls|ll|la|dir|pwd)(?:\s+-[\w-]+)*(?:\s+[\w./~*-]+)?|(?:cd|pushd)\s+(?:[\w./~-]+|\"[^\"]+\"|'[^']+')"
)
"""A listing or a change of folder with options and one path. More words make it a sentence."""


def habit_of(said: str) -> Habit | None:
    """Return what a typed line means in a shell or an editor. None for a message."""
    line = unicodedata.normalize("NFKC", said).strip().rstrip(";.!。").strip() or said.strip()
    known = _HABITS.get(line.casefold()) or _HABITS.get(said.strip())
    if known is None and _WITH_ARGUMENTS.fullmatch(line):
        return "shell"
    return known
