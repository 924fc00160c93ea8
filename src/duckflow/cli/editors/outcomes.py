"""Outcome and usage of a turn, as an editor gets them."""

from collections.abc import Mapping

from acp import schema

from duckflow.domain.model import Usage
from duckflow.domain.questions.consultation import Consultation
from duckflow.domain.state import AgentState

_STOPS: Mapping[str, schema.StopReason] = {
    "llm.declined": "refusal",
    "llm.still_cut": "max_tokens",
    "llm.thought_only_still": "max_tokens",
    "llm.content_cut": "max_tokens",
}
"""Stop reasons of errors, by catalogue key. After any other error of a model, the request has failed."""

_LIMIT = "consultation.because.limit"


def stop_after_error(key: str) -> schema.StopReason | None:
    """Return the stop reason for a model's error; None if the protocol has no reason for it."""
    return _STOPS.get(key)


def stop_at_question(asked: Consultation | None) -> schema.StopReason:
    """Return the stop reason for a turn that ended well, or at a question about a used-up limit."""
    if asked is None:
        return "end_turn"
    if asked.situation.endswith("_budget"):
        return "max_tokens"
    used_up = asked.situation.endswith("_limit") or any(one.key == _LIMIT for one in asked.findings)
    return "max_turn_requests" if used_up else "end_turn"


def tokens_of(state: AgentState) -> Usage:
    """Return all tokens that a session has used."""
    total = Usage()
    for used in state.usage.values():
        total += used.tokens
    return total


def turn_usage(before: Usage, after: Usage) -> schema.Usage:
    """Return the tokens used between two points of a session."""
    used = Usage(**{name: count - getattr(before, name) for name, count in after})
    return schema.Usage(
        total_tokens=used.input_tokens + used.output_tokens,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        thought_tokens=used.thinking_tokens,
        cached_read_tokens=used.cached_tokens,
        cached_write_tokens=used.cache_written_tokens,
    )


def usage_update(state: AgentState, window: int) -> schema.UsageUpdate:
    """Return how full the context is, and the cost of the session if all prices are known."""
    costs = [used.cost_usd for used in state.usage.values()]
    known = [cost for cost in costs if cost is not None]
    cost = schema.Cost(amount=sum(known), currency="USD") if known and len(known) == len(costs) else None
    return schema.UsageUpdate(session_update="usage_update", used=state.prompt_tokens, size=window, cost=cost)
