"""The server behind the page: lists, one stream of updates, and commands."""

import asyncio
import binascii
import json
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from pydantic import TypeAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from duckflow.cli.web.folders import file_content, folder_listing, start_facts
from duckflow.cli.web.local_sessions import LocalSessions, Sent
from duckflow.domain.commands import parse_command
from duckflow.domain.errors import UserError
from duckflow.domain.frozen import Frozen
from duckflow.domain.modes import MODES
from duckflow.domain.patterns import lazy_regex
from duckflow.i18n.catalogue import current_language, entries, text
from duckflow.ui import web
from duckflow.ui.web.session_view import (
    RUN_PREFIX,
    Payload,
    SessionView,
    evidence_payload,
    live_payload,
    rows_of,
)
from duckflow.ui.web.typed_lines import suggestions

_LOOK_S = 0.1
_ALIVE_S = 15.0
_FLEET_S = 1.0
"""Seconds between two reads of the fleet's database, which may be on another machine."""
_ID = lazy_regex(r"[A-Za-z0-9_-]{0,64}")
_MOST = 256 * 1024
"""Maximum bytes of a request's body."""
_MOST_WITH_PICTURES = 28 * 1024 * 1024
"""The same for a message, which may have pictures."""
_MOST_TYPED = 1_000
"""Longest text, in characters, for suggestions and a search."""
_DIGEST = lazy_regex(r"[0-9a-f]{64}")


class TypedLine(Frozen):
    """A line from the message field. Pictures are in Base64."""

    text: str
    later: bool = False
    pictures: tuple[str, ...] = ()


class NewRequest(TypedLine):
    """A first line, and the session to open for it."""

    folder: str
    mode: str = ""
    model: str = ""
    where: str = ""
    """"fleet" to queue it there."""


def make_app(sessions: LocalSessions) -> Starlette:
    """Return the application. It may only get requests that `RequestGuard` admitted."""

    async def texts(request: Request) -> Response:
        del request
        language = current_language()
        page = {key[5:]: said for key, said in entries(language).items() if key.startswith("page.")}
        known = {"folders": sessions.folders(), "modes": MODES}
        return JSONResponse({"language": language, "texts": page, **known})

    async def stream(request: Request) -> Response:
        session = _session(request.query_params.get("session", ""))
        after = request.headers.get("last-event-id") or request.query_params.get("after", "")
        told = _stream(sessions, session, int(after) if after.isdecimal() else 0)
        return StreamingResponse(told, media_type="text/event-stream")

    async def evidence(request: Request) -> Response:
        session, wanted = _named(request), request.path_params["evidence"]
        events = await asyncio.to_thread(sessions.events, session, 0)
        found = evidence_payload(list(events), wanted)
        return JSONResponse(found) if found else _said(text("web.evidence.none", id=wanted), 404)

    async def difference(request: Request) -> Response:
        return JSONResponse({"difference": rows_of(await sessions.difference(_named(request)))})

    async def patch(request: Request) -> Response:
        session = _named(request)
        named = {"content-disposition": f'attachment; filename="{session}.patch"'}
        return PlainTextResponse(await sessions.difference(session), headers=named)

    async def send(request: Request) -> Response:
        result = await sessions.send(_named(request), parse_command(await _body(request)))
        if result:
            return _said(result, 409)
        return JSONResponse({"waiting": result is None})

    async def type_line(request: Request) -> Response:
        said = TypedLine.model_validate_json(await _body(request, _MOST_WITH_PICTURES))
        return _answered(
            await sessions.type_line(_named(request), said.text, _pictures(said), later=said.later)
        )

    async def start(request: Request) -> Response:
        wanted = NewRequest.model_validate_json(await _body(request, _MOST_WITH_PICTURES))
        pictures = _pictures(wanted)
        if wanted.where == "fleet":
            return JSONResponse({"session": await sessions.queue(wanted.folder, wanted.text, wanted.mode)})
        session = await sessions.start(wanted.folder, wanted.mode, wanted.model)
        return _answered(await sessions.type_line(session, wanted.text, pictures), session)

    async def first(request: Request) -> Response:
        folder = sessions.known(request.query_params.get("folder", ""))
        return JSONResponse(await start_facts(folder, sessions.flags))

    async def complete(request: Request) -> Response:
        asked = request.query_params
        client = await sessions.reader(_session(asked.get("session", "")), asked.get("folder", ""))
        return JSONResponse({"found": suggestions(client, asked.get("typed", "")[:_MOST_TYPED])})

    async def search(request: Request) -> Response:
        words = request.query_params.get("words", "")[:_MOST_TYPED]
        return JSONResponse({"found": await asyncio.to_thread(sessions.search, words)})

    async def files(request: Request) -> Response:
        path, folder = request.query_params.get("path", ""), sessions.folder_of(_named(request))
        return JSONResponse(await asyncio.to_thread(folder_listing, folder, path))

    async def file(request: Request) -> Response:
        path, folder = request.query_params.get("path", ""), sessions.folder_of(_named(request))
        return JSONResponse(await asyncio.to_thread(file_content, folder, path))

    async def picture(request: Request) -> Response:
        digest = request.path_params["digest"]
        found = await asyncio.to_thread(sessions.picture, digest) if _DIGEST.fullmatch(digest) else None
        return Response(found[0], media_type=found[1]) if found else PlainTextResponse("", 404)

    async def rename(request: Request) -> Response:
        title = TypeAdapter(dict[str, str]).validate_json(await _body(request))["title"]
        await sessions.rename(_named(request), title)
        return JSONResponse({})

    async def delete(request: Request) -> Response:
        await _body(request)
        await sessions.delete(_named(request))
        return JSONResponse({})

    async def fork(request: Request) -> Response:
        before = TypeAdapter(dict[str, int]).validate_json(await _body(request))["before"]
        return JSONResponse({"session": sessions.fork(_named(request), before)})

    async def retry(request: Request) -> Response:
        await _body(request)
        await asyncio.to_thread(sessions.fleet.retry, _named(request).removeprefix(RUN_PREFIX))
        return JSONResponse({"waiting": False})

    return Starlette(
        routes=[
            Route("/api/texts", texts),
            Route("/api/stream", stream),
            Route("/api/start", first),
            Route("/api/suggestions", complete),
            Route("/api/search", search),
            Route("/api/pictures/{digest}", picture),
            Route("/api/sessions", start, methods=["POST"]),
            Route("/api/sessions/{session}/lines", type_line, methods=["POST"]),
            Route("/api/sessions/{session}/title", rename, methods=["POST"]),
            Route("/api/sessions/{session}/delete", delete, methods=["POST"]),
            Route("/api/sessions/{session}/files", files),
            Route("/api/sessions/{session}/file", file),
            Route("/api/sessions/{session}/commands", send, methods=["POST"]),
            Route("/api/sessions/{session}/evidence/{evidence}", evidence),
            Route("/api/sessions/{session}/difference", difference),
            Route("/api/sessions/{session}/patch", patch),
            Route("/api/sessions/{session}/fork", fork, methods=["POST"]),
            Route("/api/sessions/{session}/retry", retry, methods=["POST"]),
            Mount("/", StaticFiles(directory=Path(web.__file__).with_name("static"), html=True)),
        ],
        exception_handlers=dict.fromkeys((UserError, ValueError, KeyError), _explain),
    )


async def _explain(_request: Request, error: Exception) -> Response:
    """Answer a UserError with its sentence; other errors mean a request that our page would not send."""
    if isinstance(error, UserError):
        holder = str(error.values.get("session", "")) if error.key == "lock.held" else ""
        said = text("web.folder_busy") if holder else text(error.key, **error.values)
        return JSONResponse({"message": said, "holder": holder}, status_code=409)
    return _said(text("web.unreadable"), 400)


def _session(wanted: str) -> str:
    """Return a session id from the page; ValueError if it is not safe in file names."""
    if not _ID.fullmatch(wanted):
        raise ValueError("not an id")
    return wanted


def _named(request: Request) -> str:
    return _session(request.path_params["session"])


def _pictures(said: TypedLine) -> list[bytes]:
    try:
        return [b64decode(one, validate=True) for one in said.pictures]
    except binascii.Error as exc:
        raise ValueError("not Base64") from exc


def _answered(sent: Sent, session: str = "") -> Response:
    """Return what became of a typed line. A refused message has status 409."""
    if sent.objection:
        return _said(sent.objection, 409)
    result = sent.result._asdict() if sent.result else None
    return JSONResponse({"waiting": sent.waits, "result": result, "session": session})


async def _body(request: Request, most: int = _MOST) -> bytes:
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise ValueError("not JSON")
    got = bytearray()
    async for piece in request.stream():
        got += piece
        if len(got) > most:
            raise ValueError("too long")
    return bytes(got)


def _said(message: str, status: int) -> Response:
    return JSONResponse({"message": message}, status_code=status)


async def _stream(sessions: LocalSessions, session_id: str, after: int) -> AsyncIterator[bytes]:
    view = SessionView(session_id)
    told: dict[str, str] = {}
    clock = asyncio.get_running_loop().time
    seen, quiet, looked, is_run = -1, clock(), -_FLEET_S, session_id.startswith(RUN_PREFIX)
    run: Payload | None = None
    while not sessions.closing.is_set():
        fresh: list[bytes] = []
        changed = sessions.changed
        version = sessions.version()
        look = clock() - looked >= _FLEET_S
        if look:
            looked = clock()
            fleet = await asyncio.to_thread(sessions.fleet.look, session_id)
            run = fleet["run"] if fleet else None
            fresh += _changed(told, "fleet", fleet)
        if version != seen or (look and is_run):
            fresh += _changed(told, "sessions", await asyncio.to_thread(sessions.sessions))
            found = await asyncio.to_thread(sessions.events, session_id, view.seq) if session_id else ()
            for recorded in found:
                entry = view.take(recorded, lambda: sessions.events(session_id, 0))
                if entry is not None and recorded.seq > after:
                    fresh.append(_message("entry", json.dumps(entry, ensure_ascii=False), recorded.seq))
            if found:
                fresh += _changed(told, "now", view.now())
            if found or run:
                fresh += _changed(told, "question", view.question(run))
            seen = version
        if session_id:
            fresh += _changed(told, "live", live_payload(*sessions.live(session_id)))
            if not is_run:
                fresh += _changed(told, "waiting", sessions.waiting(session_id))
        if clock() - quiet > _ALIVE_S:
            fresh.append(b": still here\n\n")
        if fresh:
            quiet = clock()
            yield b"".join(fresh)
        await asyncio.sleep(_LOOK_S)
        if sessions.is_open(session_id):  # a session of another process can only be polled
            with suppress(TimeoutError):
                async with asyncio.timeout(_FLEET_S):
                    await changed.wait()


def _changed(told: dict[str, str], event: str, payload: object) -> list[bytes]:
    """Return a message, unless it repeats the last one of its kind."""
    body = json.dumps(payload, ensure_ascii=False)
    if told.get(event) == body:
        return []
    told[event] = body
    return [_message(event, body)]


def _message(event: str, body: str, number: int = 0) -> bytes:
    named = f"id: {number}\n" if number else ""
    return f"event: {event}\n{named}data: {body}\n\n".encode("utf-8", "replace")
