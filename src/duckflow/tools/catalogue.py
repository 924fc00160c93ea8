"""The catalogue of operations: what there is, what it takes, and whether a model's call fits."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple, Protocol

from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.domain.events import Event
from duckflow.domain.files.effects import Effects
from duckflow.domain.frozen import Frozen
from duckflow.domain.lines import TextLine
from duckflow.domain.model import JsonSchema
from duckflow.domain.questions.approval import ApprovalScope
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.policy.policy import Effect
from duckflow.tools.arguments import argument_schema, parse_arguments, signature

CommandEnd = Literal["well", "failed", "stopped", "cancelled"]


LOOKS: tuple[Effect, ...] = ("read", "fetch")
"""Effects of operations that change nothing."""


class HeldEffects(Frozen):
    """What a command did to its copy, before it is decided what becomes of it."""

    copy_id: str
    command: str
    effects: Effects
    ended: CommandEnd = "well"


class ToolResult(Frozen):
    """What a tool did. `text` is for the model, `path` the file it speaks of, `changed` what differs now."""

    text: str
    path: str | None = None
    changed: tuple[str, ...] = ()
    whole: str = ""
    """All of what `text` shows a part of, to be read later."""
    digest: str | None = None
    """Of the whole file that `path` names, if the text shows what is in it."""
    exit_code: int | None = None
    """Of a command."""
    exact: bool = False
    """Of a command: whether what is known of its changes is all that it did."""
    held: HeldEffects | None = None
    """What a command did, if it has not happened to the workspace yet."""
    events: tuple[Event, ...] = ()
    """What happened besides, to be recorded with the action."""
    then: tuple[Action, ...] = ()
    """What must come next, before the rest of the list."""


class Proposal(NamedTuple):
    """What an operation would do, before it does it."""

    difference: str = ""
    """What would change, whole: a difference in the usual format, empty if nothing would."""
    content: str | None = None
    """The whole text it would write or run, if the user may put another one in its place."""
    impact: tuple[TextLine, ...] = ()
    """What it would do outside, in words, if the tool itself has to say so."""
    kind: ApprovalScope | None = None
    """What "always" would cover of that."""


class NoArguments(Frozen):
    """What an operation takes that needs nothing."""


async def propose_nothing(_args: Frozen, _workspace: Workspace) -> Proposal:
    """The proposal of an operation that changes nothing."""
    return Proposal()


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One operation. `run`, `propose` and `targets` take a valid instance of `args`."""

    operation: str
    args: type[Frozen]
    summary: str
    """One line for the prompt that names each argument."""
    effect: Effect
    run: Callable[[Any, Access], Awaitable[ToolResult]]
    propose: Callable[[Any, Workspace], Awaitable[Proposal]] = propose_nothing
    targets: Callable[[Any], tuple[str, ...]] = lambda _: ()
    """The paths it touches, as the model wrote them."""
    by_program: bool = False
    """Only the program itself calls it: no prompt shows it."""
    hidden: bool = False
    """No prompt shows it, but a model may call it."""

    @property
    def name(self) -> str:
        """The operation without its family."""
        return self.operation.rpartition(".")[2]

    @property
    def line(self) -> str:
        """The operation as a prompt shows it."""
        return f"{self.operation}({signature(self.args)}): {self.summary}"

    def schema(self) -> JsonSchema:
        """The JSON schema of its arguments."""
        return argument_schema(self.args)


class ToolSource(Protocol):
    """Where operations come from that are known only once a session runs."""

    @property
    def revision(self) -> int:
        """Another number whenever `tools` gives something else."""
        ...

    async def ready(self) -> None:
        """Come back when the tools are known, or can't be had."""
        ...

    def tools(self) -> tuple[Tool, ...]:
        """The tools as they are known now."""
        ...

    def mentioned(self, text: str) -> tuple[Action, ...]:
        """A look at each thing of its own that a message mentions with an @."""
        ...


class Catalogue:
    """The operations a model may name: those that are always there, and those of a `source`."""

    def __init__(self, tools: Iterable[Tool], source: ToolSource | None = None) -> None:
        self.fixed = tuple(tools)
        self._source = source
        self._by_operation = {tool.operation: tool for tool in self.fixed}
        if len(self._by_operation) != len(self.fixed):
            raise ValueError("two tools have the same operation")

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All of them, as far as they are known."""
        return (*self.fixed, *(self._source.tools() if self._source else ()))

    @property
    def revision(self) -> int:
        """Another number whenever there are other tools."""
        return self._source.revision if self._source else 0

    async def ready(self) -> None:
        """Come back when all tools are known."""
        if self._source is not None:
            await self._source.ready()

    def mentioned(self, text: str) -> tuple[Action, ...]:
        """A look at what a message mentions with an @ and no file tool can read."""
        return self._source.mentioned(text) if self._source else ()

    def get(self, operation: str) -> Tool:
        """The tool of an operation; its bare name will do if only one family has it."""
        wanted = operation.strip()
        if found := self._by_operation.get(wanted):
            return found
        if self._source is not None:
            for tool in self._source.tools():
                if tool.operation == wanted:
                    return tool
        # Only of our own: nobody else's tool may come between a short name and what it always meant.
        bare = [tool for tool in self.fixed if tool.name == wanted]
        if len(bare) == 1:
            return bare[0]
        if bare:
            listed = ", ".join(tool.operation for tool in bare)
            raise ToolError(f"The operation {wanted} is one of several: {listed}. Write it in full.")
        raise ToolError(f"There is no operation {wanted[:100]}. {self._nearest(wanted)}")

    def validate(self, action: Action) -> tuple[Tool, Frozen]:
        """The tool an action names and its arguments, or a ToolError that lists what is wrong with them."""
        tool = self.get(action.operation)
        return tool, parse_arguments(tool.operation, tool.args, action.args)

    def only_looks(self, action: Action) -> bool:
        """Whether an action changes nothing; of an unknown operation this is not certain."""
        try:
            return self.get(action.operation).effect in LOOKS
        except ToolError:
            return False

    def _nearest(self, wanted: str) -> str:
        known = [tool.operation for tool in self.tools if not tool.by_program]
        close = get_close_matches(wanted, known, n=1, cutoff=0.6)
        names = {tool.name: tool.operation for tool in self.fixed if not tool.by_program}
        close = close or [names[name] for name in get_close_matches(wanted.rpartition(".")[2], names, n=1)]
        if close:
            return f"The nearest is {close[0]}."
        return f"There are: {', '.join(names.values())}."
