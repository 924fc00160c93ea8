"""Which texts in memory speak of the same things as a request, in languages with and without spaces."""

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence

from duckflow.domain.patterns import late
from duckflow.domain.work.memory import Memory

# Kanji, katakana and hangul carry the meaning; hiragana is mostly grammar.
_DENSE = late(r"[\u3400-\u4dbf\u4e00-\u9fff々\u30a1-\u30fa\u30fcー\uac00-\ud7af]+")
_WORD = late(r"[^\W_\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]{2,}")
_EMPTY = late(
    "an|and|are|as|at|be|but|by|can|could|did|do|does|for|from|had|has|have|how|if|in|into|is|it|its|me|my|no|not"
    "|of|on|or|our|out|please|should|so|that|the|their|them|then|there|these|they|this|to|up|us|was|we|what|when"
    "|where|which|who|why|will|with|would|you|your"
)
_ENDING = late(r"(?<=\w{3})(ing|ed|es|e|(?<!s)s)$")
"""What test, tests, tested and testing differ in; rough, and the same on both sides."""


def terms_of(text: str) -> frozenset[str]:
    """What a text speaks of: its words, and pairs of letters where words are not divided."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    words = {_ENDING.sub("", word) for word in _WORD.findall(plain) if not _EMPTY.fullmatch(word)}
    for run in _DENSE.findall(plain):
        words |= {run[at : at + 2] for at in range(len(run) - 1)} or {run}
    return frozenset(words)


def ranked(memories: Sequence[Memory], wanted: str) -> list[Memory]:
    """Those that share something with `wanted`, the nearest first. What few of them speak of counts more."""
    terms = [terms_of(one.text) for one in memories]
    spread = Counter(term for found in terms for term in found)
    asked = terms_of(wanted)
    scored = [
        (sum(math.log(1 + len(memories) / spread[term]) for term in found & asked), one)
        for found, one in zip(terms, memories, strict=True)
    ]
    near = [(score, one) for score, one in scored if score > 0]
    return [one for _, one in sorted(near, key=lambda pair: (-pair[0], -pair[1].id))]
