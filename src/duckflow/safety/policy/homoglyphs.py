"""Detect names that imitate other names: words that mix alphabets, or letters that look like Latin ones."""

import unicodedata

from duckflow.domain.patterns import lazy_regex

_ALPHABETS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "GEORGIAN", "DESERET")
_IMITATORS = frozenset("аеорсухіјѕһԁԛԝьвкмнтАВЕКМНОРСТУХІЈЅαικνορτυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧոսցօհ")
"""Letters of other alphabets that look like Latin ones."""
_WORD = lazy_regex(r"[^\W\d_]+")


def imitating_letters(path: str) -> tuple[str, ...]:
    """Return each letter in a path that a reader would mistake for another letter, once."""
    found: dict[str, None] = {}
    for word in _WORD.findall(path):
        found |= dict.fromkeys(_imitating(word))
    found |= dict.fromkeys(letter for letter in path if _styled(letter))
    return tuple(found)


def _imitating(word: str) -> list[str]:
    foreign = [letter for letter in word if _alphabet(letter) not in ("", "LATIN")]
    mixed = len({_alphabet(letter) for letter in word} - {""}) > 1
    if mixed or (foreign and all(letter in _IMITATORS for letter in word)):
        return foreign
    return []


def _alphabet(letter: str) -> str:
    name = unicodedata.name(letter, "").split(" ")
    return next((one for one in _ALPHABETS if one in name[:2]), "")


def _styled(letter: str) -> bool:
    """Return whether a letter is a full-width, mathematical or similar variant of a plain ASCII character."""
    plain = unicodedata.normalize("NFKC", letter)
    return letter > "\x7f" and plain != letter and plain.isascii() and bool(plain.strip())
