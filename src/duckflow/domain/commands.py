"""Commands from clients to a session, as data. The process that has opened the session carries them out.

An answer names its question by a hash, so that it can't apply to a question that its user has not seen. If
two answers arrive, the first one counts.
"""

import hashlib
from typing import Annotated, Literal, NamedTuple, TypeGuard

from pydantic import ConfigDict, Field, TypeAdapter

from duckflow.domain.files.changes import UndoReport
from duckflow.domain.frozen import Frozen
from duckflow.domain.model import EffortChoice, Picture
from duckflow.domain.modes import Mode
from duckflow.domain.questions.approval import AnswerApproval, Approval, ApprovalScope
from duckflow.domain.questions.consultation import ChooseWay, Consultation
from duckflow.domain.state import AgentState
from duckflow.domain.work.outcomes import RequestOutcome


class SayMessage(Frozen):
    """A user message: a new request, or an addition to the open one."""

    kind: Literal["say"] = "say"
    text: str
    pictures: tuple[Picture, ...] = ()
    """Pasted pictures; the sender has put their bytes into the database of kept files."""
    later: bool = False
    """True if it waits until the current work has ended, instead of steering it (C6)."""


class AnswerShown(Frozen):
    """The user's answer to an approval; `question_hash` is its `hash_of`."""

    kind: Literal["answer"] = "answer"
    question_hash: str
    answer: AnswerApproval


class ChooseShown(Frozen):
    """The user's answer to a consultation; `question_hash` is its `hash_of`."""

    kind: Literal["choose"] = "choose"
    question_hash: str
    way: ChooseWay


class CancelWork(Frozen):
    """Stop the current work."""

    kind: Literal["cancel"] = "cancel"


class UndoWork(Frozen):
    """Undo changes: those of the last request (empty or "all"), a number of actions, or "redo"."""

    kind: Literal["undo"] = "undo"
    wanted: Annotated[str, Field(max_length=10)] = ""
    upto: Annotated[str, Field(max_length=100)] | None = None
    """Id of the last change when the user typed it, empty for none. Later changes are not undone (C6)."""


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
"""Commands that other processes and web pages may send."""


class AnswerInWords(Frozen):
    """A typed answer to the open question; if it is unclear, the question is repeated."""

    question_hash: str
    text: str


class DeclineAndStop(Frozen):
    """Stop the work at the open approval. What it asks about does not run, and may be proposed again."""

    question_hash: str


class ContinueWork(Frozen):
    """Repeat the open question, or continue the open request if there is no question."""


class AskAboutUnknown(Frozen):
    """Ask the user about actions with an unknown outcome."""

    what: str


class RunShellCommand(Frozen):
    """Run a shell command that the user typed; it needs no permission."""

    command: str


class ReviewChanges(Frozen):
    """Review changes: nothing for uncommitted ones, `--staged`, a commit, a branch, a range, or a patch."""

    changes: str = ""
    patch: bytes | None = None
    """Content of a patch file outside the folder, or from standard input."""


class StopBackground(Frozen):
    """Stop background tasks at once, and background commands after the current work."""


PermissionChange = Literal["here", "everywhere", "revoked"]


class ChangePermission(Frozen):
    """Keep an "always" answer of this session for the folder or everywhere, or revoke a permission."""

    kind: ApprovalScope
    change: PermissionChange


class RateRequest(Frozen):
    """Record the user's rating of the last request, from 1 to 10."""

    rating: int


class CompactConversation(Frozen):
    """Shorten the conversation in the model's prompts: a recap replaces older parts."""


class SetModel(Frozen):
    """Use another model from now on."""

    name: str


class ForkSession(Frozen):
    """Start a new session from this one, as it is now or was before the message event `before`."""

    before: int | None = None


class ForgetMemories(Frozen):
    """Delete memories by number."""

    numbers: tuple[int, ...]


SessionCommand = (
    (_Sendable | AnswerInWords | DeclineAndStop | ContinueWork | AskAboutUnknown)
    | (RunShellCommand | ReviewChanges | StopBackground | ChangePermission | RateRequest)
    | (SetModel | CompactConversation | ForkSession | ForgetMemories)
)
"""All commands. Clients in the session's own process may send any of them."""


class SessionResult(NamedTuple):
    """Result of a command, for the client that sent it."""

    objection: str = ""
    """Catalogue key of the reason if the command was refused."""
    outcome: RequestOutcome | None = None
    """Outcome of the work that the command started."""
    report: UndoReport | None = None
    session_id: str = ""
    """Id of the session that a fork created."""
    newer: tuple[str, ...] = ()
    """Files that changed after the point where the fork begins."""
    forgotten: int = 0


_CLIENT_COMMAND = TypeAdapter[ClientCommand](ClientCommand, config=ConfigDict(defer_build=True))


def parse_command(body: str | bytes) -> ClientCommand:
    """Read a command from JSON. Raise ValueError if it is not a valid command."""
    return _CLIENT_COMMAND.validate_json(body)


def is_sendable(command: SessionCommand) -> TypeGuard[ClientCommand]:
    """Return whether other processes may send this command."""
    return isinstance(command, _Sendable)


def hash_of(question: Approval | Consultation) -> str:
    """Return a hash of everything that a question shows."""
    return hashlib.sha256(question.model_dump_json().encode("utf-8", "surrogatepass")).hexdigest()


def typed_line(command: SessionCommand) -> str:
    """Return a message, a `!command` or an undo as the user types it; empty for other commands."""
    match command:
        case SayMessage(text=said):
            return said
        case RunShellCommand(command=line):
            return f"!{line}"
        case UndoWork(wanted=wanted):
            return "/redo" if wanted == "redo" else f"/undo {wanted}".rstrip()
        case _:
            return ""


def last_change(state: AgentState) -> str:
    """Return the id of the last change of files, empty if there was none."""
    return state.change_sets[-1].action_id if state.change_sets else ""


def objection_to(command: SessionCommand, state: AgentState, *, guest: bool = True) -> str:
    """Return why an answer must be refused, as a catalogue key; empty if it counts or is not an answer.

    A guest, such as another process, may not edit the action, because its user may not have seen all of it.
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
