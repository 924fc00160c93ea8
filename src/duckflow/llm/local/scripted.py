"""Model that reads its answers from a file, for tests and demonstrations (N, K2)."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from duckflow.domain.errors import ProviderError, Unavailable, UsageError
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.model import (
    ModelPiece,
    ModelRequest,
    ModelTraits,
    StopReason,
    StreamEnd,
    TextPiece,
    ThinkingPiece,
    ToolCall,
    Usage,
)
from duckflow.domain.reading.faults import describe_faults
from duckflow.llm.streams import bounded

MAX_SCRIPT_BYTES = 16 * 1024 * 1024
PIECE_CHARACTERS = 24
CHARACTERS_PER_TOKEN = 4
_GATE_POLL_S = 0.02

Fault = Literal[429, 500, "timeout", "cut"]


class ScriptedLine(Frozen):
    """One answer or one fault, for one type of output."""

    output: Annotated[str, Field(alias="for")] = "Decision"
    text: str = ""
    thinking: str = ""
    """Thinking shown before the answer."""
    stop: StopReason = "end"
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    error: Fault | None = None
    delay_s: Annotated[float, Field(ge=0, le=3600)] = 0.0
    """Seconds before the first character."""
    gate: Path | None = None
    """Folder where the model creates a file `asked` on a request, and waits for a file `go` to answer."""


class ScriptedModel:
    """Model whose calls each take the next unused line for the requested type of output."""

    def __init__(
        self, lines: Iterable[ScriptedLine], traits: ModelTraits, file: str, asked: Mapping[str, int]
    ) -> None:
        self._lines: defaultdict[str, list[ScriptedLine]] = defaultdict(list)
        for line in lines:
            self._lines[line.output].append(line)
        self._taken = Counter(asked)
        self.traits = traits
        self._file = file

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece]:
        """Stream the next answer."""
        return bounded(self._play(request), request.time_limit_s)

    async def aclose(self) -> None:
        """Do nothing: there is no connection to close."""

    async def _play(self, request: ModelRequest) -> AsyncGenerator[ModelPiece]:
        line = self._take(request.output)
        await asyncio.sleep(line.delay_s)
        if line.gate is not None:
            (line.gate / "asked").touch()
            while not (line.gate / "go").exists():  # noqa: ASYNC110 - another process creates it
                await asyncio.sleep(_GATE_POLL_S)
        text = line.text[: len(line.text) // 2] if line.error == "cut" else line.text
        if line.error is not None and line.error != "cut":
            raise _fault(line.error, request)
        for start in range(0, len(line.thinking), PIECE_CHARACTERS):
            yield ThinkingPiece(text=line.thinking[start : start + PIECE_CHARACTERS])
            await asyncio.sleep(0)
        for start in range(0, len(text), PIECE_CHARACTERS):
            yield TextPiece(text=text[start : start + PIECE_CHARACTERS])
            await asyncio.sleep(0)  # lets the reader stop between two pieces
        if line.error == "cut":
            raise _fault(line.error, request)
        for call in line.tool_calls:
            yield call
        yield StreamEnd(stop=line.stop, usage=line.usage or _estimate(request, text))

    def _take(self, output: str) -> ScriptedLine:
        lines = self._lines[output]
        taken = min(self._taken[output], len(lines))
        if taken == len(lines):
            raise ProviderError("llm.script_exhausted", file=self._file, output=output, count=taken)
        self._taken[output] = taken + 1
        return lines[taken]


async def open_scripted(
    file: Path, traits: ModelTraits, asked: Mapping[str, int] = MappingProxyType({})
) -> ScriptedModel:
    """Open the model of a JSON Lines file. `asked` counts the answers already used, by type of output."""
    lines = await asyncio.to_thread(_read_script, file)
    if any(line.tool_calls for line in lines):
        traits = replace(traits, native_tools=True)
    return ScriptedModel(lines, traits, str(file), asked)


def _read_script(file: Path) -> list[ScriptedLine]:
    """Read all lines of a script. Raise UsageError for the first invalid one."""
    try:
        with file.open("rb") as script:
            content = script.read(MAX_SCRIPT_BYTES + 1)
    except OSError as exc:
        raise UsageError("llm.script_unreadable", file=str(file), problem=exc.strerror or str(exc)) from exc
    if len(content) > MAX_SCRIPT_BYTES:
        raise UsageError("llm.script_unreadable", file=str(file), problem=f"> {MAX_SCRIPT_BYTES} bytes")
    lines: list[ScriptedLine] = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        try:
            if line.strip():
                lines.append(ScriptedLine.model_validate_json(line))
        except ValidationError as exc:
            problem = describe_faults(exc, ScriptedLine)
            raise UsageError("llm.script_malformed", file=str(file), line=number, problem=problem) from exc
    return lines


def _fault(error: Fault, request: ModelRequest) -> Unavailable:
    """Return the error that a real provider's client would raise, without a wait before the retry."""
    key, values = {
        429: ("llm.rate_limited", {"provider": "scripted"}),
        500: ("llm.server_error", {"provider": "scripted", "status": 500, "detail": ""}),
        "timeout": ("llm.timeout", {"seconds": request.time_limit_s}),
        "cut": ("llm.cut_off", {}),
    }[error]
    return Unavailable(key, retry_after_s=0.0, **values)


def _estimate(request: ModelRequest, text: str) -> Usage:
    asked = sum(len(message.text) for message in request.messages)
    return Usage(input_tokens=asked // CHARACTERS_PER_TOKEN, output_tokens=len(text) // CHARACTERS_PER_TOKEN)
