"""Parse a command line like a shell, as far as possible without running it.

Results that a shell computes only at run time (variables, substitutions, loops) are not guessed: such a line
is unclear.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from duckflow.domain.patterns import lazy_regex

LONGEST = 20_000
"""Longest command, in characters, that is parsed."""

_SEPARATORS = ("&&", "||", "|&", "|", ";", "\n")
_REDIRECTS = ("&>>", "&>", ">>", ">|", ">&", "<&", "<>", ">", "<")
_TOO_MUCH = ("<<", "<(", ">(", "(", ")", "&")
_OPERATORS = (*_TOO_MUCH[:3], *_SEPARATORS[:3], *_REDIRECTS, *_SEPARATORS[3:], *_TOO_MUCH[3:])
_BLANKS = " \t"
_ESCAPED_IN_QUOTES = '$`"\\\n'
_RESERVED = lazy_regex(
    r"if|then|else|elif|fi|for|while|until|do|done|case|esac|select|function|coproc|time|[{}!]|\[\[|\]\]"
)
_FILE_NUMBER = lazy_regex(r"[0-9]+")


class ProgramCall(NamedTuple):
    """One program with its words, and the files for its redirected input and output."""

    words: tuple[str, ...]
    redirects: tuple[str, ...] = ()


class CommandLine(NamedTuple):
    """Commands of a line. `clear` is False if reading it can't show what would run."""

    commands: tuple[ProgramCall, ...]
    clear: bool


class _Unclear(Exception):
    """Raised if only a shell could determine the meaning."""


class _Word(NamedTuple):
    text: str
    plain: bool
    """True if no part of the word was quoted."""


class _Operator(NamedTuple):
    text: str
    joined: bool
    """True if no blank separates it from the previous word."""


def read_command(line: str) -> CommandLine:
    """Split a line into its commands."""
    if len(line) > LONGEST or any(map(_hidden, line)):
        return CommandLine((), clear=False)
    try:
        return CommandLine(tuple(_commands(list(_tokens(line)))), clear=True)
    except _Unclear:
        return CommandLine((), clear=False)


def _hidden(letter: str) -> bool:
    return letter not in "\n\t" and unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def _commands(tokens: list[_Word | _Operator]) -> Iterator[ProgramCall]:
    words: list[str] = []
    redirects: list[str] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        place += 1
        if isinstance(token, _Word):
            if not words and token.plain and _RESERVED.fullmatch(token.text):
                raise _Unclear
            words.append(token.text)
        elif token.text in _SEPARATORS:
            if words or redirects:
                yield ProgramCall(tuple(words), tuple(redirects))
            words, redirects = [], []
        else:
            target = tokens[place] if place < len(tokens) else None
            if not isinstance(target, _Word):
                raise _Unclear
            place += 1
            if token.joined and words and _FILE_NUMBER.fullmatch(words[-1]):
                words.pop()
            if not (token.text in (">&", "<&") and re.fullmatch(r"[0-9]+|-", target.text)):
                redirects.append(target.text)
    if words or redirects:
        yield ProgramCall(tuple(words), tuple(redirects))


def _tokens(line: str) -> Iterator[_Word | _Operator]:
    at = 0
    joined = False
    while at < len(line):
        if line[at] in _BLANKS:
            at, joined = at + 1, False
        elif line.startswith("\\\n", at):
            at += 2
        elif line[at] == "#":
            end = line.find("\n", at)
            at = len(line) if end < 0 else end
        elif operator := next((one for one in _OPERATORS if line.startswith(one, at)), None):
            if operator in _TOO_MUCH:
                raise _Unclear
            yield _Operator(operator, joined)
            at, joined = at + len(operator), False
        else:
            word, at = _word(line, at)
            joined = True
            yield word


def _word(line: str, at: int) -> tuple[_Word, int]:
    parts: list[str] = []
    plain, braces = True, False
    while at < len(line) and line[at] not in _BLANKS and not line.startswith(_OPERATORS, at):
        letter = line[at]
        braces = braces or letter == "{"
        if letter in "$`" or line[at:] == "\\":
            raise _Unclear
        if letter == "'":
            end = line.find("'", at + 1)
            if end < 0:
                raise _Unclear
            parts.append(line[at + 1 : end])
            plain, at = False, end + 1
        elif letter == '"':
            text, at = _double_quoted(line, at + 1)
            parts.append(text)
            plain = False
        elif letter == "\\":
            parts.append(line[at + 1 : at + 2].removeprefix("\n"))
            plain, at = False, at + 2
        else:
            parts.append(letter)
            at += 1
    text = "".join(parts)
    if braces and ("," in text or ".." in text):
        raise _Unclear  # a shell would expand this to several words
    return _Word(text, plain), at


def _double_quoted(line: str, at: int) -> tuple[str, int]:
    parts: list[str] = []
    while at < len(line):
        letter = line[at]
        if letter == '"':
            return "".join(parts), at + 1
        if letter in "$`":
            raise _Unclear
        if letter == "\\" and line[at + 1 : at + 2] and line[at + 1] in _ESCAPED_IN_QUOTES:
            parts.append(line[at + 1].removeprefix("\n"))
            at += 2
        else:
            parts.append(letter)
            at += 1
    raise _Unclear
