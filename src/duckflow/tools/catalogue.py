"""Catalogue of operations: the available ones, their arguments, and checks of a model's calls."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.domain.events import Event
from duckflow.domain.files.changes import ToolEffect
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.lines import TextLine
from duckflow.domain.model import JsonSchema, Picture
from duckflow.domain.questions.approval import ApprovalScope
from duckflow.safety.files.access import Access, PlannedWrite
from duckflow.safety.files.workspace import Workspace
from duckflow.tools.arguments import argument_schema, parse_arguments, signature

CommandEnd = Literal["succeeded", "failed", "stopped", "cancelled"]
Arguments = TypeVar("Arguments", bound=Frozen)


class TakeOver(Frozen):
    """Arguments of shell.take_over: a command whose file changes wait to be applied to the workspace."""

    copy_id: str
    command: str = ""
    """Command whose changes they are; empty for those of agents."""
    ended: CommandEnd = "succeeded"


class ToolResult(Frozen):
    """Result of a tool."""

    text: str
    """Text for the model."""
    path: str | None = None
    """File that the text is about."""
    changed: tuple[str, ...] = ()
    whole: str = ""
    """Full text, for later reading, if `text` shows only a part."""
    digest: str | None = None
    """Content hash of the whole file at `path`, if the text shows its content."""
    exit_code: int | None = None
    tests_failed: str = ""
    """Line in which a test runner says that tests failed, if the command's exit code hides it."""
    frame: tuple[int, int] = (1, 0)
    """Number of lines of `text` before and after a command's own output."""
    reason: TextLine | None = None
    """Reason for the user why it did not succeed."""
    told: tuple[TextLine, ...] = ()
    """Lines for the user about what it did."""
    pictures: tuple[Picture, ...] = ()
    """Pictures in the result."""
    exact: bool = False
    """True if all changes of a command are known."""
    waiting: TakeOver | None = None
    """Command whose file changes have not been applied to the workspace yet."""
    events: tuple[Event, ...] = ()
    """Other events, to be recorded with the action."""
    then: tuple[Action, ...] = ()
    """Actions that must run next, before the model's remaining actions."""

    def with_lines(self, *lines: str) -> "ToolResult":
        """Return the result with more lines for the model at its end."""
        more = "\n".join(filter(None, lines))
        before, after = self.frame
        if not more:
            return self
        return replace(self, text=f"{self.text}\n{more}", frame=(before, after + more.count("\n") + 1))


class Proposal(NamedTuple):
    """Preview of what an operation would do."""

    difference: str = ""
    """Complete unified diff of the changes, empty if there are none."""
    content: str | None = None
    """Whole text to write or run, if the user may replace it."""
    impact: tuple[TextLine, ...] = ()
    """Effects outside the workspace in words, if the tool itself must describe them."""
    kind: ApprovalScope | None = None
    """Kind of action that the user's answer "always" would allow."""
    granted: bool = False
    """True if the user has allowed it permanently, or has just asked for it."""
    command: str | None = None
    """Command to run, if it is one."""
    network: bool = False
    """True if the command asks for the whole network."""
    hosts: tuple[str, ...] = ()
    """Hosts that the command asks to reach."""
    secrets: tuple[str, ...] = ()
    """Files with secrets that the command asks to see."""
    write: PlannedWrite | None = None
    """Content to write, computed from the file as it is now."""
    writes: tuple[PlannedWrite, ...] = ()
    """Contents of several files that are written together."""
    undoes: bool = False
    """True if it restores files, as `impact` says."""


class NoArguments(Frozen):
    """Arguments of an operation that takes none."""


async def propose_nothing(_args: Frozen, _workspace: Workspace) -> Proposal:
    """Return an empty proposal, for an operation that changes nothing."""
    return Proposal()


@dataclass(frozen=True, kw_only=True)
class Tool(Generic[Arguments]):
    """One operation and the type of its arguments."""

    operation: str
    args: type[Arguments]
    summary: str
    """One line for the prompt that names each argument."""
    effect: ToolEffect
    run: Callable[[Arguments, Access], Awaitable[ToolResult]]
    propose: Callable[[Arguments, Workspace], Awaitable[Proposal]] = propose_nothing
    targets: Callable[[Arguments], tuple[str, ...]] = lambda _: ()
    """Paths that a call reads or changes, as the model wrote them."""
    by_program: bool = False
    """True if only the program calls the tool; no prompt lists it."""
    hidden: bool = False
    """True if no prompt lists the tool, though a model may call it."""

    @property
    def name(self) -> str:
        """Name of the operation without its family."""
        return self.operation.rpartition(".")[2]

    @property
    def line(self) -> str:
        """Line about the operation for a prompt."""
        return f"{self.operation}({signature(self.args)}): {self.summary}"

    def schema(self) -> JsonSchema:
        """Return the JSON schema of its arguments."""
        return argument_schema(self.args)


class ResolvedCall(NamedTuple):
    """An action, its tool, and its validated arguments."""

    action: Action
    tool: Tool[Any]
    args: Frozen

    def edited(self, text: str) -> Action:
        """Return the action with its command, or its file content, replaced by the user's text."""
        args = self.action.args
        if self.tool.effect == "execute":
            return replace(self.action, args={**args, "command": text})
        written = {"path": args["path"], "content": text}
        return replace(self.action, operation="file_ops.write_file", args=written)


class ToolSource:
    """Source of operations that become known only while a session runs. This one has none."""

    @property
    def revision(self) -> int:
        """Number that changes whenever the tools change."""
        return 0

    async def ready(self) -> None:
        """Wait until the source knows its tools, or that they are unavailable."""

    def tools(self) -> tuple[Tool[Any], ...]:
        """Return the tools known so far."""
        return ()

    def missing(self, operation: str) -> str:  # noqa: ARG002 - for sources with items
        """Return why the source has no such operation, if it is one of the source's family."""
        return ""

    def mentioned(self, text: str) -> tuple[Action, ...]:  # noqa: ARG002 - for sources with items
        """Return actions that read the items of this source that a message mentions with an @."""
        return ()


class Catalogue:
    """Operations that a model may name: fixed ones, and those of a `source`."""

    def __init__(self, tools: Iterable[Tool[Any]], source: ToolSource | None = None) -> None:
        self.fixed = tuple(tools)
        self.source = source or ToolSource()
        self._by_operation = {tool.operation: tool for tool in self.fixed}
        if len(self._by_operation) != len(self.fixed):
            raise ValueError("two tools have the same operation")

    @property
    def tools(self) -> tuple[Tool[Any], ...]:
        """All tools known so far."""
        return (*self.fixed, *self.source.tools())

    def get(self, operation: str) -> Tool[Any]:
        """Return the tool of an operation. Its bare name is enough if only one family has it."""
        wanted = operation.strip()
        if found := self._by_operation.get(wanted):
            return found
        for tool in self.source.tools():
            if tool.operation == wanted:
                return tool
        # Only fixed tools, because a tool of a source must not change the meaning of a short name.
        bare = [tool for tool in self.fixed if tool.name == wanted]
        if len(bare) == 1:
            return bare[0]
        if bare:
            listed = ", ".join(tool.operation for tool in bare)
            raise ToolError(f"The operation {wanted} is one of several: {listed}. Write it in full.")
        raise ToolError(f"There is no operation {wanted[:100]}. {self._nearest(wanted)}", "reason.call")

    def validate(self, action: Action) -> tuple[Tool[Any], Frozen]:
        """Return the tool and the arguments of an action. Raise ToolError with all problems."""
        tool = self.get(action.operation)
        return tool, parse_arguments(tool.operation, tool.args, action.args)

    def only_looks(self, action: Action) -> bool:
        """Return True if an action certainly changes nothing; False for an unknown operation."""
        try:
            return self.get(action.operation).effect in ("read", "fetch")
        except ToolError:
            return False

    def changing(self, actions: Sequence[Action]) -> tuple[int, ...]:
        """Return the indexes of the actions that may change something."""
        return tuple(place for place, one in enumerate(actions) if not self.only_looks(one))

    def _nearest(self, wanted: str) -> str:
        if why := self.source.missing(wanted):
            return why
        known = [tool.operation for tool in self.tools if not tool.by_program]
        close = get_close_matches(wanted, known, n=1, cutoff=0.6)
        names = {tool.name: tool.operation for tool in self.fixed if not tool.by_program}
        close = close or [names[name] for name in get_close_matches(wanted.rpartition(".")[2], names, n=1)]
        if close:
            return f"The nearest is {close[0]}."
        return f"There are: {', '.join(names.values())}."
