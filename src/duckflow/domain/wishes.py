"""Recognises what a message asks for by its words, in both languages, so that a small model need not guess.

A small model that may choose between answering and changing answers "I have changed it", or changes a file
it was asked to explain. Only plain wordings are recognised; the model decides about all others.
"""

import re
import unicodedata
from typing import Literal

from duckflow.domain.patterns import lazy_regex

PlainWish = Literal["answer", "change", "talk", "about", "changes", "tests", "run", "undo", "leave", "large"]
"""`talk`: a greeting, thanks or a bare yes or no; `about`: what Duckflow can do; `changes`: what it
has changed; `tests`: run the tests; `run`: start or open a program;
`undo`: take the last change back; `leave`: change nothing after all; `large`: a whole product, which a
small model can't write."""

_BEGINS = (
    r"(?:(?:ok|okay|well|so|now|then|and|also|but|no|nope|nah|yes|please|pls|just|hey|hm+|oh|oops|ah|wait|sorry|actually|instead|maybe|let'?s"
    r"|can you|could you|would you|will you|can we|i want you to|i need you to|i(?:'d| would) like you to"
    r"|you should|you can|try to|go and)[\s,]+)*"
)
_VERBS = (
    "fix|add|make|create|write|rewrite|rename|move|delete|remove|change|update|refactor|implement|convert"
    "|replace|export|put|use|set|turn|improve|clean|translate|generate|build|split|extract|insert|append"
    "|correct|simplify|drop|format|document|handle|support|allow|extend|edit|modify|repair|call it|name it"
    "|shorten|comment|annotate|sort|round|print|store|save|raise|return|include|define|declare|catch|ignore"
)
_CHANGE = lazy_regex(rf"{_BEGINS}(?:{_VERBS})\b(?! (?:sense|sure)\b)")
_DEMAND = lazy_regex(r"\b(?:should|must|needs? to|has to|have to|ought to)\b")
_QUESTION = lazy_regex(
    r"(?:(?:ok|okay|so|and|but|hm+|now|then|please|well|also)[\s,]+)*"
    r"(?:what|why|how|where|who|when|which|whose|is|are|was|were|does|do|did|am|has|have you|explain|describe"
    r"|summari[sz]e|tell me|show me|help me understand|can you (?:explain|describe|tell|show)"
    r"|could you (?:explain|describe|tell|show)|list (?:the|all)|compare|review)\b"
)
_TALK = lazy_regex(
    r"(?:y|n|yes|no|hi|hello|hey|good (?:morning|afternoon|evening|night)|thanks?|thank you|thx|cheers|great"
    r"|nice|cool|perfect|ok|okay|good|wow|bye|see you|well done|got it|i see|never ?mind"
    r"|that'?s (?:all|it|fine|great)|there|again|so much|very much|a lot|you|for now|duckflow|all|then)"
    r"(?:[\s,.!]+(?:hi|hello|thanks?|thank you|so much|very much|a lot|you|for now|duckflow|all|there|again"
    r"|bye|great|nice|good|job|work|that'?s (?:all|it)|then|got it))*"
)
_ABOUT = lazy_regex(
    r"(?:(?:hi|hello|hey)[\s,!.]+)?(?:what can you do|what are you able to do|who are you|what are you"
    r"|how can you help(?: me)?|what can i ask(?: you)?)(?: for me| here)?"
)
_CHANGES = lazy_regex(
    r"(?:so )?(?:what|which files?)(?: files?| exactly| all)? (?:did|have) you (?:changed?|done|do|edited)"
    r"(?: so far| until now| to now| here| today)?|(?:did|have) you changed? anything(?: .*)?"
)
_BROKEN = lazy_regex(
    r"\b(?:crash(?:es|ed)?|fails?|is broken|is wrong|does(?: not|n'?t) work|instead of \w+ing"
    r"|raises? \w*error|gives? (?:an|the wrong|a wrong)|throws?)\b"
)
"""A complaint, which asks for a repair."""
_TESTS = lazy_regex(
    rf"{_BEGINS}(?:run|execute|start|rerun|re-run) (?:\w+ ){{0,3}}?tests?(?: again| now| please)?"
    r"|(?:and |so |but )?(?:(?:did|have) you (?:really |already )?test(?:ed)? (?:it|that|this)"
    r"|is (?:it|that|this) tested)(?: really| yet| at all)?"
    r"|(?:does|will) (?:it|that|this) (?:really |actually )?work|is (?:it|that|this) working"
    r"|(?:are|do) (?:all )?(?:the |my )?tests? (?:still )?(?:passing|green|pass|ok|work)"
)
"""Asked whether it has tested its work, a small model says that it has."""
_RUN = lazy_regex(
    rf"{_BEGINS}(?:run|execute|start|launch|open|try|test)(?: (?:it|them|that|this|out|again|now|please"
    r"|in (?:the|my|a) browser|the (?:app|game|program|script|server|page|file|code|result)|[\w./-]+\.\w+))*"
)
_UNDO = lazy_regex(
    rf"{_BEGINS}(?:undo|revert|roll back|(?:take|put|bring|i want) (?:it|that|this|them|everything) back"
    r"|go back to (?:how|what|the way) (?:it|things|everything) (?:was|were))"
    r"(?: (?:it|that|this|them|the|my|your|all|of|last|latest|recent|previous|one|edits?|changes?|everything"
    r"|what|you|did|just|made|before|back|please|now|again|(?:how|the way) (?:it|things) (?:was|were)))*"
)
_LEAVE = lazy_regex(
    rf"{_BEGINS}(?:(?:i )?changed my mind|never ?mind|forget (?:it|that|about it)|leave it|skip (?:it|that)"
    r"|not now|stop|cancel|do ?n[o']?t|no (?:more )?\w+(?: please| thanks| needed| necessary)?\Z|nothing|none"
    r"|keep \w+)\b"
)
_LARGE = lazy_regex(
    rf"{_BEGINS}(?:make|create|build|develop|write|code|program|set up|i (?:want|need))\b[^.]*\b(?:"
    r"(?:web|online|internet) ?(?:shop|store)|e-?commerce|marketplace|social (?:network|media)|search engine"
    r"|operating system|chat (?:app|server)|messenger|booking (?:system|site)|crm|cms|erp|mmo(?:rpg)?|3d game"
    r"|(?:mobile|phone|iphone|android|ios|full[- ]?stack) app(?:lication)?"
    r"|(?:whole|entire|complete) (?:app|website|application|product|game|system)"
    r"|(?:facebook|twitter|youtube|instagram|amazon|uber|airbnb|netflix|minecraft|discord|whatsapp|tiktok)"
    r"|(?:app|site|website|system|platform) (?:with|that has) [^.]*(?:accounts|users|log ?in|payments?))"
    r"\b(?!\.\w)"
)
"""A wish for a whole product."""

_LEFT = lazy_regex(
    r"(?:(?:ok|okay|no|well|then|actually|hm+)[\s,]+)*"
    r"(?:leave it|forget (?:it|that|about it)|skip (?:it|that)|not now|let it be|keep it)"
    r"(?: (?:as it (?:is|was)|like that|like this|please|then|for now|alone))*"
)

_JA_POLITE = (
    "(?:おいて|みて|もらって|ほしい|欲しい|くれ|くれる|くれます|くれません|もらえる|もらえます|もらえません|いただけます|いただけません"
    "|ください|下さい|ちょうだい|頂戴|です|か|な|ね|よ|の|お願いします|お願い|もらいたい|いただきたい|ー)*"
)
_JA_CHANGE = lazy_regex(
    "(?:追加|修正|作成|変更|削除|更新|実装|改名)を?(?:お願いします|お願い|頼みます|頼む)?\\Z|(?:直し|修正し|追加し|足し|作っ|つくっ|作成し|書い|かい|書き換え|書き直し|変え|変更し|改名し|リネームし|移動し|移し|消し|消去し"
    "|削除し|更新し|置き換え|実装し|対応し|増やし|減らし|付け|つけ|加え|入れ|まとめ|分け|整え|翻訳し|訳し|保存し|保存するようにし"
    "|無視し|ようにし|くし|にし|改善し|リファクタリングし|リファクタし|綺麗にし|合わせ|直せ|揃え|並べ|取り除い|除い|表示し"
    "|出力し|返し|生成し|用意し|設定し|置い|外し|戻るようにし)(?:て|で)" + _JA_POLITE + "\\Z"
)
_JA_LARGE = lazy_regex(
    "(?:(?:オンライン|ネット|web|ウェブ)(?:ショップ|ストア|通販)|ec ?サイト|通販サイト|sns|チャットアプリ"
    "|予約(?:システム|サイト)|スマホ(?:の)?アプリ|(?:iphone|android) ?アプリ|検索エンジン|3d ?ゲーム"
    "|(?:フェイスブック|ツイッター|ユーチューブ|インスタ|アマゾン|メルカリ|マイクラ|facebook|twitter|amazon|line)"
    "(?:みたいな|のような|風の|っぽい))[^.]*(?:作|つく|開発|ほしい|欲しい|書い|お願い)"
)
_JA_QUESTION = lazy_regex(
    "(?:説明|解説|要約|紹介|案内)して|教えて|おしえて|見せて|なぜ|なんで|何故|どうして|とは\\Z|って何|は何|何を|どこ|どう(?:やっ|すれ)"
)
_JA_ABOUT = lazy_regex(
    "(?:あなたは?)?(?:何が|なにが|どんなことが|何を)(?:できますか|できる|できるの|してくれますか|してくれる)(?:の)?|あなたは(?:誰|何)(?:ですか)?"
)
_JA_CHANGES = lazy_regex(
    "(?:今まで|これまで|ここまで)?(?:に|で)?(?:何を|どのファイルを|どこを)(?:変更|修正|編集)し(?:た|ました)(?:か|の|のですか)?"
    "|(?:今まで|これまで|ここまで)?(?:に|で)?(?:変更した(?:ファイル|箇所|ところ|もの)|変更点|変更内容)(?:の一覧)?(?:を(?:教えて|見せて|全部教えて)|は)"
    + _JA_POLITE
)
_JA_BROKEN = lazy_regex(
    "(?:エラー|error|例外).{0,30}(?:出ます|出る|なります|なる|起きます|起きる|発生します)\\Z|と出(?:ます|る)\\Z"
    "|(?:動き|動作し|表示され|増え|減り|効き|出|反応し)ません\\Z|(?:動か|動作し|表示され|増え|減ら|効か|反応し)ない(?:です)?\\Z"
    "|おかしい(?:です)?\\Z|て(?:も|しまい|しまう).{1,12}(?:ます|る)\\Z|落ち(?:ます|る)\\Z|間違って(?:います|いる)\\Z"
)
_JA_TALK = lazy_regex(
    "(?:はい|いいえ|うん|こんにちは|こんばんは|おはよう|ございます|ございました|ありがとう|どうも|サンキュー|さようなら|お疲れさま|お疲れ様|おつかれさま|おつかれ|です|でした"
    "|はじめまして|よろしく|お願いします|もういい|よ|わかりました|分かりました|なるほど|了解|すごい|いいね|助かりました|ね|！|、)+"
)
_JA_TESTS = lazy_regex(
    "テスト(?:を|も)?(?:全部|すべて|もう一度|再度)?(?:実行|動か|走らせ|回し?|やっ)(?:し)?(?:て)?"
    + _JA_POLITE
    + "|(?:ちゃんと|本当に|もう)?(?:テスト|動作確認)(?:を|は|も)?し"
    "(?:た|ました|てくれた|てくれました)(?:の|んです|のです)?か?"
    "|(?:これ|それ)?(?:って|は)?(?:本当に|ちゃんと)?(?:動く|動きます|動いてます|動作します)(?:の|んです|のです)?か?"
    "|テストは(?:全部|すべて|まだ)?(?:通|パスし|成功し)(?:り|って|て)?(?:い)?(?:ます|る|た|ました)か?"
)
_JA_RUN = lazy_regex(
    "(?:.{0,20}[をもで])?(?:もう一度|実際に|一度)?(?:実行して|動かして|走らせて|起動して|開いて|試して)"
    + _JA_POLITE
)
_JA_UNDO = lazy_regex(
    "(?:やっぱり|やはり|ごめん|すみません|さっき|先ほど|今|最後|直前|いま|の|変更|修正|編集|作業|状態|を|は|全部|すべて|一つ|ひとつ|一旦|前|に|、"
    "|それ|これ|もと|元)*(?:元に戻し|もとに戻し|取り消し|取りけし|取消し|取り止め|戻し|アンドゥし|undoし|なかったことにし)"
    "(?:て|といて|ておいて)" + _JA_POLITE
)
_JA_LEAVE = lazy_regex(
    "(?:いや|いえ|やっぱり|やはり|もう|、)*(?:やめ(?:て|とく|ます|よう|る)|いらない|いりません|要らない|不要|結構です|中止|そのままで"
    "|しないで|なしで|キャンセル)"
)

_GREETING = lazy_regex(
    r"(?:hi|hello|hey|good (?:morning|afternoon|evening))\b|こんにちは|こんばんは|おはよう|はじめまして"
)
_FAREWELL = lazy_regex(r"\bbye\b|\bsee you\b|good night|さようなら")
_THANKS = lazy_regex(
    r"thank|\bthx\b|cheers|great|nice|cool|perfect|well done|wow|\bgood\b"
    r"|ありがと|どうも|サンキュー|すごい|いいね|助かり|お疲れ|おつかれ"
)

_JA_LEFT = lazy_regex(
    "(?:いや|いえ|やっぱり|やはり|もう|では|じゃあ|、)*(?:やめます|やめておきます|やめとく|やめときます|そのままで|このままで"
    "|いらない|いりません|結構|けっこう|今はいい)(?:いい|大丈夫|お願いします|です|よ|ね|。)*"
)

_WHOLE: tuple[tuple[PlainWish, re.Pattern[str]], ...] = (
    ("about", _ABOUT),
    ("changes", _CHANGES),
    ("undo", _UNDO),
    ("tests", _TESTS),
    ("talk", _TALK),
    ("leave", _LEFT),
    ("run", _RUN),
)
_JA_WHOLE: tuple[tuple[PlainWish, re.Pattern[str]], ...] = (
    ("about", _JA_ABOUT),
    ("changes", _JA_CHANGES),
    ("undo", _JA_UNDO),
    ("tests", _JA_TESTS),
    ("run", _JA_RUN),
    ("talk", _JA_TALK),
    ("leave", _JA_LEFT),
)
"""Wishes that a whole message expresses, in the order in which they are tried."""

_SHORT = 300
"""A longer message may tell a story around its request, so only the model can read it."""
_CLAUSES = lazy_regex(r"[,.;:!\n]\s+|\s+-\s+|\s+(?:and|then|but|so)\s+|[。！\n]|\?(?=.)")

_PARTS = lazy_regex(r"[,.;:!\n]\s+|\s+-\s+|\s+(?:and|then|but|so)\s+|[。、!,\n]|(?<=て)から")


def plain_wish(said: str) -> PlainWish | None:
    """Return what a short message plainly asks for; None if only the model can tell."""
    plain = unicodedata.normalize("NFKC", said).casefold().strip().rstrip(".!。~〜 ")
    if not plain or len(plain) >= _SHORT:
        return None
    return _japanese(plain) if re.search("[ぁ-んァ-ヶ]", plain) else _english(plain)


def asks_to_undo(said: str) -> bool:
    """Return whether a part of a message plainly asks to undo what was done."""
    plain = unicodedata.normalize("NFKC", said).casefold().strip()
    parts = (part.strip(" .!。~〜") for part in (plain, *_PARTS.split(plain)))
    return any(_UNDO.fullmatch(part) or _JA_UNDO.fullmatch(part) for part in parts if part)


def is_greeting(said: str) -> bool:
    """Return whether small talk greets."""
    return _GREETING.match(said.strip().casefold()) is not None


def is_farewell(said: str) -> bool:
    """Return whether small talk says goodbye."""
    return _FAREWELL.search(said.casefold()) is not None


def is_thanks(said: str) -> bool:
    """Return whether small talk thanks or praises."""
    return _THANKS.search(said.casefold()) is not None


def leaves_it(reason: str) -> bool:
    """Return whether the reason of a no says that nothing is wanted instead."""
    plain = unicodedata.normalize("NFKC", reason).casefold().strip()
    english = any(_LEAVE.match(clause) for clause in _CLAUSES.split(plain))
    return english or _JA_LEAVE.match(plain) is not None


def _english(plain: str) -> PlainWish | None:
    asks = plain.endswith("?")
    bare = plain.rstrip("?").strip()
    for wish, pattern in _WHOLE:
        if pattern.fullmatch(bare) and not (asks and wish == "talk"):
            return wish
    clauses = [clause.strip() for clause in _CLAUSES.split(bare) if clause.strip()]
    if any(_LARGE.match(clause) for clause in clauses) or _LARGE.match(bare):
        return "large"
    if _QUESTION.match(bare) or (asks and not _CHANGE.match(bare)):
        return "answer"
    demands = any(_CHANGE.match(clause) for clause in clauses)
    demands = demands or _DEMAND.search(bare) is not None or _BROKEN.search(bare) is not None
    return "change" if demands else None


def _japanese(plain: str) -> PlainWish | None:
    asks = plain.endswith("?")
    bare = plain.rstrip("?").strip()
    for wish, pattern in _JA_WHOLE:
        if pattern.fullmatch(bare):
            return wish
    if _JA_LARGE.search(bare):
        return "large"
    parts = [part.strip() for part in _CLAUSES.split(bare) if part.strip()]
    last = next((part for part in reversed(parts) if not _JA_TALK.fullmatch(part)), "")
    if not last:
        return "talk"
    if _JA_CHANGE.search(last):
        return "change"
    if not asks and _JA_BROKEN.search(last):
        return "change"
    return "answer" if asks or _JA_QUESTION.search(last) else None
