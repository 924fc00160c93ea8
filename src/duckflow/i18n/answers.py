"""Interprets the user's answers in both languages. Unless yes or no is clear, ask again (A5, B6, I6)."""

import re
import unicodedata

from duckflow.domain.patterns import lazy_regex
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.domain.questions.consultation import ChooseWay, Consultation
from duckflow.domain.state import AgentState
from duckflow.domain.text import asks_something

_EDIT = lazy_regex(r"\s*(?:e|edit|編集)\s*[:：]\s?", re.IGNORECASE)
_NUMBERS = {"1": "y", "2": "n", "3": "a"}

_YES = frozenset(
    (
        *(
            "y",
            "yes",
            "yep",
            "yeah",
            "yup",
            "ya",
            "ye",
            "yea",
            "ok",
            "okay",
            "hai",
            "k",
            "kk",
            "sure",
            "cool",
            "nice",
        ),
        *("absolutely", "definitely", "awesome", "excellent", "good", "yess", "aye", "roger", "affirmative"),
        *("continue", "accept", "accepted", "apply", "exactly", "correct"),
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
    r"|\ball good\b|^(?:thats|this is) it\b"
    r"|\bi agree\b|\bim (?:ok|okay|fine|good) with (?:that|this|it)\b|\blets (?:go|do|start|begin)\b"
    r"|\bship it\b"
    r"|^write it\b|^why not\b|\bbe my guest\b|\bi (?:approve|accept|allow)\b"
    r"|\bmake it so\b|\bgo for it\b|\bworks for me\b|\bby all means\b|\bbegin\b|\bstart\b"
)
_FINE = lazy_regex(r"(?:no )?(?:(?:that|this|it)(?:s| is)|all) (?:fine|good|great|perfect|ok|okay)\b")
"""Words behind a no that take it back, so that the answer is unclear: no, that's fine."""
_NO = frozenset(["n", "no", "nope", "nop", "noo", "nooo", "nah", "naw", "iie"])
_STOP = frozenset(
    [
        *("not", "never", "dont", "stop", "cancel", "reject", "refuse", "deny", "decline", "discard"),
        *("wait", "abort", "skip"),
    ]
)
"""Words that mean no and are kept as part of the reason."""
_BARE_STOP = lazy_regex(
    r"(?:please |just |ok |no )*"
    r"(?:stop|wait|hold on|hold it|hold|cancel|abort|quit it|forget (?:about )?it|never ?mind"
    r"|not now|not yet|do not|dont|decline|discard|(?:thats |that is )?enough)"
    r"(?: (?:please|it|that|this|there|here|now|for now|for today|everything|work|thanks|stop"
    r"|a (?:moment|minute|sec)))*"
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
"""Words that only ask to continue."""
_END = lazy_regex(
    r"(?:ok |okay |great |good |nice |perfect |no |alright |thanks |thank you |i think |then )*"
    r"(?:(?:thats|that is|that will be|thatll be) (?:all|it|everything)"
    r"|(?:im|i am|were|we are) (?:done|finished)"
    r"|lets (?:end|finish|stop) here|no more for (?:now|today)|end here)"
    r"(?: (?:for now|for today|now|here|then|i (?:need|needed|wanted)|thanks|thank you|please|with this))*"
)
_JA_END = lazy_regex(
    "(?:じゃあ|では|それでは|はい|うん|ok|よし|もう|これで|ここで|ここまで|今日は|今回は|とりあえず|ひとまず|いったん|一旦)*"
    "(?:終わり|おわり|終了|おしまい|お終い|以上|いい|十分|じゅうぶん|大丈夫|結構|けっこう|ここまで)"
    "(?:で|に|して|しましょう|しよう|します|する|いい|大丈夫|結構|けっこう|です|よ|ね|だ|や|わ|かな|お願いします|ください|ok)*"
    "(?:ありがとう|ありがとうございます|ありがとうございました|どうも|お疲れ様です|お疲れ様でした|お疲れさまでした|助かりました)*"
)
_JA_ENDING = lazy_regex(
    "終わり|おわり|終了|おしまい|お終い|以上|ここまで|もう(?:いい|十分|じゅうぶん|大丈夫|結構|けっこう)"
)
"""Words that only say that nothing more is wanted. In Japanese one of the second kind must be among them."""
_KEYS = frozenset({"y", "n"})
_THANKS = frozenset({"thanks", "thank you", "please", "ありがとう", "ありがとうございます", "です"}) | {
    *("結構です", "けっこうです", "大丈夫です", "だいじょうぶです")
}
_NO_IDIOM = lazy_regex(r"no[\s,]+(?:problem|problems|worries|objection|objections|idea)\b|not (?:sure|bad)\b")
"""Idioms that begin like a no but mean something else, so they are unclear."""
_NO_OF_SOMETHING = lazy_regex(r"\s*no\s+[^\W\d_]", re.IGNORECASE)
"""A no without a sign behind it may belong to the next word, as in "no network". The reason keeps it."""
_ALWAYS = frozenset({"a", "always", "allow"})
_ASKS_LESS = lazy_regex(
    r"(?:please |just |ok |yes |and |you can )*"
    r"(?:(?:stop|quit) asking|(?:dont|no need to|you dont (?:have|need) to) ask)\b"
)
"""Words that begin like a no and mean the opposite: stop asking me, just do it."""
_ASKS_LESS_ABOUT = frozenset(
    (
        *("me", "again", "any", "anymore", "more", "every", "each", "all", "the", "time", "so", "much"),
        *("about", "for", "of", "these", "little", "small", "single", "edit", "edits", "change", "changes"),
        *("file", "files", "thing", "things", "question", "questions", "permission", "everything"),
    )
)
_JA_ASKS_LESS = lazy_regex(
    "(?:もう|いちいち|毎回|今後は|以後は?|これからは|次から|確認は?|承認は?|許可は?|編集ごとに)*"
    "(?:聞かないで|確認しないで|聞かなくても?(?:いい|大丈夫)|確認しなくても?(?:いい|大丈夫)|確認は?(?:不要|いらない|要らない))"
    "(?:です|よ|から|ので|ください|下さい|どんどん|全部|進めて|やって|お願いします|いい|ね)*"
)

_JA_YES = (
    "はい|はーい|ええ|うん|おう|もちろん|どうぞ|オッケー|オーケー|おっけー|おっけ|おーけー|おけ|ok|了解|承知|しました|"
    "いいと思う|いいでしょう|いいんじゃない|いいんじゃないですか|いいんじゃないでしょうか|いいねえ|完璧|ばっちり|バッチリ|"
    "よろしい|良し|いこう|行こう|(?:じゃあ|じゃ|では)それで|(?:だから)?いいって言って(?:る|ます|いる)(?:じゃん|でしょう?|だろう?|のに|よ|から)*|同意|異議なし|異存ありません|すすめて|いきましょう|行きましょう|書いて|書き込んで|適用して|反映して|おk|go|"
    "そうして|そのままで|それでいい|これでいい|ぜひ|👍|👌|🙆|⭕|いいと思う|いいと思います|よいと思います|良いと思います|いいよ|いいね|いいです|よいです|良いです|良いよ|よさそう|良さそう|"
    "お願い|おねがい|頼む|頼みます|頼んだ|進めて|進めよう|進めましょう|進めま|やって|やろう|やりましょう|実行して|実行|許可|承認|"
    "続けて|始めて|はじめて|始めましょう|始めよう|よろしく|賛成|構いません|かまいません|構わない|かまわない|"
    "問題ない|問題ありません|問題なし|異論ありません|その通り|そのとおり|"
    "りょうかい|イエス|ゴー|よし|そうですね|進めちゃって|やっちゃって|いいっすよ|いいっす|"
    "(?:これで|それで|この案で|その案で)大丈夫"
)
_JA_WITH_YES = (
    "これで|それで|この内容で|その内容で|この計画で|その計画で|この案で|その案で|この方法で|その方法で|計画を|では|じゃあ|ぜひ|そのまま|"
    "なるほど|わかりました|分かりました|わかった|分かった|あ|ああ|そっか|そうか|それなら|それじゃ|じゃ|"
    "ありがとう|ありがとうございます|助かります|最高|"
    "変更して|編集して|作成して|作って|足して|読んで|\U0001f3fb|\U0001f3fc|\U0001f3fd|\U0001f3fe|\U0001f3ff|\u200d|\ufe0f|♂|♀|"
    "します|いたします|致します|ください|下さい|です|ので|で|ね|よ|ー|y|yes"
)
_JA_NO = lazy_regex("いいえ|いえいえ|いえ|いやです|いやだ|いや|イヤ|嫌です|嫌だ|嫌|ノー")
_JA_STOP = lazy_regex(
    "(?:やっぱり|やっぱ|ちょっと|一旦|いったん|少し|もう|まだ)*"
    "(?:やめて|やめとく|やめときます|やめます|やめよう|やめましょう|止めて|止まって|とめて|だめ|ダメ|駄目|違う|違います|ちがう|"
    "待って|まって|待った|ストップ|中止|中断|キャンセル|しないで|やらないで|許可しない|お断りします|断る|断ります|破棄|捨てて|そうじゃない|そうではない|必要ない|反対|なし|無し|拒否|不許可|却下|いらない|いりません|要らない|"
    "要りません|不要|やめとこう)"
    "(?:です|して|します|おいて|ください|下さい|ね|よ|お願いします)*"
)
_TAKES_BACK = lazy_regex(
    "(?:no |please |actually |ok )*(?:undo|revert|go back|(?:take|put) (?:it|that) back)"
    "(?: (?:it|that|this|please|now))*"
    "|(?:やっぱり|やっぱ|やはり|それ|これ|を|は|全部)*(?:元に|もとに)?(?:戻して|もどして|取り消して)"
    "(?:おいて|ください|下さい|ね|よ)*"
)
"""Words that take something back. Where a change is still asked about, they are a no."""
_JA_LATER = lazy_regex(
    "(?:また|ちょっと)?(?:今度|後で|あとで|後にして|あとにして|タンマ|遠慮します|遠慮しておきます|もういい|今はいい|いまはいい)"
    "(?:です|ください|下さい|ね|よ)*"
)
"""Words that put off or decline, unless something follows them."""
_TURNS_DOWN = lazy_regex(
    r"\bdont\b|\bdon.t\b|だめ|ダメ|駄目|違|ちが|しないで|やらないで|許可|拒否|却下|いらない|いりません|要らない|要りません|不要"
    r"|遠慮|もういい|今はいい|いまはいい"
)
"""Stops that refuse the proposal itself."""
_BOTH = lazy_regex("(?:いや|いえ|いいえ)?(?:いい|大丈夫|だいじょうぶ|結構|けっこう)(?:です|よ|かな|ね|や)*")
"""Words that a Japanese speaker uses both to accept and to decline."""
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
    if _BOTH.fullmatch(_joined(_plain(said))):
        return False
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
    if "stop" in consultation.choices and (_is_bare_stop(_plain(said)) or is_end(said)):
        return ChooseWay(choice="stop")
    return None if not word or word.isdecimal() else ChooseWay(text=said.strip())


def is_stop(said: str) -> bool:
    """Return whether the words only ask to stop or wait (C6)."""
    return _is_bare_stop(_plain(said))


def ends_request(said: str, state: AgentState) -> bool:
    """Return whether a message only says that the user wants no more work on the open request (M1)."""
    return state.request is not None and state.consultation is None and is_end(said)


def answers_nothing(said: str, state: AgentState) -> bool:
    """Return whether a line is only a key of an answer, though neither program nor model asks (G1)."""
    waits = state.request is not None and state.request.outcome == "pending_user"
    asked = state.question is not None or waits or asks_something(state.reply)
    return _plain(said) in _KEYS and not asked


def is_end(said: str) -> bool:
    """Return whether the words only say that nothing more is wanted."""
    plain = _plain(said)
    japanese = _joined(plain)
    ends = _JA_END.fullmatch(japanese) is not None and _JA_ENDING.search(japanese) is not None
    return ends or _END.fullmatch(" ".join(_all_words(plain))) is not None


def is_pause(said: str) -> bool:
    """Return whether the words ask to stop or wait for now, and do not turn down what is proposed (G1)."""
    plain = _plain(said)
    return _is_bare_stop(plain) and not _TURNS_DOWN.search(plain)


def is_go_on(said: str) -> bool:
    """Return whether the words only ask to continue the work (C4)."""
    plain = _plain(said)
    return bool(_GO_ON.fullmatch(" ".join(_all_words(plain))) or _JA_GO_ON.fullmatch(_joined(plain)))


def _plain(said: str) -> str:
    return unicodedata.normalize("NFKC", said).casefold().strip(_APART)


def _is_yes(plain: str) -> bool:
    words = _words(plain)
    if words and words[0] in _YES and _WITH_YES.issuperset(words):
        return words != ["do"]
    japanese = _joined(plain).replace("まーす", "ます").replace("でーす", "です")
    return _made_of(japanese, _JA_YES, _JA_WITH_YES) and re.search(_JA_YES, japanese) is not None


def _is_always(plain: str) -> bool:
    words = _words(plain)
    if _asks_less(plain):
        behind = _ASKS_LESS.sub("", " ".join(_all_words(plain))).split()
        return not plain.isascii() or _ASKS_LESS_ABOUT.union(_WITH_YES).issuperset(behind)
    if "always" in words or words == ["a"]:
        return (_WITH_YES | _ALWAYS).issuperset(words)
    japanese = _joined(plain)
    known = _made_of(japanese, _JA_YES, _JA_WITH_YES, _JA_ALWAYS)
    return known and re.search(_JA_ALWAYS, japanese) is not None


def _asks_less(plain: str) -> bool:
    """Return whether the words ask Duckflow to ask less, which is no refusal."""
    english = _ASKS_LESS.match(" ".join(_all_words(plain)))
    return bool(english or _JA_ASKS_LESS.fullmatch(_joined(plain)))


def _read_no(said: str, plain: str) -> AnswerApproval | None:
    if _asks_less(plain):
        return None
    first = _first_word(plain)
    if _NO_IDIOM.match(plain):
        return None
    if _is_bare_stop(plain) or _TAKES_BACK.fullmatch(plain):
        return AnswerApproval(yes=False)
    if first in _STOP:
        return AnswerApproval(yes=False, reason=said)
    no = first if first in _NO else ""
    if not no and (refused := _JA_NO.match(plain)):
        no = refused[0]
    if no:
        reason = _rest(said, len(no))
        meant = _plain(reason)
        unclear = _is_yes(meant) or _FINE.match(" ".join(_all_words(meant)))
        return None if unclear else AnswerApproval(yes=False, reason=reason)
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
    if not plain or plain in _THANKS or _is_bare_stop(plain):
        return ""
    return said.strip() if _NO_OF_SOMETHING.match(said) else reason


def _is_bare_stop(plain: str) -> bool:
    japanese = _JA_STOP.fullmatch(plain) or _JA_LATER.fullmatch(plain)
    return bool(japanese or _BARE_STOP.fullmatch(" ".join(_all_words(plain))))


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
