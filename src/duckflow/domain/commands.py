"""What other windows on a session ask of the process that has it open: several may look, one works.

An answer names the question it was given to by the hash of what was shown, so that nobody answers
something they did not see, and of two answers the first counts.
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
    """A message: a new request, or more on the one that waits."""

    kind: Literal["say"] = "say"
    text: Annotated[str, Field(min_length=1, max_length=200_000)]


class AnswerShown(Frozen):
    """The answer to an approval; `shown` is `hash_of` the question."""

    kind: Literal["answer"] = "answer"
    shown: str
    answer: AnswerApproval


class ChooseShown(Frozen):
    """The answer to a consultation, bound in the same way."""

    kind: Literal["choose"] = "choose"
    shown: str
    way: ChooseWay


class CancelWork(Frozen):
    """Stop what is being done."""

    kind: Literal["cancel"] = "cancel"


class UndoWork(Frozen):
    """Take changes back: a number of actions, "all" of the last request, or "redo"."""

    kind: Literal["undo"] = "undo"
    wanted: Annotated[str, Field(max_length=10)] = ""


RewindPart = Literal["both", "conversation", "files"]


class RewindWork(Frozen):
    """Go back to before a message, named by its event, with the conversation, the files, or both."""

    kind: Literal["rewind"] = "rewind"
    before: int
    part: RewindPart = "both"


class SetMode(Frozen):
    """Ask more, or less, from now on."""

    kind: Literal["mode"] = "mode"
    mode: Mode


class SetEffort(Frozen):
    """Let models think more, or less, from now on."""

    kind: Literal["effort"] = "effort"
    effort: EffortChoice


ClientCommand = Annotated[
    SayMessage | AnswerShown | ChooseShown | CancelWork | UndoWork | RewindWork | SetMode | SetEffort,
    Field(discriminator="kind"),
]


def hash_of(question: Approval | Consultation) -> str:
    """Stands for all that was shown of a question."""
    return hashlib.sha256(question.model_dump_json().encode("utf-8", "surrogatepass")).hexdigest()


def objection_to(command: "AnswerShown | ChooseShown", state: AgentState) -> str | None:
    """Why an answer does not count, as a catalogue key; None if it does."""
    if isinstance(command, ChooseShown):
        asked = None if state.approval else state.consultation
        known = asked is not None and (not command.way.choice or command.way.choice in asked.choices)
        said = bool(command.way.choice or command.way.text.strip())
    else:
        asked = state.approval
        known = asked is not None and not (command.answer.always and asked.kind is None)
        said = command.answer.edited is None  # what was shown is not what would be done
    if asked is None or hash_of(asked) != command.shown:
        return "clients.stale"
    return None if known and said else "clients.not_offered"
