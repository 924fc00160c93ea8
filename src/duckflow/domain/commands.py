"""Everything a client can ask of a session, as data: one process has it open, and carries all of it out.

An answer names its question by the hash of what was shown, so that no client answers something that its
user did not see. Of two answers, the first counts.
"""

import hashlib
from typing import Annotated, Literal, NamedTuple, TypeGuard

from pydantic import Field

from duckflow.domain.files.changes import UndoReport
from duckflow.domain.frozen import Frozen
from duckflow.domain.model import EffortChoice
from duckflow.domain.modes import Mode
from duckflow.domain.questions.approval import AnswerApproval, Approval
from duckflow.domain.questions.consultation import ChooseWay, Consultation
from duckflow.domain.state import AgentState
from duckflow.domain.work.outcomes import RequestOutcome


class SayMessage(Frozen):
    """A user message: a new request, or an addition to the one that waits."""

    kind: Literal["say"] = "say"
    text: str


class AnswerShown(Frozen):
    """The user's answer to an approval; `question_hash` is the `hash_of` it."""

    kind: Literal["answer"] = "answer"
    question_hash: str
    answer: AnswerApproval


class ChooseShown(Frozen):
    """The user's answer to a consultation; `question_hash` is the `hash_of` it."""

    kind: Literal["choose"] = "choose"
    question_hash: str
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


_Sendable = SayMessage | AnswerShown | ChooseShown | CancelWork | UndoWork | RewindWork | SetMode | SetEffort
ClientCommand = Annotated[_Sendable, Field(discriminator="kind")]
"""Commands that other processes and pages may send."""


class AnswerInWords(Frozen):
    """The answer to the open question as it was typed; unclear words are asked again."""

    question_hash: str
    text: str


class DeclineAndStop(Frozen):
    """A no to the open approval, after which nothing goes on."""

    question_hash: str


class ContinueWork(Frozen):
    """Ask the open question again; without one, work on the open request."""


class AskAboutUnknown(Frozen):
    """Ask the user about actions of which it is not known if they happened."""

    what: str


class RunShellCommand(Frozen):
    """Run a shell command of the user's own, who needs no permission."""

    command: str


class StopBackground(Frozen):
    """Stop the background: its tasks at once, commands that go on in their turn."""


class RateRequest(Frozen):
    """Record how the user liked the last request, from 1 to 10."""

    rating: int


class SetModel(Frozen):
    """Think with another model from now on."""

    name: str


class ForkSession(Frozen):
    """Begin a new session as this one is, or was before a message, which is named by its event."""

    before: int | None = None


class ForgetMemories(Frozen):
    """Delete memories by number."""

    numbers: tuple[int, ...]


SessionCommand = (_Sendable | AnswerInWords | DeclineAndStop | ContinueWork | AskAboutUnknown) | (
    RunShellCommand | StopBackground | RateRequest | SetModel | ForkSession | ForgetMemories
)
"""Commands of a client in the process that has the session open."""


class SessionResult(NamedTuple):
    """What came of a command."""

    objection: str = ""
    """Why it was not carried out, as a catalogue key."""
    outcome: RequestOutcome | None = None
    """How the work that it started ended."""
    report: UndoReport | None = None
    session_id: str = ""
    """The session that a fork began."""
    forgotten: int = 0


def is_sendable(command: SessionCommand) -> TypeGuard[ClientCommand]:
    """True if other processes may send it."""
    return isinstance(command, _Sendable)


def hash_of(question: Approval | Consultation) -> str:
    """Return a hash of everything that was shown of a question."""
    return hashlib.sha256(question.model_dump_json().encode("utf-8", "surrogatepass")).hexdigest()


def objection_to(command: SessionCommand, state: AgentState, *, guest: bool = True) -> str:
    """Return why an answer does not count, as a catalogue key; empty if it does, or is no answer.

    A guest may not change what would be done: its user has not seen all of it.
    """
    match command:
        case AnswerInWords() | DeclineAndStop():
            asked = state.question
            offered = True
        case AnswerShown(answer=answer):
            asked = state.approval
            offered = asked is not None and not (answer.always and asked.kind is None)
            offered = offered and not (guest and answer.edited is not None)
        case ChooseShown(way=way):
            asked = None if state.approval else state.consultation
            known = asked is not None and (not way.choice or way.choice in asked.choices)
            offered = known and bool(way.choice or way.text.strip())
        case _:
            return ""
    if asked is None or hash_of(asked) != command.question_hash:
        return "clients.stale"
    return "" if offered else "clients.not_offered"
