"""Failures of a provider become our errors, the same on both wires (K4)."""

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from duckflow.domain.errors import PromptTooLong, ProviderError, Unavailable
from duckflow.domain.model import ChatMessage, ModelRequest, ModelTraits, StreamEnd, TextPiece
from duckflow.i18n.catalogue import text
from duckflow.llm.endpoints import PROVIDERS, Endpoint
from duckflow.llm.wire import http
from duckflow.llm.wire.anthropic import ANTHROPIC
from duckflow.llm.wire.client import WireModel
from duckflow.llm.wire.errors import wait_of
from duckflow.llm.wire.openai import OPENAI
from fakes.model_server import Answer, Fault, ModelServer, Raw, free_port
from fakes.rows import every_row

WIRES = {"openai": (OPENAI, "/v1"), "anthropic": (ANTHROPIC, "")}
REQUEST = ModelRequest(output="Decision", messages=(ChatMessage(role="user", text="hi"),), time_limit_s=120.0)

pytestmark = pytest.mark.parametrize("wire", list(WIRES))


@asynccontextmanager
async def model_at(wire: str, url: str):
    format_, path = WIRES[wire]
    endpoint = Endpoint(provider=PROVIDERS[wire], model="m-1", address=url + path, key="sk-secret")
    model = WireModel(format_, endpoint, ModelTraits(name=endpoint.name))
    try:
        yield model
    finally:
        await model.aclose()


async def failure_of(wire: str, url: str, request: ModelRequest = REQUEST) -> ProviderError:
    async with model_at(wire, url) as model:
        with pytest.raises(ProviderError) as caught:
            _ = [piece async for piece in model.stream(request)]
    text(caught.value.key, **caught.value.values)  # a sentence for it exists and gets all its values
    return caught.value


async def failure_for(wire: str, reply, request: ModelRequest = REQUEST) -> ProviderError:
    with ModelServer([reply]) as server:
        return await failure_of(wire, server.url, request)


@pytest.mark.parametrize(
    ("status", "kind", "key"),
    [
        (301, ProviderError, "llm.redirected"),
        (302, ProviderError, "llm.redirected"),
        (400, ProviderError, "llm.refused_request"),
        (401, ProviderError, "llm.wrong_key"),
        (402, ProviderError, "llm.no_credit"),
        (403, ProviderError, "llm.wrong_key"),
        (404, ProviderError, "llm.unknown_model"),
        (408, Unavailable, "llm.server_error"),
        (413, PromptTooLong, "llm.prompt_too_long"),
        (422, ProviderError, "llm.refused_request"),
        (429, Unavailable, "llm.rate_limited"),
        (500, Unavailable, "llm.server_error"),
        (502, Unavailable, "llm.server_error"),
        (503, Unavailable, "llm.server_error"),
        (529, Unavailable, "llm.server_error"),
    ],
)
async def test_K4_every_status_has_its_error(wire, status, kind, key):
    failure = await failure_for(wire, Fault(status, headers={"location": "http://127.0.0.1:1/"}))
    assert (type(failure), failure.key) == (kind, key)


async def test_a_wrong_key_names_the_variable_to_set(wire):
    failure = await failure_for(wire, Fault(401))
    assert failure.values["variable"] == PROVIDERS[wire].key_variables[0]


async def test_an_unknown_model_is_named_with_the_address(wire):
    with ModelServer([Fault(404)]) as server:
        failure = await failure_of(wire, server.url)
        assert failure.values["model"] == "m-1"
        assert str(failure.values["address"]).startswith(server.url)


async def test_a_model_that_is_not_found_is_named_whatever_the_status(wire):
    said = b'{"error": {"code": "model_not_found", "message": "The requested model does not exist."}}'
    failure = await failure_for(wire, Raw(said, "application/json", 400))
    assert (failure.key, failure.values["model"]) == ("llm.unknown_model", "m-1")


async def test_a_refusal_carries_the_providers_own_words_cut_and_without_the_key(wire):
    failure = await failure_for(wire, Fault(400, "no\x1b[2J: sk-secret " + "x" * 2000))
    detail = str(failure.values["detail"])
    assert detail.startswith("no [2J: … xxx")
    assert len(detail) <= 300


ODD_BODIES = [
    b"",
    b"<html>",
    b"[[[[" * 20_000,
    b"\xff\xfe",
    b"x" * 1_000_000,
    b'{"error": 7}',
    b'"so"',
    b"null",
]


@pytest.mark.parametrize("body", ODD_BODIES)
async def test_any_body_of_an_error_is_survived(wire, body):
    failure = await failure_for(wire, Raw(body, "application/json", status=500))
    assert failure.key == "llm.server_error"
    assert len(str(failure.values["detail"])) <= 300


async def test_a_page_that_is_no_answer_is_an_error(wire):
    failure = await failure_for(wire, Raw(b"<html>Log in to the hotel network</html>", "text/html"))
    assert failure.key == "llm.not_understood"


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), ("0.5", 0.5), ("-3", 0.0), ("99999999999", 99999999999.0), ("nan", None), ("soon", None)],
)
async def test_K4_retry_after_in_seconds(wire, header, seconds):
    failure = await failure_for(wire, Fault(429, headers={"Retry-After": header}))
    assert isinstance(failure, Unavailable)
    assert failure.retry_after_s == seconds


@every_row(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        (
            {"retry-after": "2", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "9s"},
            2.0,
        ),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20ms"}, 0.02),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "2m59.56s"}, 179.56),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "7.5"}, 7.5),
        ({"x-ratelimit-remaining-tokens": "12", "x-ratelimit-reset-tokens": "9s"}, None),
        ({"x-ratelimit-reset-tokens": "9s"}, None),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "later"}, None),
        (
            {"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": "2015-10-21"},
            None,
        ),
        (
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2015-10-21T07:28:00Z",
            },
            0.0,
        ),
        ({"retry-after-ms": "soon"}, None),
        ({}, None),
    ],
)
async def test_K4_other_headers_tell_the_wait_too(wire, headers, seconds):
    failure = await failure_for(wire, Fault(429, headers=headers))
    assert isinstance(failure, Unavailable)
    assert failure.retry_after_s == seconds


def test_K4_a_limit_that_is_renewed_at_a_time_is_waited_for(wire):
    later = (datetime.now(UTC) + timedelta(seconds=100)).isoformat()
    name = "anthropic-ratelimit-input-tokens"
    wait = wait_of({f"{name}-remaining": "0", f"{name}-reset": later})
    assert wait is not None
    assert 50 < wait <= 100


def test_K4_retry_after_as_a_date(wire):
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    later = wait_of({"retry-after": soon})
    assert later is not None
    assert 50 < later <= 100
    assert wait_of({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    assert wait_of({"retry-after": "Wed, 99 Oct 99999 07:28:00 GMT"}) is None


async def test_exhausted_quota_is_not_taken_for_a_busy_server(wire):
    failure = await failure_for(wire, Fault(429, "insufficient_quota"))
    assert failure.key == "llm.no_credit"
    assert not isinstance(failure, Unavailable)


async def test_an_address_where_nobody_listens_is_named(wire):
    url = f"http://127.0.0.1:{free_port()}"
    failure = await failure_of(wire, url)
    assert isinstance(failure, Unavailable)
    assert failure.key == "llm.unreachable"
    assert str(failure.values["address"]).startswith(url)


async def test_a_password_in_the_address_is_not_shown(wire):
    failure = await failure_of(wire, f"http://me:hush@127.0.0.1:{free_port()}")
    assert "hush" not in str(failure)


async def test_K4_a_stream_without_its_end_is_cut_off(wire):
    failure = await failure_for(wire, Answer("half an answ", fault="no_end"))
    assert isinstance(failure, Unavailable)
    assert failure.key == "llm.cut_off"


async def test_K4_a_dropped_connection_is_cut_off(wire):
    failure = await failure_for(wire, Answer("half an answ", fault="drop"))
    assert isinstance(failure, Unavailable)
    assert failure.key == "llm.cut_off"


async def test_K4_a_stalled_stream_ends_with_the_calls_time(wire):
    request = REQUEST.model_copy(update={"time_limit_s": 0.2})
    with ModelServer([Answer("half an answ", fault="stall")]) as server:
        failure = await failure_of(wire, server.url, request)
        assert await asyncio.to_thread(server.disconnected.wait, 5)
    assert isinstance(failure, Unavailable)
    assert failure.key == "llm.timeout"


@pytest.mark.parametrize(
    "garbage", [b"data: hello\n\n", b"data: [1]\n\n", b'data: {"choices": 3, "index": "x"}\n\n']
)
async def test_a_stream_of_something_else_is_an_error(wire, garbage):
    failure = await failure_for(wire, Raw(garbage))
    assert failure.key == "llm.not_understood"


async def test_an_event_without_end_is_given_up(wire, monkeypatch):
    monkeypatch.setattr(http, "MAX_EVENT_BYTES", 10_000)
    failure = await failure_for(wire, Raw(b"data: " + b"x" * 100_000))
    assert failure.key == "llm.too_large"


async def test_an_answer_without_end_is_given_up(wire, monkeypatch):
    monkeypatch.setattr(http, "MAX_ANSWER_BYTES", 10_000)
    failure = await failure_for(wire, Answer("x" * 100_000))
    assert failure.key == "llm.too_large"
    assert not isinstance(failure, Unavailable)


async def test_closing_the_iterator_closes_the_connection(wire):
    with ModelServer([Answer("a first word", fault="stall"), Answer("again")]) as server:
        async with model_at(wire, server.url) as model:
            stream = model.stream(REQUEST)
            while not isinstance(await anext(stream), TextPiece):
                pass
            await stream.aclose()
            assert await asyncio.to_thread(server.disconnected.wait, 5)
            assert isinstance([piece async for piece in model.stream(REQUEST)][-1], StreamEnd)


async def test_cancelling_the_reader_closes_the_connection(wire):
    heard: list[object] = []

    async def listen(model) -> None:
        async for piece in model.stream(REQUEST):
            heard.append(piece)  # noqa: PERF401 - what came before the end counts

    with ModelServer([Answer("a first word", fault="stall")]) as server:
        async with model_at(wire, server.url) as model:
            reader = asyncio.create_task(listen(model))
            while not heard:
                await asyncio.sleep(0.01)
            reader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reader
            assert await asyncio.to_thread(server.disconnected.wait, 5)


async def test_loopback_does_not_go_through_a_proxy(wire, monkeypatch):
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    with ModelServer([Answer("direct")]) as server:
        async with model_at(wire, server.url) as model:
            pieces = [piece async for piece in model.stream(REQUEST)]
    assert pieces[0].text


async def test_a_proxy_that_can_not_be_used_is_explained(wire, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "gopher://127.0.0.1:9")
    failure = await failure_of(wire, "http://model.example")
    assert failure.key == "llm.bad_proxy"


async def test_another_proxy_is_used_for_other_hosts(wire, monkeypatch):
    with ModelServer([Answer("through the proxy")]) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        async with model_at(wire, "http://model.example") as model:
            pieces = [piece async for piece in model.stream(REQUEST)]
        assert proxy.requests[0].path.startswith("http://model.example/")
    assert isinstance(pieces[-1], StreamEnd)
