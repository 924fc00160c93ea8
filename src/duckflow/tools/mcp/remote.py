"""Offers of an MCP server as plain data: limited in size, and without terminal control characters."""

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any, cast

from pydantic import Field

from duckflow.config.mcp import McpServer
from duckflow.config.saved_answers import SavedAnswers
from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.domain.lines import TextLine, line
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.text import cut

TOKENS = SavedAnswers("mcp_tokens.json")
"""Sign-ins at servers that use OAuth."""

MOST_ITEMS = 500
"""Largest number of tools, prompts or resources taken from one server. Further ones are ignored."""

_LONGEST_REASON = 1_500
LONGEST_DESCRIPTION = 8_000
LONGEST_SCHEMA = 20_000
TOOL_NAME = lazy_regex(r"[A-Za-z0-9_./-]{1,100}")

_ESCAPES = lazy_regex(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|.)?", re.DOTALL)
_UNSEEN = lazy_regex(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)


class RemoteTool(Frozen):
    """Tool as its server describes it. The description is data, never an instruction."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)
    reads_only: bool = False
    """True if the server says that the tool changes nothing."""

    @property
    def text(self) -> str:
        """Text about the tool for a model."""
        reads = "\nIts server says that it only reads." if self.reads_only else ""
        takes = json.dumps(self.parameters, ensure_ascii=False)
        return f"{self.description}{reads}\nArguments (JSON schema): {takes}"

    def refuse_misfits(self, operation: str, given: Mapping[str, object]) -> None:
        """Raise ToolError with the schema if arguments are certainly wrong. The server judges the rest."""
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
    """Prompt that the user can call."""

    name: str
    arguments: tuple[str, ...] = ()
    required: tuple[str, ...] = ()


class ServerOffer(Frozen):
    """Offer of a server, as of its last connection."""

    version: str = ""
    """Negotiated version of the protocol."""
    instructions: str = ""
    """Advice of the server on its tools. It is data, never an instruction."""
    tools: tuple[RemoteTool, ...] = ()
    prompts: tuple[RemotePrompt, ...] = ()
    resources: tuple[str, ...] = ()
    """Addresses of resources that can be read."""


class RemoteResult(Frozen):
    """Result of a call."""

    text: str
    failed: bool = False
    pictures: tuple[tuple[str, bytes], ...] = ()
    """Media type and bytes of each picture."""
    asked: str = ""
    """Question to the user for whose answer the server waits."""


class RemoteFault(Exception):
    """Raised if a request to a server failed.

    `lost`: the connection must be reopened first. `unsent`: the server certainly did not receive the request.
    """

    def __init__(self, reason: str, *, lost: bool = False, unsent: bool = False) -> None:
        super().__init__(reason_of(reason))
        self.lost = lost
        self.unsent = unsent


def first_of(exc: BaseException) -> BaseException:
    """Return the first plain error in a group of errors."""
    while isinstance(exc, BaseExceptionGroup):
        exc = cast("BaseExceptionGroup[BaseException]", exc).exceptions[0]
    return exc


def plain(text: str) -> str:
    """Return the text without escape sequences and invisible characters."""
    return _UNSEEN.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\u2028", "\n")))


_VARIABLE = r"\b(?!ERR_|E[A-Z]+_)(?P<{}>[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b"
_NEEDS_VARIABLE = lazy_regex(
    _VARIABLE.format("first")
    + r"[^.\n]{0,60}?\b(?i:env(ironment)?\b|not (be )?(set|defined|found)|required|missing|must)"
    r"|(?i:\bset\b|missing|provide|required|environment|\benv\b|KeyError)[^.\n]{0,60}?"
    + _VARIABLE.format("last")
)
_ADVICE = {
    "network": lazy_regex(
        "getaddrinfo|ENOTFOUND|EAI_AGAIN|ENETUNREACH|name resolution|ECONNREFUSED|did not start within"
    ),
    "protected": lazy_regex(r"\.git/.*(EROFS|Read-only file system)"),
    "sandbox": lazy_regex(
        r"(?i)(socket|ptrace|listen|namespace|clone|mount)\b.{0,40}(EPERM|operation not permitted)"
    ),
    "write": lazy_regex(
        "EROFS|EACCES|Read-only file system|Permission denied|unable to open database file|readonly database"
    ),
    "read": lazy_regex(r"ENOENT|No such file|Cannot find (module|package)|No module named|can't open file"),
    "start": lazy_regex("it did not start within"),
}
"""Signs in what a server says, and the setting that helps a program in the sandbox."""
_SILENT = lazy_regex(r"ended with exit code \d+\.?$")


def advice_for(name: str, server: McpServer, said: str) -> TextLine | None:
    """Return the setting of a program that probably has to change, by what the server said."""
    loose = {"network"} if server.network else set[str]()
    if server.url and not server.headers and ("HTTP 401" in said or "OAuth" in said):
        return line("mcp.advice.login", name=name)
    if server.command and server.sandbox:
        for kind, sign in _ADVICE.items():
            if kind not in loose and sign.search(said):
                return line(f"mcp.advice.{kind}", name=name)
    if server.command and (needs := _NEEDS_VARIABLE.search(said)):
        return line("mcp.advice.variable", name=name, variable=needs["first"] or needs["last"])
    if server.command and _SILENT.search(said):
        return line("mcp.advice.silent", command=shlex.join(server.command))
    return None


def too_slow(seconds: float) -> str:
    """Return the reason for a server that took too long."""
    return f"it did not start within {seconds:g} s"


def reason_of(said: str) -> str:
    """Return a reason that a server gave, in a few plain lines."""
    return cut(plain(said[: 8 * _LONGEST_REASON]).strip(), _LONGEST_REASON).rstrip(".")


def one_line(text: str, most: int) -> str:
    """Return the plain text on one line, shortened."""
    return cut(" ".join(plain(text[: 8 * most]).split()), most)
