"""Writes the events of a session as OpenTelemetry spans, without messages and file contents.

A request is a span, and its model calls, actions and checks are child spans. Imported only if tracing is on.
"""

import atexit
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor, SpanExporter
from opentelemetry.trace import Span, Status, StatusCode, Tracer

from duckflow.domain import events
from duckflow.domain.live_updates import LiveUpdate

Attributes = Mapping[str, str | int | float | bool]
_SUCCEEDED = ("done", "accepted", "deferred", "pending_user", "awaiting_approval", "consultation")


@cache
def file_tracer(file: Path) -> Tracer:
    """Return the tracer that the program has set up, or else one that writes JSON lines to a file."""
    if isinstance(trace.get_tracer_provider(), TracerProvider):
        return trace.get_tracer("duckflow")
    written = file.open("a", encoding="utf-8")
    file.chmod(0o600)
    atexit.register(written.close)
    exporter = ConsoleSpanExporter(out=written, formatter=lambda span: f"{span.to_json(indent=None)}\n")
    return own_tracer(exporter)


def own_tracer(exporter: SpanExporter) -> Tracer:
    """Return a tracer that sends each span to this exporter when it ends."""
    provider = TracerProvider(resource=Resource.create({"service.name": "duckflow"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("duckflow")


class SpanWriter:
    """Turns events into spans. A model call starts at the time of the event before it."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._session: Attributes = {}
        self._request: Span | None = None
        self._actions: dict[str, Span] = {}
        self._before: datetime | None = None

    def __call__(self, what: events.StoredEvent | LiveUpdate) -> None:
        if isinstance(what, events.StoredEvent):
            self._take(what.event, what.at)
            self._before = what.at

    def _take(self, event: events.Event, at: datetime) -> None:
        match event:
            case events.SessionStarted():
                self._session = {"session.id": event.session_id, "duckflow.mode": event.mode}
            case events.UserMessage() if self._request is None:
                named = {"duckflow.request_id": event.request_id, **self._session}
                self._request = self._tracer.start_span("request", None, attributes=named, start_time=_ns(at))
            case events.UsageReported():
                self._short(f"chat {event.model}", _usage(event), at)
            case events.ActionStarted(action_id=action, action=started):
                named = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": started.operation}
                self._actions[action] = self._open(f"execute_tool {started.operation}", named, at)
            case events.ActionFinished():
                self._end_action(event, at)
            case events.Evaluated():
                for one in event.results:
                    named = {"duckflow.check.kind": one.kind, "duckflow.check.state": one.state}
                    self._short(f"check {one.kind}", named, at, failed=one.state == "failed")
            case events.ApprovalRequested() | events.ConsultationRequested():
                if self._request is not None:
                    self._request.add_event(event.type, timestamp=_ns(at))
            case events.RequestFinished():
                self._end_request(event, at)
            case _:
                pass

    def _open(self, name: str, attributes: Attributes, at: datetime) -> Span:
        within = trace.set_span_in_context(self._request) if self._request is not None else None
        return self._tracer.start_span(name, within, attributes=attributes, start_time=_ns(at))

    def _short(self, name: str, attributes: Attributes, at: datetime, *, failed: bool = False) -> None:
        self._end(self._open(name, attributes, self._before or at), {}, at, failed=failed)

    def _end_action(self, event: events.ActionFinished, at: datetime) -> None:
        span = self._actions.pop(event.action_id, None)  # None if the user refused the action
        ended: Attributes = {"duckflow.outcome": event.outcome, "duckflow.files_changed": len(event.changed)}
        code = {} if event.exit_code is None else {"process.exit.code": event.exit_code}
        self._end(span, {**ended, **code}, at, failed=event.outcome != "ok")

    def _end_request(self, event: events.RequestFinished, at: datetime) -> None:
        span, self._request = self._request, None
        ended: Attributes = {"duckflow.outcome": event.outcome, "duckflow.loops": event.loops}
        score = {} if event.satisfaction is None else {"duckflow.satisfaction": event.satisfaction}
        if span is not None and event.outcome not in _SUCCEEDED:
            span.set_status(Status(StatusCode.ERROR, event.outcome))
        self._end(span, {**ended, **score}, at)

    def _end(self, span: Span | None, attributes: Attributes, at: datetime, *, failed: bool = False) -> None:
        if span is not None:
            span.set_attributes(attributes)
            if failed:
                span.set_status(Status(StatusCode.ERROR))
            span.end(_ns(at))


def _usage(event: events.UsageReported) -> Attributes:
    cost = {} if event.cost_usd is None else {"duckflow.cost_usd": event.cost_usd}
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": event.model,
        "gen_ai.usage.input_tokens": event.tokens.input_tokens,
        "gen_ai.usage.output_tokens": event.tokens.output_tokens,
        "duckflow.tier": event.tier,
        "duckflow.output": event.output,
        **cost,
    }


def _ns(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000) * 1_000
