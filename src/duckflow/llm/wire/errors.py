"""What can go wrong between us and a provider, as one table: status or exception in, our error out."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from duckflow.domain.errors import PromptTooLong, ProviderError, ToolsUnsupported, Unavailable
from duckflow.domain.patterns import late
from duckflow.domain.text import one_line
from duckflow.llm.wire.endpoints import Endpoint
from duckflow.llm.wire.window_errors import read_too_long

REFUSED = "llm.refused_request"
"""The key of a request the provider finds wrong; its `detail` says what."""

DETAIL_CHARACTERS = 300
SECRET_LENGTH = 8
"""A shorter key is a placeholder; replacing it would only garble the sentence."""

_TOOLS = late(r"\b(tool|function)s?\b|\btool[ _-]?(use|calls?|calling|choice)\b|\bfunction[ _-]?call")
_NOT_TAKEN = late(r"not support|unsupported|n't support|not enabled|requires? --|no endpoints|unknown field")


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
    if status != 429 and _refuses_tools(detail.lower()):
        return ToolsUnsupported("llm.tools_unsupported", model=endpoint.name, detail=detail)
    if status == 404 or (status == 400 and '"model_not_found"' in body):
        return ProviderError("llm.unknown_model", model=endpoint.model, address=address)
    if status == 429:
        return Unavailable("llm.rate_limited", retry_after_s=seconds_to_wait(retry_after), provider=provider)
    if status >= 500 or status in (408, 409, 425) or "tool_use_failed" in body:
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


def wait_of(headers: Mapping[str, str]) -> str | None:
    """The wait that the headers of a refusal ask for, in the form of Retry-After; None if they say nothing.

    Besides that header itself there are its milliseconds, and the time at which a limit that is used up is
    renewed: `x-ratelimit-reset-requests: 6m0s`, `anthropic-ratelimit-tokens-reset: 2026-11-18T22:00:00Z`.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return str(milliseconds / 1000)
    if headers.get("retry-after"):
        return headers["retry-after"]
    waits = (_until(headers.get(reset, "")) for left, reset in _LIMITS if _number(headers.get(left, "")) == 0)
    longest = max((wait for wait in waits if wait is not None), default=None)
    return None if longest is None else str(longest)


_KINDS = ("requests", "tokens", "input-tokens", "output-tokens")
_LIMITS = (
    *((f"x-ratelimit-remaining-{kind}", f"x-ratelimit-reset-{kind}") for kind in _KINDS),
    *((f"anthropic-ratelimit-{kind}-remaining", f"anthropic-ratelimit-{kind}-reset") for kind in _KINDS),
)
"""Headers that say how much is left of a limit, and when it is renewed."""
_DURATION = late(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def _until(said: str) -> float | None:
    """Seconds until a time that is said as a duration (`6m0s`, `20ms`, `7.66`) or as a date."""
    parts = _DURATION.findall(said)
    if parts and "".join(number + unit for number, unit in parts) == said:
        return sum(float(number) * _SECONDS[unit] for number, unit in parts)
    seconds = _number(said)
    if seconds is not None:
        return seconds
    try:
        return max((datetime.fromisoformat(said) - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, TypeError):  # a date without its zone can't be compared
        return None


def _number(said: str) -> float | None:
    try:
        number = float(said)
    except ValueError:
        return None
    return max(number, 0.0) if math.isfinite(number) else None


def _refuses_tools(said: str) -> bool:
    """Tell whether a server takes no tools at all. If it takes them without thinking, a fallback helps."""
    return bool(_TOOLS.search(said) and _NOT_TAKEN.search(said)) and "reasoning" not in said


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
    said = next((_message(fields[name]) for name in ("error", "message", "detail") if fields.get(name)), "")
    parameter, metadata = fields.get("param"), fields.get("metadata")
    if isinstance(parameter, str) and parameter not in said:
        said = f"{said} ({parameter})"
    if isinstance(metadata, dict):  # a relay's words are followed by those of the provider behind it
        said = f"{said} {cast('dict[str, Any]', metadata).get('raw') or ''}".strip()
    return said


def plain(text: str) -> str:
    """One short line: what a provider says is shown, but can't move the cursor."""
    line = "".join(
        character if character.isprintable() else " " for character in text[: 4 * DETAIL_CHARACTERS]
    )
    return one_line(line, DETAIL_CHARACTERS)
