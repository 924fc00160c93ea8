"""When a request is evaluated at all (SPEC J1)."""

from duckflow.domain.decision import TaskProfile

TALK: tuple[TaskProfile, ...] = ("general_chat", "simple_question")
"""Profiles of requests that are over once they are answered."""


def needs_evaluation(
    profile: TaskProfile | None,
    *,
    changed_anything: bool,
    ran_anything: bool,
    looked_at_anything: bool = False,
) -> bool:
    """Whether a request that its model calls done must be judged first.

    What changed or ran something always is. Talk is not. Where the profile is unknown, a bare reply counts as
    talk, and one that looked something up does not.
    """
    if changed_anything or ran_anything:
        return True
    if profile is None:
        return looked_at_anything
    return profile not in TALK
