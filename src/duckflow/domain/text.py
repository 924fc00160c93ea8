"""Cuts and counts text, without ever splitting a visible character."""

import re
import unicodedata
from collections.abc import Iterable, Iterator

from duckflow.domain.patterns import lazy_regex

_CODE = lazy_regex(r"```.*?```|`[^`]*`", re.DOTALL)
_QUESTION = lazy_regex(r"[?？]+(?=\s|$|[」』”\")）])")
_JAPANESE = lazy_regex("[\u3041-\u30ff\u3400-\u9fff]")
_WORD = lazy_regex("[\u3041-\u309f]+|[\u30a0-\u30ff]+|[\u3400-\u9fff]+|[^\\W\u3041-\u30ff\u3400-\u9fff]+")
_JOINER = "\u200d"
_ELLIPSIS = "…"
_KEY_BEGINS, _KEY_ENDS = "-----BEGIN", "-----END"


def _extends(character: str) -> bool:
    code = ord(character)
    return (
        unicodedata.category(character) in ("Mn", "Me", "Mc")
        or character in "\u200c\u200d"  # joiners
        or character in "\uff9e\uff9f"  # voicing marks of half-width kana
        or 0x1160 <= code <= 0x11FF  # vowels and finals of decomposed Hangul
        or 0x1F3FB <= code <= 0x1F3FF  # skin tones
        or 0xE0020 <= code <= 0xE007F  # flag tags
    )


def _flag_letter(character: str) -> bool:
    return 0x1F1E6 <= ord(character) <= 0x1F1FF


def _boundary(text: str, at: int) -> bool:
    """Return whether a cut before `text[at]` splits no visible character."""
    before, after = text[at - 1], text[at]
    if _extends(after) or before == _JOINER or (before == "\r" and after == "\n"):
        return False
    if _flag_letter(before) and _flag_letter(after):
        run = at
        while run > 0 and _flag_letter(text[run - 1]):
            run -= 1
        return (at - run) % 2 == 0
    return True


def cut(text: str, limit: int) -> str:
    """Shorten `text` to `limit` characters, ending in an ellipsis if something was cut."""
    if len(text) <= limit:
        return text
    end = max(limit - len(_ELLIPSIS), 0)
    while end > 0 and not _boundary(text, end):
        end -= 1
    return text[:end] + _ELLIPSIS if limit > 0 else ""


def is_japanese(text: str) -> bool:
    """Return whether the text contains kana or kanji."""
    return _JAPANESE.search(text) is not None


def one_line(text: str, limit: int) -> str:
    """Join the text into one line of at most `limit` characters."""
    return cut(" ".join(text.split()), limit)


def percent(share: float) -> str:
    """Return a share of 1 as a percentage, rounded down, so that what is not enough never looks enough."""
    return f"{int(share * 100 + 1e-6)} %"


def some_of(names: Iterable[str], most: int = 30) -> str:
    """Return the first names, and the number of the others."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def letters_of(text: str) -> str:
    """Return lower-case letters and digits only, for comparison."""
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def head_and_tail(text: str, limit: int) -> str:
    """Return the beginning and end of a long text, with a line that says how much was left out."""
    if len(text) <= limit:
        return text
    end = max(limit, 0) // 2
    start = len(text) - end
    while end > 0 and not _boundary(text, end):
        end -= 1
    while start < len(text) and not _boundary(text, start):
        start += 1
    return f"{text[:end]}\n… {start - end} characters left out …\n{text[start:]}"


def count_words(text: str) -> int:
    """Count words. Japanese has no spaces, so each run of one kind of characters counts as a word."""
    return len(_WORD.findall(text))


def in_pieces(text: str, size: int) -> Iterator[str]:
    """Split the text at line ends into pieces of about `size` characters, but never inside a private key."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + size) + 1 or len(text)
        begun = text.rfind(_KEY_BEGINS, start, end)
        if begun >= 0 and (ends := text.find(_KEY_ENDS, begun, begun + size)) >= end:
            end = text.find("\n", ends) + 1 or len(text)
        yield text[start:end]
        start = end


def count_questions(text: str) -> int:
    """Count the questions in a reply, ignoring code."""
    return len(_QUESTION.findall(_CODE.sub("", text)))


def asks_something(text: str) -> bool:
    """Return whether a reply asks the reader a question, with or without a question mark."""
    return count_questions(text) > 0 or text.rstrip(" \n。.）)").endswith("か")


def excerpt(said: str, words: str, most: int = 100) -> str:
    """Return the part of a text around the first of these words, in one line."""
    line = " ".join(said.split())
    start = max(line.casefold().find(next(iter(words.casefold().split()), "")) - most // 3, 0)
    return ("…" if start else "") + cut(line[start:], most)
