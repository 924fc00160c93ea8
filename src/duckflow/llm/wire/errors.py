"""Translate HTTP statuses and connection errors of providers to our errors."""

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, cast

from duckflow.domain.errors import PromptTooLong, ProviderError, ToolsUnsupported, Unavailable
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.text import one_line
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.wire.window_errors import read_too_long

REFUSED = "llm.refused_request"
"""Error key of a request that the provider rejects as invalid; `detail` holds the provider's reason."""

DETAIL_CHARACTERS = 300
SECRET_LENGTH = 8
"""Least length of a secret key. A shorter one is a placeholder, and hiding it would garble the message."""

_TOOLS = lazy_regex(r"\b(tool|function)s?\b|\btool[ _-]?(use|calls?|calling|choice)\b|\bfunction[ _-]?call")
_NOT_TAKEN = lazy_regex(
    r"not support|unsupported|n't support|not enabled|requires? --|no endpoints|unknown field"
)


def status_failure(
    endpoint: Endpoint, status: int, body: str = "", wait_s: float | None = None
) -> ProviderError:
    """Return our error for an HTTP status, or for a status inside a stream."""
    provider, address = endpoint.provider.name, endpoint.shown_address
    detail = _detail(body, endpoint.key)
    too_long = read_too_long(status, body)
    if too_long is not None:
        model, window, asked = endpoint.name, too_long.window, too_long.asked
        return PromptTooLong("llm.prompt_too_long", window=window, asked=asked, model=model, detail=detail)
    if status in (401, 403):
        variable = endpoint.provider.key_variables[0]
        return ProviderError("llm.wrong_key", provider=provider, variable=variable, detail=detail)
    if status == 402 or (status == 429 and "insufficient_quota" in body):
        return ProviderError("llm.no_credit", provider=provider, detail=detail)
    if status != 429 and _refuses_tools(detail.lower()):
        return ToolsUnsupported("llm.tools_unsupported", model=endpoint.name, detail=detail)
    if status == 404 or (status == 400 and '"model_not_found"' in body):
        return ProviderError("llm.unknown_model", model=endpoint.model, address=address)
    if status == 429:
        return Unavailable("llm.rate_limited", retry_after_s=wait_s, provider=provider)
    if status >= 500 or status in (408, 409, 425) or "tool_use_failed" in body:
        return Unavailable(
            "llm.server_error", retry_after_s=wait_s, provider=provider, status=status, detail=detail
        )
    if status < 400:
        return ProviderError("llm.redirected", address=address, status=status)
    return ProviderError(REFUSED, provider=provider, status=status, detail=detail)


def not_understood(endpoint: Endpoint, said: str) -> ProviderError:
    """Return our error for an answer that is not in the wire's format."""
    return ProviderError("llm.not_understood", address=endpoint.shown_address, detail=plain(said))


def lost(
    key: str, endpoint: Endpoint, exc: Exception, error: type[ProviderError] = Unavailable
) -> ProviderError:
    """Return our error for a connection that failed or broke off."""
    return error(key, address=endpoint.shown_address, detail=plain(str(exc) or type(exc).__name__))


def wait_of(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait that an error's headers ask for, or None.

    Reads `retry-after-ms`, `retry-after`, and the reset times of exhausted limits (`_LIMITS`).
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    if headers.get("retry-after"):
        return _until(headers["retry-after"])
    waits = (_until(headers.get(reset, "")) for left, reset in _LIMITS if _number(headers.get(left, "")) == 0)
    return max((wait for wait in waits if wait is not None), default=None)


_KINDS = ("requests", "tokens", "input-tokens", "output-tokens")
_LIMITS = (
    *((f"x-ratelimit-remaining-{kind}", f"x-ratelimit-reset-{kind}") for kind in _KINDS),
    *((f"anthropic-ratelimit-{kind}-remaining", f"anthropic-ratelimit-{kind}-reset") for kind in _KINDS),
)
"""Pairs of headers: the remainder of a rate limit, and the time of its reset."""
_DURATION = lazy_regex(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def _until(said: str) -> float | None:
    """Return the seconds until a time given as a duration (`6m0s`, `20ms`, `7.66`) or as a date."""
    parts = _DURATION.findall(said)
    if parts and "".join(number + unit for number, unit in parts) == said:
        return sum(float(number) * _SECONDS[unit] for number, unit in parts)
    seconds = _number(said)
    if seconds is not None or not said:
        return seconds
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - rarely needed, slow to import

    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        with suppress(ValueError, OverflowError, TypeError):  # a date without a time zone can't be compared
            return max((parse(said) - datetime.now(UTC)).total_seconds(), 0.0)
    return None


def _number(said: str) -> float | None:
    try:
        number = float(said)
    except ValueError:
        return None
    return max(number, 0.0) if math.isfinite(number) else None


def _refuses_tools(said: str) -> bool:
    """Return True if a server accepts no tools at all. A fallback covers refusals of tools with thinking."""
    return bool(_TOOLS.search(said) and _NOT_TAKEN.search(said)) and "reasoning" not in said


def _detail(body: str, key: str) -> str:
    """Return the provider's message from any field of its answer, with the key hidden."""
    try:
        said = _message(json.loads(body)) or body
    except (ValueError, RecursionError):
        said = body
    return plain(said.replace(key, "…") if len(key) >= SECRET_LENGTH else said)


def _message(value: object) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False) if value else ""
    fields = cast("dict[str, Any]", value)
    said = next((_message(fields[name]) for name in ("error", "message", "detail") if fields.get(name)), "")
    parameter, metadata = fields.get("param"), fields.get("metadata")
    if isinstance(parameter, str) and parameter not in said:
        said = f"{said} ({parameter})"
    if isinstance(metadata, dict):  # a relaying service adds the original provider's message
        said = f"{said} {cast('dict[str, Any]', metadata).get('raw') or ''}".strip()
    return said


def plain(text: str) -> str:
    """Return the text as one short line without control characters, safe to print on a terminal."""
    line = "".join(
        character if character.isprintable() else " " for character in text[: 4 * DETAIL_CHARACTERS]
    )
    return one_line(line, DETAIL_CHARACTERS)
