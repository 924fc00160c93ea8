"""Reading what a person answers: a yes or a no in both languages, or one of several ways to go on."""

import unicodedata

from duckflow.domain.commands import AnswerApproval, ChooseWay
from duckflow.domain.consultation import Consultation

_YES = frozenset({"y", "yes", "ok", "はい", "うん", "ええ", "ｙ"})
_NO = frozenset({"n", "no", "いいえ", "いや", "ｎ"})


def read_answer(said: str) -> AnswerApproval:
    """The answer to an approval. Silence is a no."""
    word = said.strip()
    if word.casefold() in _YES:
        return AnswerApproval(yes=True)
    first, _, rest = word.partition(" ")
    reason = rest.strip() if first.casefold().rstrip(",:、：") in _NO else word
    return AnswerApproval(yes=False, reason=reason)


def read_choice(said: str, consultation: Consultation) -> ChooseWay:
    """The choice a person means: its number or its name, and words of their own behind it; or only words."""
    first, _, rest = said.strip().partition(" ")
    word = unicodedata.normalize("NFKC", first).strip(".,:)").casefold()
    for number, choice in enumerate(consultation.choices, start=1):
        if word in (str(number), choice):
            return ChooseWay(choice=choice, text=rest.strip())
    return ChooseWay(text=said.strip())
