"""A workspace as the compact form for small models sees it."""

import json

from duckflow.dialects.compact import Compact
from duckflow.dialects.compact_prompt import Choices
from duckflow.dialects.drafts import DraftCheck, DraftLimits
from duckflow.domain.decision import Action
from duckflow.domain.model import ModelTraits
from duckflow.domain.state import AgentState, Request, TranscriptEntry
from fakes.model import FakeModel

SMALL = ModelTraits(name="small", window=4096, small=True)


class SmallFolder:
    """A workspace of a few files."""

    def __init__(self, **files: str) -> None:
        self.files = {name.replace("_", "."): text for name, text in files.items()}

    async def choices(self, state: AgentState) -> Choices:
        names = tuple(self.files)
        return Choices(files=names, unseen=names, hidden=names, may_search=bool(names))

    async def content(self, path: str) -> str | None:
        return self.files.get(path)

    async def check(self, state: AgentState, path: str, content: str) -> DraftCheck:
        """Count each word `wrong` as a failed check and each `right` as a passed one."""
        return DraftCheck(failed=content.count("wrong"), passed=content.count("right"))

    async def reads(self, paths) -> tuple[Action, ...]:
        return tuple(Action(operation="file_ops.read_file", args={"path": path}) for path in paths)

    async def failing_tests(self, paths) -> frozenset[str]:
        return frozenset(path for path in paths if "fails" in self.files.get(path, ""))


def asked(text: str) -> AgentState:
    return AgentState(
        request=Request(request_id="r_1", text=text),
        transcript=(TranscriptEntry(role="user", text=text, said=True),),
    )


def flat(operation: str, wants: str = "change", **args: object) -> str:
    return json.dumps({"wants": wants, "operation": operation, **args}, ensure_ascii=False)


async def decide(model: FakeModel, folder: SmallFolder, text: str = "Create hello.py"):
    decider = Compact(model, folder, "", lambda _: (), DraftLimits(most=3))
    return await decider.decide(asked(text), lambda _: None)


class Decided(SmallFolder):
    """A workspace with choices that the user's words have already made."""

    def __init__(self, choices: Choices, **files: str) -> None:
        super().__init__(**files)
        self.fixed = choices

    async def choices(self, state: AgentState) -> Choices:
        return self.fixed


WRITE = flat("write", paths=["a.py"])


async def content_of(*drafts: str, current: str = "", **fields: object) -> tuple[object, FakeModel]:
    model = FakeModel(WRITE, *drafts, traits=SMALL)
    folder = SmallFolder(a_py=current) if current else SmallFolder()
    decider = Compact(model, folder, "", lambda _: (), DraftLimits(most=3, **fields))
    decided = await decider.decide(asked("Write a.py"), lambda _: None)
    return decided.decision.actions[0].args["content"], model
