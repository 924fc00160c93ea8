"""Reading what a person answers: a yes or a no in both languages, or one of several ways to go on."""

import re
import unicodedata

from duckflow.domain.commands import AnswerApproval, ChooseWay
from duckflow.domain.consultation import Consultation

_YES = frozenset({"y", "yes", "ok", "はい", "うん", "ええ"})
_NO = frozenset({"n", "no", "いいえ", "いや"})
_ALWAYS = frozenset({"a", "always", "いつも", "常に"})
_EDIT = re.compile(r"\s*(?:e|edit|編集)\s*[:：]\s?", re.IGNORECASE)
_BEHIND_NUMBER = re.compile("[、，,：:]")


def read_answer(said: str) -> AnswerApproval:
    """The answer to an approval: yes, always, edit: with what it shall be instead; all else is a no."""
    edit = _EDIT.match(said)
    if edit:
        return AnswerApproval(yes=True, edited=said[edit.end() :])
    word = said.strip()
    plain = unicodedata.normalize("NFKC", word).casefold()
    if plain in _YES:
        return AnswerApproval(yes=True)
    if plain in _ALWAYS:
        return AnswerApproval(yes=True, always=True)
    first, *rest = re.split(r"[\s,:、：，。]+", word, maxsplit=1)
    refuses = unicodedata.normalize("NFKC", first).casefold() in _NO
    return AnswerApproval(yes=False, reason=" ".join(rest).strip() if refuses else word)


def read_choice(said: str, consultation: Consultation) -> ChooseWay:
    """The choice a person means: its number or its name, and words of their own behind it; or only words."""
    first, *others = said.split(maxsplit=1) or [""]
    number, *more = _BEHIND_NUMBER.split(first, maxsplit=1)
    word = unicodedata.normalize("NFKC", number).strip(".)").casefold()
    for place, choice in enumerate(consultation.choices, start=1):
        if word in (str(place), choice):
            return ChooseWay(choice=choice, text=" ".join((*more, *others)).strip())
    return ChooseWay(text=said.strip())
