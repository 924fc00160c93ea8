"""What an MCP server offers, as plain data: bounded, and with nothing in it that acts on a terminal."""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from pydantic import Field

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.domain.patterns import late
from duckflow.domain.text import cut

MOST_ITEMS = 500
"""Tools, prompts or resources taken from one server; the rest does not exist."""

LONGEST_DESCRIPTION = 8_000
LONGEST_SCHEMA = 20_000
TOOL_NAME = late(r"[A-Za-z0-9_./-]{1,100}")

_ESCAPES = late(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|.)?", re.DOTALL)
_UNSEEN = late(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)


class RemoteTool(Frozen):
    """A tool as its server describes it. What it says is material, never an instruction."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)

    @property
    def text(self) -> str:
        """All that a model would be told of it."""
        return (
            f"{self.description}\nArguments (JSON schema): {json.dumps(self.parameters, ensure_ascii=False)}"
        )

    def refuse_misfits(self, operation: str, given: Mapping[str, object]) -> None:
        """What is certain to be wrong is told with the schema; the rest is the server's to judge."""
        known, required = _each(self.parameters.get("properties")), _each(self.parameters.get("required"))
        missing = [str(one) for one in required if one not in given]
        closed = bool(known) and self.parameters.get("additionalProperties") is False
        unknown = [name for name in given if name not in known] if closed else []
        if missing or unknown:
            wrong = [f"missing: {', '.join(missing)}"] if missing else []
            wrong += [f"unknown: {', '.join(unknown)}"] if unknown else []
            takes = json.dumps(self.parameters)
            raise ToolError(f"{operation} can't be called so ({'; '.join(wrong)}). It takes: {takes}")


def _each(value: object) -> list[object]:
    return list(cast("list[object]", value)) if isinstance(value, (list, dict)) else []


class RemotePrompt(Frozen):
    """A prompt that the user can call up."""

    name: str
    arguments: tuple[str, ...] = ()
    required: tuple[str, ...] = ()


class ServerOffer(Frozen):
    """What a server has, as it was when it was last connected."""

    version: str = ""
    """Of the protocol that was agreed upon."""
    tools: tuple[RemoteTool, ...] = ()
    prompts: tuple[RemotePrompt, ...] = ()
    resources: tuple[str, ...] = ()
    """Addresses that can be read."""


class RemoteResult(Frozen):
    """What a call gave."""

    text: str
    failed: bool = False


class RemoteFault(Exception):
    """A server did not do what was asked. `lost`: nor will it, before it is connected again. `unsent`: it
    certainly has not begun to."""

    def __init__(self, reason: str, *, lost: bool = False, unsent: bool = False) -> None:
        super().__init__(one_line(reason, 500).rstrip("."))
        self.lost = lost
        self.unsent = unsent


def first_of(exc: BaseException) -> BaseException:
    """The first plain error of a group of them."""
    while isinstance(exc, BaseExceptionGroup):
        exc = cast("BaseExceptionGroup[BaseException]", exc).exceptions[0]
    return exc


def plain(text: str) -> str:
    """The text without escape sequences and characters that can't be seen."""
    return _UNSEEN.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\u2028", "\n")))


def one_line(text: str, most: int) -> str:
    """The same on one line, cut."""
    return cut(" ".join(plain(text[: 8 * most]).split()), most)
