"""Live updates, shown while something is in progress. They are not stored; a stored event follows."""

from duckflow.domain.frozen import Frozen


class ReplyPiece(Frozen):
    """Part of a reply while it is written. Not stored: an event with the whole reply follows."""

    text: str


class ReplyVoid(Frozen):
    """The parts of the reply shown so far must be removed, because the model is asked again."""


class ThinkingShown(Frozen):
    """Part of the model's readable thinking while it thinks."""

    text: str


class Writing(Frozen):
    """The model has written `size` bytes that are not shown yet, such as part of a file."""

    size: int


class Waiting(Frozen):
    """The model is asked again, after `wait_s` seconds if given. `reason` is a catalogue key."""

    reason: str
    wait_s: float | None = None


class OutputPiece(Frozen):
    """Output of a running command. Not stored: an event with the command's result follows."""

    text: str


LiveUpdate = ReplyPiece | ReplyVoid | ThinkingShown | Writing | Waiting | OutputPiece
