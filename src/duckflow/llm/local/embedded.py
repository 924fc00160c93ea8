"""The embedded model: runs on this machine in a separate process, without a key or a network."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from platform import machine
from typing import Any, Literal

from duckflow.config.settings import EmbeddedSettings
from duckflow.domain.errors import ProviderError, Unavailable
from duckflow.domain.model import ChatMessage, ModelPiece, ModelRequest, ModelTraits
from duckflow.llm.local.process import WorkerGone, WorkerProcess, thread_counts, usable_cores
from duckflow.llm.local.prompt_states import PromptStates, states_folder
from duckflow.llm.local.protocol import completion, load_failure, refusal
from duckflow.llm.streams import bounded, closing
from duckflow.llm.weights.installation import find
from duckflow.llm.wire.json_fields import JsonFields
from duckflow.llm.wire.openai import OpenAIResponse

BATCH = 64
"""Prompt tokens evaluated at a time; evaluation can be stopped between two batches."""

PROMPT_CACHE_MIB = 512
LOAD_LIMIT_S = 600.0
SAVE_LIMIT_S = 5.0
"""Longest wait on exit for the session's prompt state to be saved."""

BUSY_LIMIT_S = 0.5
"""Shorter limit for saving after an abandoned answer, which the process may take seconds to stop."""

ALIKE = 16
"""Tokens that must repeat earlier text before the next ones are guessed from it. Fewer slow down new text."""


def drafts(wanted: Literal["auto", "on", "off"], processor: str) -> bool:
    """Return True if n-gram speculation is on; `auto`: on x86, which reads much faster than it generates."""
    return wanted == "on" or (wanted == "auto" and processor.lower() in ("x86_64", "amd64"))


async def open_embedded(file: Path | None, options: EmbeddedSettings) -> "EmbeddedModel":
    """Open the model in `file`, in the configured file, or in the cache. It loads in the background."""
    if find_spec("xllamacpp") is None:
        raise ProviderError("embedded.no_runtime")
    path = await asyncio.to_thread(_locate, file, options)
    name = path.name if file or options.path else options.model
    states = await asyncio.to_thread(PromptStates, states_folder(), path, options.window, options.prompts_mb)
    model = EmbeddedModel(path, name, options, states)
    await model.load()
    return model


class EmbeddedModel:
    """Client for an embedded model. Handles one request at a time, and restarts a process that died."""

    def __init__(self, path: Path, name: str, options: EmbeddedSettings, states: PromptStates) -> None:
        self._path = path
        self._states = states
        self._options = options
        self.traits = ModelTraits(name=f"embedded:{name}", window=options.window, small=True)
        self._lock = asyncio.Lock()
        self._worker: WorkerProcess | None = None
        self._ready = False
        self._begun = False
        self._last = 0
        self._answered = 0
        self._given_up = False
        self._session = ""

    async def load(self) -> None:
        """Start the process and begin to load; `stream` waits until that is finished."""
        threads, batch_threads = thread_counts(usable_cores(), self._options.threads)
        worker = WorkerProcess(
            {
                "model": str(self._path),
                "window": self._options.window,
                "threads": threads,
                "batch_threads": batch_threads,
                "batch": BATCH,
                "cache_mib": PROMPT_CACHE_MIB,
                "states": f"{self._states.folder}/",
                "alike": ALIKE if drafts(self._options.drafts, machine()) else 0,
            }
        )
        await worker.connect()
        self._worker, self._ready, self._begun = worker, False, False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece]:
        """Stream the answer. The time limit starts once the model is loaded and free."""
        async with self._ready_worker() as worker:
            try:
                async with closing(bounded(self._answer(worker, request), request.time_limit_s)) as pieces:
                    async for piece in pieces:
                        yield piece
            except Unavailable:
                if self._answered != self._last:
                    # The process has not begun this answer, so it is stuck and must be replaced.
                    await self._end()
                raise

    async def count_tokens(self, text: str) -> int:
        """Count the tokens of a text with the model's tokenizer."""
        async with self._ready_worker() as worker:
            message = await self._message_for(worker, self._ask(worker, "count", {"text": text}))
        if message["tokens"] is None:
            raise ProviderError("embedded.refused", detail="tokenize")
        return message["tokens"]

    async def read_beginning(self, beginning: ChatMessage, report: Callable[[float], None]) -> None:
        """Evaluate and save the text with which all prompts begin. `report` gets the fraction done."""
        async with self._ready_worker() as worker:
            await self._begin(worker, (beginning,), report)

    async def aclose(self) -> None:
        """Save the session's prompt state, then end the process, which frees its memory."""
        worker = self._worker
        if worker is not None and self._ready and self._session and not self._lock.locked():
            with suppress(WorkerGone, TimeoutError):
                async with asyncio.timeout(BUSY_LIMIT_S if self._given_up else SAVE_LIMIT_S):
                    await self._save(worker, self._session)
        await self._end()

    async def _answer(self, worker: WorkerProcess, request: ModelRequest) -> AsyncGenerator[ModelPiece]:
        await self._begin(worker, request.messages, lambda _: None)
        answer = OpenAIResponse()
        async with closing(self._chunks(worker, request)) as chunks:
            async for chunk in chunks:
                if "error" in chunk:
                    raise refusal(chunk["error"])
                for piece in answer.add_chunk(JsonFields(chunk)):
                    yield piece
        for piece in answer.rest():
            yield piece

    async def _begin(
        self, worker: WorkerProcess, messages: Sequence[ChatMessage], report: Callable[[float], None]
    ) -> None:
        """Before the first prompt, restore its saved state, or evaluate and save the common beginning."""
        if not messages or not messages[0].stable:
            self._session = ""  # the process no longer holds the session's prompt
            return
        beginning, *rest = (message.text for message in messages)
        if rest:
            self._session = self._states.name("session", beginning, rest[0])
        if self._begun or not self._options.prompts_mb:
            return
        self._begun = True
        name = self._states.name("beginning", beginning)
        for known in (self._session, name) if rest else (name,):
            if await asyncio.to_thread(self._states.has, known):
                if await self._state(worker, "restore", known):
                    return
                await asyncio.to_thread(self._states.drop, known)
        request = ModelRequest(output="Nothing", messages=(messages[0],), max_tokens=1, temperature=0.0)
        async with closing(self._chunks(worker, request)) as chunks:
            async for chunk in chunks:
                if read := chunk.get("prompt_progress"):
                    report(read["processed"] / max(read["total"], 1))
        await self._save(worker, name)

    async def _chunks(self, worker: WorkerProcess, request: ModelRequest) -> AsyncGenerator[dict[str, Any]]:
        """Yield the chunks of the answer; stop the generation if the reader leaves early."""
        number, ended = self._ask(worker, "ask", {"body": completion(request)}), False
        try:
            while not ended:
                message = await self._message_for(worker, number)
                self._answered = number
                ended = "end" in message
                if not ended:
                    yield message["chunk"]
        finally:
            if not ended:
                self._given_up = True
                worker.send({"stop": number})

    async def _save(self, worker: WorkerProcess, name: str) -> None:
        draft = await asyncio.to_thread(self._states.draft)
        if await self._state(worker, "save", draft):
            await asyncio.to_thread(self._states.keep, draft, name)
        else:
            await asyncio.to_thread(self._states.drop, draft)

    async def _state(self, worker: WorkerProcess, action: str, file: str) -> bool:
        number = self._ask(worker, "state", {"action": action, "file": file})
        return bool((await self._message_for(worker, number)).get("done"))

    async def _message_for(self, worker: WorkerProcess, number: int) -> dict[str, Any]:
        """Return the next message about request `number`, skipping messages about abandoned requests."""
        while (message := await worker.receive()).get("id") != number:
            pass
        self._given_up = False
        return message

    def _ask(self, worker: WorkerProcess, kind: str, content: dict[str, Any]) -> int:
        self._last += 1
        worker.send({kind: self._last, **content})
        return self._last

    @asynccontextmanager
    async def _ready_worker(self) -> AsyncGenerator[WorkerProcess]:
        async with self._lock:
            worker = await self._loaded()
            try:
                yield worker
            except WorkerGone as exc:
                self._worker = None
                status, _ = await worker.look_back()
                raise Unavailable("embedded.died", model=self.traits.name, status=status) from exc

    async def _loaded(self) -> WorkerProcess:
        if self._worker is None:
            await self.load()
        worker = self._worker
        assert worker is not None
        if self._ready:
            return worker
        try:
            async with asyncio.timeout(LOAD_LIMIT_S):
                said = await worker.receive()
        except TimeoutError as exc:
            await self._end()
            reason = f"> {LOAD_LIMIT_S} s"
            raise ProviderError("embedded.load_failed", path=str(self._path), reason=reason) from exc
        except WorkerGone:
            said = {}
        if "ready" not in said:
            self._worker = None
            raise load_failure(str(self._path), said.get("failed", ""), *await worker.look_back())
        self._ready = True
        return worker

    async def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.end()


def _locate(file: Path | None, options: EmbeddedSettings) -> Path:
    given = file or options.path
    if given is None:
        found = find(options.model)
        if found is None:
            raise ProviderError("embedded.not_installed", model=options.model)
        return found
    try:
        with given.open("rb") as data:
            magic = data.read(4)
    except OSError as exc:
        raise ProviderError("embedded.no_file", path=str(given), reason=exc.strerror or str(exc)) from exc
    if magic != b"GGUF":
        raise ProviderError("embedded.not_gguf", path=str(given))
    return given.resolve()
