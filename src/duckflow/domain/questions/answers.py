"""What a user interface may ask of the engine. The other way there are only events and glimpses."""

from duckflow.domain.frozen import Frozen


class AnswerApproval(Frozen):
    """The user's answer to the open approval."""

    yes: bool
    reason: str = ""
    always: bool = False
    """Whether the yes holds for all of this kind, as long as the session is open."""
    edited: str | None = None
    """What shall be written or run instead; a yes to exactly this."""


class ChooseWay(Frozen):
    """The user's answer to the open consultation: one of its choices, or only words of their own."""

    choice: str = ""
    text: str = ""
