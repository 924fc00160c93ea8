"""Recognise errors about a prompt that is too long, and read the size of the window from them (K7).

Providers use different statuses and codes, so the text of the message decides and has the numbers.
"""

from collections.abc import Iterable
from re import Pattern
from typing import NamedTuple

from duckflow.domain.patterns import lazy_regex

_STATUSES = (400, 413, 422, 429, 500)
_TOO_LARGE = 413

_LEAST, _MOST = 256, 100_000_000
"""Range of plausible windows. Other numbers are error codes or lengths of lists."""

_SAYS_SO = lazy_regex(
    r"context[_ ]length[_ ]exceeded|exceed_context_size|string_above_max_length|tokens_limit_reached"
    r"|max_prompt_tokens_exceeded|context_window_exceeded"
    r"|max(?:imum)? (?:context|prompt|model|sequence|input) (?:length|size|window)"
    r"|maximum allowed (?:token|input) (?:size|length)|model token limit|total tokens limit"
    r"|(?:exceed|overflow|beyond|longer|greater|larger)[^.]{0,60} "
    r"(?:context|model) (?:length|size|window|limit)"
    r"|context (?:the |length |size |window |limit )?(?:overflow|exceed)"
    r"|(?:input|prompt) token(?:s|count| count)[^.]{0,40} exceed|prompt exceeds max length"
    r"|(?:prompt|input|messages?)(?: is| are)? too (?:long|large)"
    r"|prompt contains [\d,]+ tokens|too many (?:input )?tokens: size limit|must have less than [\d,]+ tokens"
    r"|range of input length|`?inputs`? tokens \+ `?max_new_tokens"
    r"|reduce the length of (?:the|your) (?:messages|prompt|input)"
    r"|request (?:body )?too large for"
)
"""Phrases in errors about a too long prompt, in lower case."""

_RATE = lazy_regex(r"tokens per|\btpm\b|rate_limit|rate limit")
_N = r"(\d[\d,_]*)"
_WINDOWS = tuple(
    lazy_regex(pattern)
    for pattern in (
        rf'"n_ctx"\s*:\s*{_N}',
        rf"> {_N}",
        rf"\ballowed (?:token|input) (?:size|length)[ (:]*(?:of )?{_N}",
        rf"maximum number of tokens allowed[ (:]*{_N}",
        rf"{_N}(?: tokens?)? max(?:imum)?\b(?! (?:new|output|completion))",
        rf"\b(?:context|prompt|model|sequence|input) (?:length|size|window|limit)\b"
        rf"(?: of the model| allowed)?(?: is|:| of)*(?: only| at most)? *\(?{_N}",
        rf"(?:must be <=|must have less than|max size:) *{_N}",
        rf"\[1, ?{_N}\]",
        rf"\blimit(?: for this model)?(?: is|:| of)? *\(?{_N}",
    )
)
"""Patterns for the size of the window, the most reliable first."""

_PROMPTS = tuple(
    lazy_regex(pattern)
    for pattern in (
        rf'"n_prompt_tokens"\s*:\s*{_N}',
        rf"\({_N}(?: tokens)? in the (?:messages|prompt)",
        rf"\(?{_N} (?:tokens )?(?:of text input|from the input)",
        rf"(?:messages resulted in|you passed|request has|request contains|prompt contains) {_N}",
        rf"token count(?: of)? *\(?{_N}",
        rf"too long:? *\(?{_N}",
        rf"context limit: {_N} \+",
        rf"(?:keep the first|current length is|\(length|input length|input tokens) *{_N}",
        rf"(?:request|input|prompt) \({_N} tokens\)",
        rf"\bgiven: {_N}",
    )
)
"""Patterns for the size of the prompt, without the room for the answer that some errors add to it."""

_REQUESTED = lazy_regex(rf"\brequested:? *(?:about |a total of )?{_N}")


class TooLong(NamedTuple):
    """Sizes of the window and of the prompt in the provider's tokens; None if the error has no number."""

    window: int | None = None
    asked: int | None = None


def read_too_long(status: int, body: str) -> TooLong | None:
    """Return the sizes in an error about a too long prompt; None if the error has another reason."""
    said = body.lower()
    if status not in _STATUSES or not (status == _TOO_LARGE or _SAYS_SO.search(said)):
        return None
    found = TooLong(_number(_WINDOWS, said), _number(_PROMPTS, said))
    if status == _TOO_LARGE or not _RATE.search(said):
        return found
    # Exceeding a limit of tokens per minute counts only if waiting would not help.
    requested = _number((_REQUESTED,), said)
    return found if found.window and requested and requested > found.window else None


def _number(patterns: Iterable[Pattern[str]], said: str) -> int | None:
    for pattern in patterns:
        for match in pattern.finditer(said):
            number = int(match[1].replace(",", "").replace("_", ""))
            if _LEAST <= number <= _MOST:
                return number
    return None
