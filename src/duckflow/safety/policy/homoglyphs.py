"""Detect names that imitate other names: words that mix alphabets, or letters that look like Latin ones."""

import unicodedata

from duckflow.domain.patterns import lazy_regex

_ALPHABETS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "GEORGIAN", "DESERET")
_IMITATORS = frozenset("аеорсухіјѕһԁԛԝьвкмнтАВЕКМНОРСТУХІЈЅαικνορτυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧոսցօհ")
"""Letters of other alphabets that look like Latin ones."""
_WORD = lazy_regex(r"[^\W\d_]+")


def is_lookalike(path: str) -> bool:
    """Return whether a path has a letter that a reader would mistake for another letter."""
    return any(map(_styled, path)) or any(map(_imitates, _WORD.findall(path)))


def _imitates(word: str) -> bool:
    alphabets = {_alphabet(letter) for letter in word} - {""}
    return len(alphabets) > 1 or (alphabets != {"LATIN"} and all(letter in _IMITATORS for letter in word))


def _alphabet(letter: str) -> str:
    name = unicodedata.name(letter, "").split(" ")
    return next((one for one in _ALPHABETS if one in name[:2]), "")


def _styled(letter: str) -> bool:
    """Return whether a letter is a full-width, mathematical or similar variant of a plain ASCII character."""
    plain = unicodedata.normalize("NFKC", letter)
    return letter > "\x7f" and plain != letter and plain.isascii() and bool(plain.strip())
