"""Interprets the user's answers in both languages. Unless yes or no is clear, ask again (A5, B6, I6)."""

import re
import unicodedata

from duckflow.domain.patterns import lazy_regex
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.domain.questions.consultation import ChooseWay, Consultation

_EDIT = lazy_regex(r"\s*(?:e|edit|編集)\s*[:：]\s?", re.IGNORECASE)
_NUMBERS = {"1": "y", "2": "n", "3": "a"}

_YES = frozenset(
    (
        *("y", "yes", "yep", "yeah", "yup", "ok", "okay", "sure", "absolutely", "definitely"),
        *("certainly", "fine", "alright", "agreed", "approve", "approved", "lgtm", "perfect", "great"),
        *("proceed", "please", "go", "do", "sounds", "looks"),
    )
)
"""Words with which a yes can begin."""
_WITH_YES = _YES | frozenset(
    (
        *("ahead", "it", "that", "this", "thats", "is", "good", "right", "of", "course", "and", "then"),
        *("now", "just", "by", "all", "means", "thanks", "thank", "you", "lets", "start", "continue"),
        *("carry", "on", "with", "the", "plan", "for", "me", "duckflow"),
    )
)
"""Words that may follow without changing the yes. Any other word, such as "but", makes it unclear."""
_YES_PHRASE = lazy_regex(r"\bof course\b|\bthat(?:s| is) (?:fine|good|ok|okay|right)\b")
_NO = frozenset(["n", "no", "nope", "nah"])
_STOP = frozenset(["not", "never", "dont", "stop", "cancel", "reject", "refuse", "deny", "wait"])
"""Words that mean no and are kept as part of the reason."""
_NO_IDIOM = lazy_regex(r"no[\s,]+(?:problem|problems|worries|objection|objections)\b")
"""Idioms that begin like a no but mean yes, so they are unclear."""
_ALWAYS = frozenset({"a", "always", "allow"})

_JA_YES = (
    "はい|ええ|うん|おう|もちろん|どうぞ|オッケー|オーケー|おけ|ok|了解|承知|しました|いいよ|いいね|いいですよ|いいですね|"
    "よいですよ|良いですよ|良いよ|お願い|おねがい|頼む|頼みます|頼んだ|進めて|やって|実行して|許可|承認|続けて|"
    "よろしく|賛成"
)
_JA_WITH_YES = (
    "それで|では|じゃあ|ぜひ|そのまま|そうして|します|いたします|致します|ください|です|ね|よ|y|yes"
)
_JA_NO = lazy_regex("いいえ|いえいえ|いえ|いやです|いやだ|いや|ノー")
_JA_STOP = lazy_regex(
    "やめて|やめとく|やめます|やめよう|止めて|とめて|だめ|ダメ|駄目|違う|違います|ちがう|待って|まって|ストップ|中止|"
    "キャンセル|しないで|やらないで|許可しない|拒否|不許可|却下"
)
_JA_ALWAYS = "いつも|常に|今後も"

_APART = " \t\n\u3000,.!;:、。，．！：；…~〜～\"'「」"
_SPOKEN = lazy_regex(r"[a-z][a-z' \n\t,.!;:-]*")
_BEGINS = lazy_regex(r"([a-z]+(?:'[a-z]+)?)(?=$|[\s,;:!(]|[.-]+(?:\s|$)|[^\x00-\x7f])")
_BEHIND_NUMBER = lazy_regex("[、，,：:]")


def read_answer(said: str) -> AnswerApproval | None:
    """Interpret an answer to an approval: yes, always, an edit, or no with a reason. None if unclear."""
    edit = _EDIT.match(said)
    if edit:
        return AnswerApproval(yes=True, edited=said[edit.end() :])
    plain = _plain(said)
    plain = _NUMBERS.get(plain, plain)
    if _is_yes(plain):
        return AnswerApproval(yes=True)
    if _is_always(plain):
        return AnswerApproval(yes=True, always=True)
    return _read_no(said.strip(), plain)


def read_choice(said: str, consultation: Consultation) -> ChooseWay | None:
    """Read a choice by number or name, with words after it, or only words. None for an unknown number."""
    first, *others = said.split(maxsplit=1) or [""]
    number, *more = _BEHIND_NUMBER.split(first, maxsplit=1)
    word = unicodedata.normalize("NFKC", number).strip(".)").casefold()
    for place, choice in enumerate(consultation.choices, start=1):
        if word in (str(place), choice):
            return ChooseWay(choice=choice, text=" ".join((*more, *others)).strip())
    return None if not word or word.isdecimal() else ChooseWay(text=said.strip())


def _plain(said: str) -> str:
    return unicodedata.normalize("NFKC", said).casefold().strip(_APART)


def _is_yes(plain: str) -> bool:
    words = _words(plain)
    if words and words[0] in _YES and _WITH_YES.issuperset(words):
        return words != ["do"]
    japanese = _joined(plain)
    return _made_of(japanese, _JA_YES, _JA_WITH_YES) and re.search(_JA_YES, japanese) is not None


def _is_always(plain: str) -> bool:
    words = _words(plain)
    if "always" in words or words == ["a"]:
        return (_WITH_YES | _ALWAYS).issuperset(words)
    japanese = _joined(plain)
    known = _made_of(japanese, _JA_YES, _JA_WITH_YES, _JA_ALWAYS)
    return known and re.search(_JA_ALWAYS, japanese) is not None


def _read_no(said: str, plain: str) -> AnswerApproval | None:
    first = _first_word(plain)
    if first in _STOP:
        return AnswerApproval(yes=False, reason="" if first == plain else said)
    if first in _NO and not _NO_IDIOM.match(plain):
        return AnswerApproval(yes=False, reason=_rest(said, len(first)))
    if refused := _JA_NO.match(plain):
        return AnswerApproval(yes=False, reason=_rest(said, len(refused[0])))
    if _JA_STOP.match(plain):
        return AnswerApproval(yes=False, reason="" if _JA_STOP.fullmatch(plain) else said)
    return None


def _first_word(plain: str) -> str:
    """Return the first word of an answer, whatever follows it. Empty for a question."""
    begins = None if plain.endswith("?") else _BEGINS.match(plain.replace("’", "'"))
    return begins[1].replace("'", "") if begins else ""


def _rest(said: str, length: int) -> str:
    return "" if said.strip() in _NUMBERS else said.lstrip(_APART)[length:].strip(_APART)


def _words(plain: str) -> list[str]:
    """Return the words of an English answer; empty if it has other characters (keys, questions, code)."""
    spoken = plain.replace("’", "'")
    if not _SPOKEN.fullmatch(spoken):
        return []
    return re.findall(r"[a-z]+", _YES_PHRASE.sub("sure", spoken.replace("'", "")))


def _joined(plain: str) -> str:
    return "".join(letter for letter in plain if letter not in _APART)


def _made_of(said: str, *parts: str) -> bool:
    return re.fullmatch(f"(?:{'|'.join(parts)})+", said) is not None
