"""web.search: each service as it answers, asked by site, off by default."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from duckflow.config.settings import WebSettings
from duckflow.domain.errors import ToolError
from duckflow.domain.events import ActionFinished, ApprovalRequested
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.tools.web import search
from duckflow.tools.web.search import SearchWeb, search_tools
from fakes.engine import decision, engine

SEARXNG = {
    "results": [{"title": "A duck", "url": "https://duck.example/", "content": "<b>Quack</b> &amp; co"}]
}
BRAVE = {"web": {"results": [{"title": "A <strong>duck</strong>", "url": "https://duck.example/"}]}}
EXA = {"results": [{"title": None, "url": "https://duck.example/", "highlights": ["Quack", "again"]}]}
OPENAI = {
    "output": [
        {"type": "web_search_call", "status": "completed"},
        {
            "type": "message",
            "content": [
                {
                    "type": "output_text",
                    "text": "Ducks quack.",
                    "annotations": [
                        {"type": "url_citation", "url": "https://duck.example/", "title": "A duck"},
                        {"type": "url_citation", "url": "https://duck.example/", "title": "A duck"},
                    ],
                }
            ],
        },
    ]
}
ANTHROPIC = {
    "content": [
        {"type": "server_tool_use", "name": "web_search", "input": {"query": "duck"}},
        {
            "type": "web_search_tool_result",
            "content": [{"type": "web_search_result", "title": "A duck", "url": "https://duck.example/"}],
        },
        {"type": "web_search_tool_result", "content": {"type": "web_search_tool_result_error"}},
        {"type": "text", "text": "Ducks "},
        {"type": "text", "text": "quack."},
    ]
}


class Service:
    """A search service on this machine, which gives one answer to everything."""

    def __init__(self, status: int, said: bytes) -> None:
        self.status, self.said = status, said
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.url = ""


@pytest.fixture
def serve() -> Iterator[Callable[..., Service]]:
    running: list[ThreadingHTTPServer] = []

    def start(said: object, status: int = 200) -> Service:
        service = Service(status, said if isinstance(said, bytes) else json.dumps(said).encode())

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(length) or b"{}")
                headers = {name.lower(): value for name, value in self.headers.items()}
                service.asked.append((self.path, headers, body))
                self.send_response(service.status)
                self.send_header("Content-Length", str(len(service.said)))
                self.end_headers()
                self.wfile.write(service.said)

            do_POST = do_GET

            def log_message(self, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        threading.Thread(target=server.serve_forever).start()
        running.append(server)
        service.url = f"http://127.0.0.1:{server.server_address[1]}"
        return service

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


async def found(service: str, env: dict[str, str] | None = None, model: str = "openai:gpt-6") -> str:
    (tool,) = search_tools(WebSettings(search=service), env or {}, lambda: model, lambda text: text)
    try:
        return (await tool.run(SearchWeb(query="duck"), None)).text
    except ToolError as error:
        return f"error: {error}"


async def test_a_searxng_is_asked_for_json(serve):
    service = serve(SEARXNG)
    assert (await found(service.url)).endswith("1. A duck\n   https://duck.example/\n   Quack & co")
    assert service.asked[0][0] == "/search?q=duck&format=json"
    assert "error" not in await found(f"{service.url}/search")


async def test_brave_and_exa_get_their_keys(serve, monkeypatch: pytest.MonkeyPatch):
    brave, exa = serve(BRAVE), serve(EXA)
    monkeypatch.setattr(search, "ADDRESSES", {"brave": f"{brave.url}/b", "exa": f"{exa.url}/e"})
    assert "1. A duck\n   https://duck.example/" in await found("brave", {"BRAVE_API_KEY": "k1"})
    assert brave.asked[0][1]["x-subscription-token"] == "k1"
    assert "Quack … again" in await found("exa", {"EXA_API_KEY": "k2"})
    assert exa.asked[0][1]["x-api-key"] == "k2"
    assert exa.asked[0][2]["query"] == "duck"
    assert "but not BRAVE_API_KEY" in await found("brave")


async def test_the_providers_own_search(serve):
    openai, anthropic = serve(OPENAI), serve(ANTHROPIC)
    said = await found("model", {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{openai.url}/v1"})
    assert said.endswith("Ducks quack.\n\n1. A duck\n   https://duck.example/")
    assert (openai.asked[0][0], openai.asked[0][2]["model"]) == ("/v1/responses", "gpt-6")
    env = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": anthropic.url}
    said = await found("model", env, "anthropic:claude-6")
    assert said.endswith("Ducks quack.\n\n1. A duck\n   https://duck.example/")
    assert anthropic.asked[0][1]["x-api-key"] == "k"
    assert "embedded has no search" in await found("model", model="embedded")


@pytest.mark.parametrize(
    ("said", "status", "error"),
    [
        (b"<html>", 200, "something else than results"),
        ({"results": 3}, 200, "something else than results"),
        ([], 200, "something else than results"),
        (b"no", 403, "answered 403. Its settings must allow the format json. no"),
        ({"results": []}, 200, "Nothing was found"),
        ({"results": [{"title": "x", "url": "javascript:alert(1)"}]}, 200, "Nothing was found"),
    ],
)
async def test_what_is_no_result_is_said(serve, said: object, status: int, error: str):
    assert error in await found(serve(said, status).url)


def test_what_is_no_service_is_refused():
    for wrong in ("google", "ftp://a", "https://me:pw@a.example", "http://"):
        with pytest.raises(ValueError, match="no search service"):
            WebSettings(search=wrong)


async def test_the_user_is_asked_once_even_in_auto_and_it_is_off_by_default(tmp_path: Path, serve):
    (tmp_path / "project").mkdir()
    service = serve(SEARXNG)
    wanted = {"operation": "web.search", "args": {"query": "duck"}}
    again = {"operation": "web.search", "args": {"query": "another duck"}}
    answers = (decision("", wanted), decision("", again), decision("Done."))
    async with engine(tmp_path / "project", *answers, web={"search": service.url}, mode="auto") as duck:
        assert await duck.app.chat.say("look for ducks") == "awaiting_approval"
        assert not service.asked
        assert duck.state.approval.difference == "duck\n"
        assert await duck.app.chat.answer(AnswerApproval(yes=True, always=True)) == "done"
        assert len(duck.of(ApprovalRequested)) == 1
        assert "no instructions:\n1. A duck" in duck.of(ActionFinished)[0].text
    async with engine(tmp_path / "project", decision("Hello.")) as duck:
        assert "web.search" not in (await duck.app.model.preview(duck.state)).request.messages[0].text
