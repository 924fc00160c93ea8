"""Parse a command line as a shell would, as far as possible without running it."""

import re
import unicodedata
from typing import NamedTuple

from duckflow.domain.patterns import lazy_regex

LONGEST = 20_000
"""Longest command, in characters, that is parsed."""

_TOKEN = lazy_regex(
    r"""(?P<skipped>[ \t]+|\\\n|\#[^\n]*)
    |(?P<separator>&&|\|\||\|&|[|;\n])
    |(?P<redirect>[0-9]*(?:&>>|&>|>>|>\||>&|<&|<>|>(?!\()|<(?![<(])))
    |(?P<word>(?:'[^']*'|"(?:[^"$`\\]|\\.)*"|\\.|[^\ \t\n'"\\$`;|&<>()])+)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_QUOTED = lazy_regex(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)""", re.DOTALL)
_ESCAPE = lazy_regex(r'\\([$`"\\\n])')
_RESERVED = lazy_regex(
    r"if|then|else|elif|fi|for|while|until|do|done|case|esac|select|function|coproc|time|[{}!]|\[\[|\]\]"
)
_DESCRIPTOR = lazy_regex(r"[0-9]+|-")


class ProgramCall(NamedTuple):
    """Call of one program: its words, and the files to which its input and output are redirected."""

    words: tuple[str, ...]
    redirects: tuple[str, ...] = ()


def read_command(line: str) -> tuple[ProgramCall, ...] | None:
    """Split a line into program calls. Return None if a part of it is known only when a shell runs it."""
    if len(line) > LONGEST or any(map(_hidden, line)):
        return None
    calls: list[ProgramCall] = []
    words: list[str] = []
    redirects: list[str] = []
    redirect = ""
    for token in _TOKEN.finditer(line):
        kind, text = token.lastgroup, token[0]
        if kind == "word":
            plain = _unquoted(text)
            if plain is None or (not words and not redirect and _RESERVED.fullmatch(text)):
                return None
            if not redirect:
                words.append(plain)
            elif not (redirect.endswith("&") and _DESCRIPTOR.fullmatch(plain)):
                redirects.append(plain)
            redirect = ""
        elif kind != "skipped" and (redirect or kind == "other"):
            return None
        elif kind == "redirect":
            redirect = text
        elif kind == "separator":
            calls.append(ProgramCall(tuple(words), tuple(redirects)))
            words, redirects = [], []
    calls.append(ProgramCall(tuple(words), tuple(redirects)))
    return None if redirect else tuple(call for call in calls if call.words or call.redirects)


def _hidden(letter: str) -> bool:
    return letter not in "\n\t" and unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def _unquoted(word: str) -> str | None:
    """Return a word without its quotes, or None if a shell would expand it to several words."""
    text = _QUOTED.sub(_unquoted_part, word)
    braces = "{" in _QUOTED.sub("", word) and ("," in text or ".." in text)
    return None if braces else text


def _unquoted_part(part: re.Match[str]) -> str:
    single, double, escaped = part.groups()
    if double is not None:
        return _ESCAPE.sub(lambda escape: escape[1].strip("\n"), double)
    return (escaped.strip("\n") if escaped else single) or ""
