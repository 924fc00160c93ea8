"""What can go wrong between us and a provider, as one table: status or exception in, our error out."""

import json
import math
from datetime import UTC, datetime
from typing import Any, cast

from duckflow.domain.errors import PromptTooLong, ProviderError, Unavailable
from duckflow.domain.text import one_line
from duckflow.llm.wire.endpoints import Endpoint
from duckflow.llm.wire.window_errors import read_too_long

REFUSED = "llm.refused_request"
"""The key of a request the provider finds wrong; its `detail` says what."""

DETAIL_CHARACTERS = 300
SECRET_LENGTH = 8
"""A shorter key is a placeholder; replacing it would only garble the sentence."""


def status_failure(
    endpoint: Endpoint, status: int, body: str = "", retry_after: str | None = None
) -> ProviderError:
    """Our error for an HTTP status, or for the same number inside a stream."""
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
    if status == 404:
        return ProviderError("llm.unknown_model", model=endpoint.model, address=address)
    if status == 429:
        return Unavailable("llm.rate_limited", retry_after_s=seconds_to_wait(retry_after), provider=provider)
    if status >= 500 or status in (408, 409, 425):
        wait = seconds_to_wait(retry_after)
        return Unavailable(
            "llm.server_error", retry_after_s=wait, provider=provider, status=status, detail=detail
        )
    if status < 400:
        return ProviderError("llm.redirected", address=address, status=status)
    return ProviderError(REFUSED, provider=provider, status=status, detail=detail)


def not_understood(endpoint: Endpoint, said: str) -> ProviderError:
    """Our error for an answer that is not in the wire's format."""
    return ProviderError("llm.not_understood", address=endpoint.shown_address, detail=plain(said))


def lost(
    key: str, endpoint: Endpoint, exc: Exception, error: type[ProviderError] = Unavailable
) -> ProviderError:
    """Our error for a connection that could not be had, or did not hold."""
    return error(key, address=endpoint.shown_address, detail=plain(str(exc) or type(exc).__name__))


def seconds_to_wait(retry_after: str | None) -> float | None:
    """A Retry-After header, given as seconds or as a date; nonsense counts as not said."""
    if not retry_after:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        from email.utils import parsedate_to_datetime  # noqa: PLC0415 - seldom needed, and brings much along

        try:
            at = parsedate_to_datetime(retry_after)
            seconds = (at.astimezone(UTC) - datetime.now(UTC)).total_seconds()
        except (ValueError, OverflowError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _detail(body: str, key: str) -> str:
    """The provider's own sentence, wherever in the answer it stands, without the key it may repeat."""
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
    for name in ("error", "message", "detail"):
        if fields.get(name):
            return _message(fields[name])
    return ""


def plain(text: str) -> str:
    """One short line: what a provider says is shown, but can't move the cursor."""
    line = "".join(
        character if character.isprintable() else " " for character in text[: 4 * DETAIL_CHARACTERS]
    )
    return one_line(line, DETAIL_CHARACTERS)
