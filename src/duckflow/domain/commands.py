"""Commands that other windows send to the process that owns a session: several may watch, one works.

An answer names its question by the hash of what was shown, so that no user answers a question they did not
see. Of two answers, the first counts.
"""

import hashlib
from typing import Annotated, Literal

from pydantic import Field

from duckflow.domain.frozen import Frozen
from duckflow.domain.model import EffortChoice
from duckflow.domain.modes import Mode
from duckflow.domain.questions.approval import AnswerApproval, Approval
from duckflow.domain.questions.consultation import ChooseWay, Consultation
from duckflow.domain.state import AgentState


class SayMessage(Frozen):
    """A user message: a new request, or an addition to the one that waits."""

    kind: Literal["say"] = "say"
    text: Annotated[str, Field(min_length=1, max_length=200_000)]


class AnswerShown(Frozen):
    """The user's answer to an approval; `shown` is the `hash_of` the question."""

    kind: Literal["answer"] = "answer"
    shown: str
    answer: AnswerApproval


class ChooseShown(Frozen):
    """The user's answer to a consultation; `shown` is the `hash_of` the question."""

    kind: Literal["choose"] = "choose"
    shown: str
    way: ChooseWay


class CancelWork(Frozen):
    """Stop the current work."""

    kind: Literal["cancel"] = "cancel"


class UndoWork(Frozen):
    """Undo changes: a number of actions, "all" of the last request, or "redo"."""

    kind: Literal["undo"] = "undo"
    wanted: Annotated[str, Field(max_length=10)] = ""


RewindPart = Literal["both", "conversation", "files"]


class RewindWork(Frozen):
    """Return to the point before the message event `before`: the conversation, the files, or both."""

    kind: Literal["rewind"] = "rewind"
    before: int
    part: RewindPart = "both"


class SetMode(Frozen):
    """Change how often the user is asked for permission."""

    kind: Literal["mode"] = "mode"
    mode: Mode


class SetEffort(Frozen):
    """Change how much the models think."""

    kind: Literal["effort"] = "effort"
    effort: EffortChoice


ClientCommand = Annotated[
    SayMessage | AnswerShown | ChooseShown | CancelWork | UndoWork | RewindWork | SetMode | SetEffort,
    Field(discriminator="kind"),
]


def hash_of(question: Approval | Consultation) -> str:
    """Return a hash of everything that was shown of a question."""
    return hashlib.sha256(question.model_dump_json().encode("utf-8", "surrogatepass")).hexdigest()


def objection_to(command: "AnswerShown | ChooseShown", state: AgentState) -> str | None:
    """Return why an answer does not count, as a catalogue key; None if it does."""
    if isinstance(command, ChooseShown):
        asked = None if state.approval else state.consultation
        known = asked is not None and (not command.way.choice or command.way.choice in asked.choices)
        said = bool(command.way.choice or command.way.text.strip())
    else:
        asked = state.approval
        known = asked is not None and not (command.answer.always and asked.kind is None)
        said = command.answer.edited is None  # an edited action differs from the one that was shown
    if asked is None or hash_of(asked) != command.shown:
        return "clients.stale"
    return None if known and said else "clients.not_offered"
