"""One run of a language server: what it knows of the files, and the questions it answers."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.code.answers import (
    Diagnostic,
    DocumentSymbol,
    Place,
    dicts,
    read_diagnostics,
    read_places,
    read_symbols,
)
from duckflow.tools.code.documents import (
    DELETED,
    FolderState,
    OpenDocument,
    path_of,
    read_document,
    uri_of,
)
from duckflow.tools.code.positions import ENCODINGS, PositionEncoding, TextPositions
from duckflow.tools.code.rows import ServerRow, language_id, section_of
from duckflow.tools.code.wire import Json, JsonValue, LspConnection, as_dict

MOST_OPEN = 60
_MOST_TOLD = 2_000
_STEP_S = 0.05
_CAPABILITIES: Json = {
    "general": {"positionEncodings": list(ENCODINGS)},
    "workspace": {
        "configuration": True,
        "workspaceFolders": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
        "workspaceEdit": {"documentChanges": True, "resourceOperations": ["rename"]},
    },
    "textDocument": {
        "synchronization": {"didSave": True},
        "publishDiagnostics": {"versionSupport": True},
        "diagnostic": {"dynamicRegistration": False},
        "definition": {"linkSupport": True},
        "references": {},
        "rename": {},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
    },
    "window": {"workDoneProgress": True},
    "experimental": {"serverStatusNotification": True},
}


class ServerTimes(Frozen):
    """Seconds that a server has to start, and for an answer."""

    start_s: float = 60.0
    answer_s: float = 30.0


class ServerSession:
    """A server that has been started and knows the workspace."""

    def __init__(self, row: ServerRow, workspace: Workspace, settings: Json, times: ServerTimes) -> None:
        self.row = row
        self._workspace = workspace
        self._root: Path = workspace.root
        self._settings = settings
        self._times = times
        self._wire: LspConnection | None = None
        self._encoding: PositionEncoding = "utf-16"
        self._offers: Json = {}
        self._documents: dict[str, OpenDocument] = {}
        self._published: dict[str, tuple[int, tuple[Diagnostic, ...]]] = {}
        self._publications = 0
        self._published_at = 0.0
        self._progress: set[str] = set()
        self._quiescent = not row.reports_status
        self._folder: FolderState | None = None
        self._syncing = asyncio.Lock()
        self._news = asyncio.Event()

    @property
    def ended(self) -> str:
        """Reason why the server ended, empty while it runs."""
        return self._wire.ended if self._wire else "it has not started"

    async def begin(self, wire: LspConnection) -> None:
        """Introduce Duckflow and the workspace to a server that was just started."""
        self._wire = wire
        self._folder = await run_in_thread(FolderState, self._workspace)
        uri = self._root.as_uri()
        asked = {
            "processId": None,  # the server's process namespace has no such id
            "clientInfo": {"name": "duckflow"},
            "rootUri": uri,
            "rootPath": str(self._root),
            "workspaceFolders": [{"uri": uri, "name": self._root.name}],
            "capabilities": _CAPABILITIES,
            "initializationOptions": self._settings.get(self.row.name) or {},
        }
        answer = await wire.request("initialize", asked, self._times.start_s)
        self._offers = as_dict(as_dict(answer).get("capabilities"))
        chosen = self._offers.get("positionEncoding")
        self._encoding = chosen if chosen in ENCODINGS else "utf-16"
        await wire.notify("initialized", {})
        await wire.notify("workspace/didChangeConfiguration", {"settings": self._settings})

    def can(self, capability: str) -> bool:
        """Return whether the server offers a capability."""
        return bool(self._offers.get(capability))

    async def resend(self, paths: Iterable[str]) -> None:
        """Send open files again as they are, if that makes the server report on them again."""
        if not self.row.repeats:
            return
        async with self._syncing:
            for path in paths:
                if (known := self._documents.get(path)) is not None:
                    await self._send_text(path, known.text, known.stamp)
                    self._documents[path] = self._documents[path]._replace(held=known.held)

    async def sync(self) -> None:
        """Show the server all files as they are now."""
        async with self._syncing:
            assert self._folder is not None
            changes = await run_in_thread(self._folder.changes)
            events = [
                {"uri": uri_of(self._root, path), "type": kind}
                for path, kind in list(changes.items())[:_MOST_TOLD]
            ]
            if events:
                await self._notify("workspace/didChangeWatchedFiles", {"changes": events})
            for path, document in list(self._documents.items()):
                if document.held:
                    continue
                try:
                    status = await run_in_thread(self._workspace.status, path)
                    if changes.get(path) == DELETED or status is None:
                        await self._close(path)
                    elif status.stamp != document.stamp:
                        await self._send_text(
                            path, *await run_in_thread(read_document, self._workspace, path)
                        )
                except ToolError:
                    await self._close(path)

    async def show(self, path: str, text: str | None = None) -> TextPositions:
        """Open a file in the server, or show it an earlier `text` of the file until `release`."""
        async with self._syncing:
            known = self._documents.get(path)
            if text is not None:
                if known is None or known.text != text:
                    await self._send_text(path, text, ())
                self._documents[path] = self._documents[path]._replace(held=True, stamp=())
            elif known is None:
                await self._make_room()
                await self._send_text(path, *await run_in_thread(read_document, self._workspace, path))
            return TextPositions(self._documents[path].text, self._encoding)

    async def read(self, path: str) -> TextPositions:
        """Return the text of a file as the server sees it. Open the file if the server needs that."""
        known = self._documents.get(path)
        if known is None and self.row.reads_disk:
            return TextPositions(
                (await run_in_thread(read_document, self._workspace, path))[0], self._encoding
            )
        return await self.show(path)

    def release(self, path: str) -> None:
        """Let the next `sync` show the server this file as it is."""
        if path in self._documents:
            self._documents[path] = self._documents[path]._replace(held=False)

    def positions(self, text: str) -> TextPositions:
        """Return a converter of positions for this text."""
        return TextPositions(text, self._encoding)

    def text(self, path: str) -> str | None:
        """Return the text that the server has open for a file, or None if the file is not open there."""
        known = self._documents.get(path)
        return known.text if known else None

    async def symbols(self, path: str) -> list[DocumentSymbol]:
        """Return the definitions in a file."""
        text, asked = await self.read(path), {"textDocument": self._id(path)}
        found = dicts(await self._ask("textDocument/documentSymbol", asked))
        if not found and path not in self._documents:  # it may not have read the folder yet
            text = await self.show(path)
            found = dicts(await self._ask("textDocument/documentSymbol", asked))
        return list(read_symbols(path, found, text))

    async def definitions(self, path: str, position: Json) -> list[Place]:
        """Return where the name at this position is defined."""
        await self.show(path)
        asked = {"textDocument": self._id(path), "position": position}
        return read_places(self._root, await self._ask("textDocument/definition", asked))

    async def references(self, path: str, position: Json) -> list[Place]:
        """Return all uses of the name at this position, with its definition."""
        await self.show(path)
        context = {"includeDeclaration": True}
        asked = {"textDocument": self._id(path), "position": position, "context": context}
        return read_places(self._root, await self._ask("textDocument/references", asked))

    async def rename_edit(self, path: str, position: Json, to: str) -> JsonValue:
        """Return the edit by which the server would rename the name at this position."""
        await self.show(path)
        asked = {"textDocument": self._id(path), "position": position, "newName": to}
        return await self._ask("textDocument/rename", asked)

    async def ready(self, seconds: float) -> None:
        """Wait until the server has read the project, for a limited time."""
        await self._until(lambda: not self._progress and self._quiescent, seconds)

    async def diagnose(
        self, paths: Sequence[str], seconds: float, quiet_s: float = 0.4
    ) -> Mapping[str, tuple[Diagnostic, ...] | None]:
        """Return the findings in open files; None for a file about which the server said nothing in time.

        `quiet_s`: a server that reports unasked counts as finished after this time without news.
        """
        if self.can("diagnosticProvider"):
            found = await asyncio.gather(*(self._pull(path, seconds) for path in paths))
            return dict(zip(paths, found, strict=True))
        await self._publication(paths, seconds, quiet_s)
        return {path: self._now(path) for path in paths}

    def asked(self, method: str, params: JsonValue) -> JsonValue:
        """Answer a question of the server. It is refused edits, and no message reaches the user."""
        match method:
            case "workspace/configuration":
                items = dicts(as_dict(params).get("items"))
                return [section_of(self._settings, str(one.get("section") or "")) for one in items]
            case "workspace/workspaceFolders":
                return [{"uri": self._root.as_uri(), "name": self._root.name}]
            case "workspace/applyEdit":
                return {"applied": False, "failureReason": "only the user changes files here"}
            case "window/showDocument":
                return {"success": False}
            case (
                "client/registerCapability"
                | "client/unregisterCapability"
                | "window/showMessageRequest"
                | "window/workDoneProgress/create"
            ):
                return None
            case _ if method.startswith("workspace/") and method.endswith("/refresh"):
                return None
            case _:
                return NotImplemented

    def noticed(self, method: str, params: JsonValue) -> None:
        """Take note of findings and of work in progress."""
        self._news.set()
        said = as_dict(params)
        if method == "textDocument/publishDiagnostics":
            self._take_published(said)
        elif method == "$/progress":
            token, kind = repr(said.get("token")), as_dict(said.get("value")).get("kind")
            if kind == "begin":
                self._progress.add(token)
            elif kind == "end":
                self._progress.discard(token)
        elif method == "experimental/serverStatus":
            self._quiescent = said.get("quiescent") is not False

    def _take_published(self, said: Json) -> None:
        path = path_of(self._root, str(said.get("uri", "")))
        known = self._documents.get(path or "")
        version = said.get("version")
        if path is None or (known and isinstance(version, int) and version < known.version):
            return
        self._publications += 1
        self._published_at = time.monotonic()
        self._published[path] = (
            self._publications,
            read_diagnostics(self._root, path, said.get("diagnostics")),
        )

    async def _publication(self, paths: Iterable[str], seconds: float, quiet_s: float) -> None:
        """Wait until the server has published its findings on changed files, and then until it is quiet."""
        changed = [path for path in paths if path in self._documents]

        def settled() -> bool:
            waiting = any(
                self._published.get(path, (-1,))[0] <= self._documents[path].changed_at
                for path in changed
                if path in self._documents
            )
            return not waiting and not self._progress and time.monotonic() - self._published_at > quiet_s

        await self._until(settled, seconds)

    async def _until(self, done: Callable[[], bool], seconds: float) -> None:
        """Wait until something is true, or the time is over, or the server has ended."""
        end = time.monotonic() + seconds
        while not done() and time.monotonic() < end and not self.ended:
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_STEP_S):
                    await self._news.wait()

    def _now(self, path: str) -> tuple[Diagnostic, ...] | None:
        known = self._published.get(path)
        return known[1] if known else None

    async def _pull(self, path: str, seconds: float) -> tuple[Diagnostic, ...] | None:
        asked = {"textDocument": self._id(path)}
        if identifier := as_dict(self._offers.get("diagnosticProvider")).get("identifier"):
            asked["identifier"] = identifier
        try:
            answer = await self._ask("textDocument/diagnostic", asked, seconds)
        except TimeoutError:
            return None
        pulled = read_diagnostics(self._root, path, as_dict(answer).get("items"))
        pushed = self._published.get(path, (0, ()))[1]
        return (*pulled, *(one for one in pushed if one not in pulled))

    async def _send_text(self, path: str, text: str, stamp: tuple[int, ...]) -> None:
        known = self._documents.get(path)
        version = known.version + 1 if known else 1
        self._documents[path] = OpenDocument(text, version, stamp, self._publications)
        item: Json = {"uri": uri_of(self._root, path), "version": version}
        if known is None:
            opened = {**item, "languageId": language_id(path), "text": text}
            await self._notify("textDocument/didOpen", {"textDocument": opened})
            return
        changed = {"textDocument": item, "contentChanges": [{"text": text}]}
        await self._notify("textDocument/didChange", changed)
        await self._notify("textDocument/didSave", {"textDocument": self._id(path), "text": text})

    async def _close(self, path: str) -> None:
        if self._documents.pop(path, None):
            self._published.pop(path, None)
            await self._notify("textDocument/didClose", {"textDocument": self._id(path)})

    async def _make_room(self) -> None:
        free = [path for path, one in self._documents.items() if not one.held]
        for path in free[: max(len(self._documents) - MOST_OPEN + 1, 0)]:
            await self._close(path)

    def _id(self, path: str) -> Json:
        return {"uri": uri_of(self._root, path)}

    async def _ask(self, method: str, params: Json, seconds: float | None = None) -> JsonValue:
        assert self._wire is not None
        return await self._wire.request(method, params, seconds or self._times.answer_s)

    async def _notify(self, method: str, params: Json) -> None:
        assert self._wire is not None
        await self._wire.notify(method, params)
