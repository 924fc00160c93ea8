"""Wishes that a message spells out with a file: show, list, rename, delete. A small model need not choose."""

import re
import unicodedata
from collections.abc import Sequence

from duckflow.domain.decision import Action
from duckflow.domain.patterns import lazy_regex

_PATH = r"[`\"'「]?(?P<path>[A-Za-z0-9_./-]+)[`\"'」]?"
_FILE = lazy_regex(r"[\w./-]*\w\.[A-Za-z]\w{0,4}", re.ASCII)
_TO = r"[`\"'「]?(?P<to>[A-Za-z0-9_./-]+)[`\"'」]?"
_PLEASE = r"(?:(?:please|now|ok|okay|and|then|just|can you|could you|will you|i want you to|let'?s)[\s,]+)*"
_END = r"(?:[\s,]+(?:please|now|too|for me|thanks))*"
_JA_END = (
    "(?:し|して|て|で)?"
    "(?:おいて|ください|下さい|くれ|くれる|くれます|ほしい|もらえ|ます|か|お願いします|お願い|ね|よ|の|い)*"
)

_MOVE = (
    lazy_regex(rf"{_PLEASE}(?:rename|move) (?:the )?(?:file )?{_PATH} (?:in)?to {_TO}{_END}", re.IGNORECASE),
    lazy_regex(
        rf"{_PATH}\s*(?:を|の名前を|のファイル名を)\s*{_TO}\s*(?:に|へ)\s*"
        rf"(?:改名|リネーム|名前を変更|名前変更|名前を変え|変更|変え|移動|移し){_JA_END}"
    ),
)
_DELETE = (
    lazy_regex(
        rf"{_PLEASE}(?:delete|remove|erase) (?:the )?(?:file )?{_PATH}(?: file)?{_END}", re.IGNORECASE
    ),
    lazy_regex(rf"{_PATH}\s*(?:という)?(?:ファイル)?を?(?:削除|消去|消){_JA_END}"),
)
_SHOW = (
    lazy_regex(
        rf"{_PLEASE}(?:show|print|display|cat|let me see)(?: me)?"
        rf"(?: (?:the|all|whole|full|file|code|contents?|source|of|in))* {_PATH}{_END}",
        re.IGNORECASE,
    ),
    lazy_regex(
        rf"{_PATH}\s*の?(?:中身|内容|コード|ソース|全文)?を?(?:全部|ぜんぶ)?(?:見せ|みせ|表示|見たい){_JA_END}"
    ),
)
_LIST = (
    lazy_regex(
        rf"{_PLEASE}(?:(?:what|which) files (?:are|do (?:you|we|i) (?:have|see))"
        r"|(?:list|show)(?: me)?(?: all)?(?: the| my)? files|what'?s in (?:this|the|my) (?:folder|directory))"
        rf"(?: there| here| in (?:this|the|my) (?:folder|project|directory))*{_END}",
        re.IGNORECASE,
    ),
    lazy_regex(
        "(?:ここ|この?(?:フォルダー?|プロジェクト))?(?:に|には|の|の中に|の中には|で)?(?:今)?(?:どんな|どの|何の)?ファイル"
        f"(?:が|は|の)?(?:あります|ある|一覧)(?:を)?(?:見せ|教え|表示)?{_JA_END}"
    ),
)


_WAITS = lazy_regex(
    r"\binput\(|serve_forever|app\.run\(|mainloop\(|pygame|curses|while True|sys\.stdin|uvicorn"
)
"""Signs of a program that waits for input or runs until it is stopped."""


def waits_for_input(program: str) -> bool:
    """Return whether a Python program waits for input or runs until it is stopped."""
    return _WAITS.search(program) is not None


def spelled_out(said: str, files: Sequence[str]) -> Action | None:
    """Return the renaming or deletion of an existing file that a whole message spells out."""
    plain = _plain(said)
    if (found := _found(_MOVE, plain)) and (path := _existing(found["path"], files)):
        to = found["to"] + path.rpartition("/")[2] if found["to"].endswith("/") else found["to"]
        if "." in to.rpartition("/")[2] and to != path and to not in files:
            return Action(operation="file_ops.move_file", args={"path": path, "to": to})
    if (found := _found(_DELETE, plain)) and (path := _existing(found["path"], files)):
        return Action(operation="file_ops.delete_file", args={"path": path})
    return None


def missing_file(said: str, files: Sequence[str]) -> str:
    """Return the file that a whole message wants to see, rename or delete, but that does not exist."""
    plain = _plain(said)
    found = next((one for kind in (_MOVE, _DELETE, _SHOW) if (one := _found(kind, plain))), None)
    named = found["path"] if found else ""
    same = [path for path in files if path.rpartition("/")[2] == named.rpartition("/")[2]]
    return named if _FILE.fullmatch(named) and not same else ""


def file_to_show(said: str, files: Sequence[str]) -> str:
    """Return the existing file whose content a whole message wants to see; empty for another message."""
    found = _found(_SHOW, _plain(said))
    return _existing(found["path"], files) if found else ""


def wants_list(said: str) -> bool:
    """Return whether a whole message asks which files there are."""
    return _found(_LIST, _plain(said)) is not None


def _found(patterns: Sequence[re.Pattern[str]], plain: str) -> re.Match[str] | None:
    return next((found for one in patterns if (found := one.fullmatch(plain))), None)


def _existing(named: str, files: Sequence[str]) -> str:
    name = named.removeprefix("./")
    if name in files:
        return name
    same = [path for path in files if path.rpartition("/")[2] == name]
    return same[0] if len(same) == 1 else ""


def _plain(said: str) -> str:
    return unicodedata.normalize("NFKC", said).strip().rstrip("?!。 ").removesuffix(".")
