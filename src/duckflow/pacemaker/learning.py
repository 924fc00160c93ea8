"""What earlier requests teach about how many loops a kind of task takes (SPEC I11). Pure.

The base moves toward what was really used, never far from the table, and only once there is enough to go by.
"""

from collections.abc import Sequence

from duckflow.config.pacing import Learning

ROOM = 1.5
"""A request is given half as much again as most of its kind have used."""

MOST = 0.75
"""The share of earlier requests that counts as most."""


def learned_base(base: int, used: Sequence[int], learning: Learning) -> int:
    """The loops to start from for a kind of task, from those that done requests of this kind used."""
    if not learning.enabled or len(used) < learning.least_requests:
        return base
    in_order = sorted(used)
    usual = in_order[int(MOST * (len(in_order) - 1))]
    lowest, highest = round(base * (1 - learning.reach)), round(base * (1 + learning.reach))
    return min(max(round(usual * ROOM), lowest), highest)
