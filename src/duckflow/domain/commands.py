"""What a user interface may ask of the engine. The other way there are only events and glimpses."""

from duckflow.domain.frozen import Frozen


class Say(Frozen):
    """The user said something."""

    text: str


class AnswerApproval(Frozen):
    """The user's answer to the open approval."""

    yes: bool
    reason: str = ""


class Interrupt(Frozen):
    """Stop the work in hand, keep the session."""


Command = Say | AnswerApproval | Interrupt
