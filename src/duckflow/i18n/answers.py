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
        *("carry", "on", "with", "the", "plan", "for", "me", "duckflow", "works", "to", "thing", "them"),
    )
)
"""Words that may follow without changing the yes. Any other word, such as "but", makes it unclear."""
_YES_PHRASE = lazy_regex(
    r"\bof course\b|\b(?:that|this|it)(?:s| is| looks)? (?:fine|good|great|perfect|ok|okay|right|works)\b"
    r"|\bi agree\b|\bim (?:ok|okay|fine|good) with (?:that|this|it)\b|\blets (?:go|do|start|begin)\b"
    r"|\bship it\b"
    r"|\bmake it so\b|\bgo for it\b|\bworks for me\b|\bby all means\b|\bbegin\b|\bstart\b"
)
_NO = frozenset(["n", "no", "nope", "nah"])
_STOP = frozenset(["not", "never", "dont", "stop", "cancel", "reject", "refuse", "deny", "wait", "abort"])
"""Words that mean no and are kept as part of the reason."""
_BARE_STOP = lazy_regex(
    r"(?:please |just |ok |no )*"
    r"(?:stop|wait|hold on|hold it|hold|cancel|abort|quit it|never ?mind|not now|not yet|dont)"
    r"(?: (?:please|it|that|this|there|here|now|for now|everything|work|thanks|a (?:moment|minute|sec)))*"
)
"""A stop that gives no reason."""
_GO_ON = lazy_regex(
    r"(?:ok |okay |yes |please |now |just )*"
    r"(?:go on|go ahead|continue|proceed|keep going|carry on|resume|pick up where you left off)"
    r"(?: (?:please|with it|with that|working|the work|now|then|thanks|from (?:here|there)))*"
)
_JA_GO_ON = lazy_regex(
    "(?:はい|では|じゃあ|それでは|そのまま|作業を|さっきの|先ほどの|前の|続きを|続きから)*"
    "(?:続けて|つづけて|続き|続行|再開|進めて|継続|お願い|やって)"
    "(?:して|ください|下さい|お願いします|お願い|します|しよう|いい|いいよ|ね|よ|です|を)*"
)
"""Words that only ask to go on."""
_THANKS = frozenset({"thanks", "thank you", "please", "ありがとう", "ありがとうございます", "です"})
_NO_IDIOM = lazy_regex(r"no[\s,]+(?:problem|problems|worries|objection|objections)\b")
"""Idioms that begin like a no but mean yes, so they are unclear."""
_ALWAYS = frozenset({"a", "always", "allow"})

_JA_YES = (
    "はい|はーい|ええ|うん|おう|もちろん|どうぞ|オッケー|オーケー|おっけー|おっけ|おーけー|おけ|ok|了解|承知|しました|"
    "いいと思う|いいと思います|よいと思います|良いと思います|いいよ|いいね|いいです|よいです|良いです|良いよ|よさそう|良さそう|"
    "お願い|おねがい|頼む|頼みます|頼んだ|進めて|進めよう|進めましょう|進めま|やって|やろう|やりましょう|実行して|実行|許可|承認|"
    "続けて|始めて|はじめて|始めましょう|始めよう|よろしく|賛成|構いません|かまいません|構わない|かまわない|"
    "問題ない|問題ありません|問題なし|異論ありません|その通り|そのとおり"
)
_JA_WITH_YES = (
    "これで|それで|この内容で|その内容で|この計画で|その計画で|この案で|その案で|この方法で|その方法で|計画を|では|じゃあ|ぜひ|そのまま|"
    "そうして|します|いたします|致します|ください|下さい|です|ので|ね|よ|ー|y|yes"
)
_JA_NO = lazy_regex("いいえ|いえいえ|いえ|いやです|いやだ|いや|ノー")
_JA_STOP = lazy_regex(
    "(?:やっぱり|やっぱ|ちょっと|一旦|いったん|少し|もう|まだ)*"
    "(?:やめて|やめとく|やめときます|やめます|やめよう|やめましょう|止めて|止まって|とめて|だめ|ダメ|駄目|違う|違います|ちがう|"
    "待って|まって|待った|ストップ|中止|中断|キャンセル|しないで|やらないで|許可しない|拒否|不許可|却下|いらない|いりません|要らない|"
    "要りません|不要)"
    "(?:です|して|します|おいて|ください|下さい|ね|よ|お願いします)*"
)
_JA_ALWAYS = "いつも|常に|今後も"

_APART = " \t\n\u3000,.!;:、。，．！：；…~〜～\"'「」"
_BEFORE_REASON = " \t\n\u3000,.!;:、。，．！：；…~〜～-"
"""Signs between a no and its reason. Quotes and brackets belong to the reason."""
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


def is_remark(said: str) -> bool:
    """Return whether an unclear answer is a sentence or question for the model, rather than a slip (G1)."""
    plain = said.strip()
    return len(plain) > 1 and (" " in plain or plain.endswith("?") or not plain.isascii())


def read_choice(said: str, consultation: Consultation) -> ChooseWay | None:
    """Read a choice by number or name, with words after it, or only words. None for an unknown number."""
    first, *others = said.split(maxsplit=1) or [""]
    number, *more = _BEHIND_NUMBER.split(first, maxsplit=1)
    word = unicodedata.normalize("NFKC", number).strip(".)").casefold()
    for place, choice in enumerate(consultation.choices, start=1):
        if word in (str(place), choice):
            return ChooseWay(choice=choice, text=" ".join((*more, *others)).strip())
    if "stop" in consultation.choices and _is_bare_stop(_plain(said)):
        return ChooseWay(choice="stop")
    return None if not word or word.isdecimal() else ChooseWay(text=said.strip())


def is_stop(said: str) -> bool:
    """Return whether the words only ask to stop or wait (C6)."""
    return _is_bare_stop(_plain(said))


def is_go_on(said: str) -> bool:
    """Return whether the words only ask to go on with the work (C4)."""
    plain = _plain(said)
    return bool(_GO_ON.fullmatch(" ".join(_all_words(plain))) or _JA_GO_ON.fullmatch(_joined(plain)))


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
    if _is_bare_stop(plain):
        return AnswerApproval(yes=False)
    if first in _STOP:
        return AnswerApproval(yes=False, reason=said)
    no = first if first in _NO and not _NO_IDIOM.match(plain) else ""
    if not no and (refused := _JA_NO.match(plain)):
        no = refused[0]
    if no:
        reason = _rest(said, len(no))
        return None if _is_yes(_plain(reason)) else AnswerApproval(yes=False, reason=reason)
    if _JA_STOP.match(plain):
        return AnswerApproval(yes=False, reason=said)
    return None


def _first_word(plain: str) -> str:
    """Return the first word of an answer, whatever follows it. Empty for a question."""
    begins = None if plain.endswith("?") else _BEGINS.match(plain.replace("’", "'"))
    return begins[1].replace("'", "") if begins else ""


def _rest(said: str, length: int) -> str:
    """Return the reason behind a no, as it was typed."""
    if said.strip() in _NUMBERS:
        return ""
    reason = said.lstrip(_APART)[length:].lstrip(_BEFORE_REASON).rstrip()
    plain = _plain(reason)
    return "" if not plain or plain in _THANKS or _is_bare_stop(plain) else reason


def _is_bare_stop(plain: str) -> bool:
    return bool(_BARE_STOP.fullmatch(" ".join(_all_words(plain))) or _JA_STOP.fullmatch(plain))


def _all_words(plain: str) -> list[str]:
    """Return the words of an English answer; empty if it has other characters (keys, questions, code)."""
    spoken = plain.replace("’", "'")
    return re.findall(r"[a-z]+", spoken.replace("'", "")) if _SPOKEN.fullmatch(spoken) else []


def _words(plain: str) -> list[str]:
    """Return the words of an English answer, with one word for a phrase that means yes."""
    return _YES_PHRASE.sub("sure", " ".join(_all_words(plain))).split()


def _joined(plain: str) -> str:
    return "".join(letter for letter in plain if letter not in _APART)


def _made_of(said: str, *parts: str) -> bool:
    return re.fullmatch(f"(?:{'|'.join(parts)})+", said) is not None
