"""How complex the work in hand is, from what can be counted (SPEC I3)."""

from duckflow.config.pacing import ComplexityScale
from duckflow.domain.frozen import Frozen


class Counted(Frozen):
    """What was counted: files looked at, messages of the conversation, actions, and those that failed."""

    files: int = 0
    messages: int = 0
    errors: int = 0
    actions: int = 0


def measure(counted: Counted, scale: ComplexityScale) -> float:
    """Complexity in 0..1: the mean of its three parts, each at most 1."""
    if not (counted.files or counted.messages or counted.actions):
        return scale.when_unknown
    rate = counted.errors / counted.actions if counted.actions else 0.0
    parts = (
        counted.files / scale.most_files,
        counted.messages / scale.most_messages,
        scale.error_weight * rate,
    )
    return sum(min(part, 1.0) for part in parts) / len(parts)
