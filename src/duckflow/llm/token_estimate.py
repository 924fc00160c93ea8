"""Estimate the tokens of a text without the model's tokenizer, rather too high than too low (F4)."""

import json

from duckflow.domain.model import PICTURE_TOKENS, ModelRequest
from duckflow.domain.patterns import lazy_regex

_PIECE = lazy_regex(
    r" ?[A-Z]?[a-z]{1,5}| ?[A-Z]{1,2}"  # words; long and camelCase ones in parts
    r"|[0-9]"  # some tokenizers make each digit a token
    r"| ?[!-/:-@\[-`{-~]{1,2}"
    r"|[\t\r\n]{1,2}| +"
    r"|[^\t\r\n -~]"  # Japanese and other scripts: one token per character
)
"""Pattern whose matches are about one token each; the tests compare it with four tokenizers."""

_KANJI = lazy_regex(r"[\u3400-\u9fff\uf900-\ufaff]")
_TWICE = lazy_regex(r"[\U00010000-\U0010ffff\u0e00-\u0e7f\u2190-\u23ff\u2600-\u2bff\ufe00-\ufe0f\u200d]")
"""Emoji, their joiners, symbols, Thai: two tokens per character."""


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text, rather too many than too few."""
    tokens = 1 + len(_PIECE.findall(text))
    return tokens if text.isascii() else tokens + len(_KANJI.findall(text)) // 3 + len(_TWICE.findall(text))


def estimate_request(request: ModelRequest) -> int:
    """Estimate the tokens of a request: messages, pictures, calls and tool definitions."""
    tokens = 0
    for message in request.messages:
        tokens += estimate_tokens(message.text) + PICTURE_TOKENS * len(message.pictures)
        tokens += sum(estimate_tokens(call.arguments) for call in message.calls)
    offered = (f"{tool.name} {tool.description} {json.dumps(tool.parameters)}" for tool in request.tools)
    return tokens + sum(map(estimate_tokens, offered))
