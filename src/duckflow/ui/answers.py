"""Reading a person's yes or no, in both languages; anything else is a no with that as its reason."""

from duckflow.domain.commands import AnswerApproval

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
