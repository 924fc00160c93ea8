"""Live updates: shown while something is in progress. They are not stored; an event follows."""

from duckflow.domain.frozen import Frozen


class ReplyPiece(Frozen):
    """Part of a reply while it is written. Not an event: the whole reply follows as one."""

    text: str


class ReplyVoid(Frozen):
    """The pieces shown so far are void: the model is asked again."""


class ThinkingShown(Frozen):
    """Part of the model's readable thinking while it thinks."""

    text: str


class Waiting(Frozen):
    """The model is asked again, after `wait_s` if the provider needs time. `reason` is a catalogue key."""

    reason: str
    wait_s: float | None = None


class OutputPiece(Frozen):
    """Output of a running command as it arrives. Not an event: the command's result follows as one."""

    text: str


LiveUpdate = ReplyPiece | ReplyVoid | ThinkingShown | Waiting | OutputPiece
