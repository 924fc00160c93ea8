"""How the duck is doing, in the user's language: bar, check-up, chart, limit and why (H6, H7, I5)."""

from collections import Counter
from collections.abc import Iterable, Iterator

from duckflow.domain.lines import TextLine
from duckflow.domain.pacing.health import examine, remark_on
from duckflow.domain.pacing.reasons import explain, explain_extension
from duckflow.domain.pacing.vitals import VITALS, Vitals, sparkline
from duckflow.domain.state import AgentState, Request
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import on_one_line
from duckflow.ui.output.text_width import cut_to_width, width_of
from duckflow.ui.views.live.status_bar import vitals_line

CHART = 60
"""Columns of the chart at most."""

_REQUEST = 100
_GAP = "  "


def status_bar(vitals: Vitals, columns: int | None = None) -> str:
    """The vitals in one line; without their names if there is no room."""
    line, short = ("".join(piece for _, piece in vitals_line(vitals, short=one)) for one in (False, True))
    return short if columns is not None and width_of(line) > columns else line


def status_text(state: AgentState, columns: int | None = None) -> str:
    """All that /status says."""
    lines = [status_bar(state.vitals, columns), text("health.title"), *_told(examine(state))]
    lines += [*_told((remark_on(state),)), *_chart(state.vitals_over_time, columns), *_pace(state)]
    return "\n".join([*lines, _used(state)])


def _chart(history: tuple[Vitals, ...], columns: int | None) -> Iterator[str]:
    if not history:
        return
    yield text("health.chart")
    titles = {name: text(f"health.{name}_name") for name in VITALS}
    widest = max(map(width_of, titles.values()))
    room = CHART if columns is None else max(min(CHART, columns - widest - len(_GAP) * 2), 1)
    for name, title in titles.items():
        values = [getattr(vitals, name) for vitals in history]
        yield f"{_GAP}{title}{' ' * (widest - width_of(title))}{_GAP}{sparkline(values, room)}"


def _pace(state: AgentState) -> Iterator[str]:
    """The request in hand, else the last: loops, the limit and why, and how often the user was asked."""
    request = state.request or state.finished
    if state.request is None:
        yield text("health.nothing")
    if request is not None:
        yield from _course(request, "health.request" if state.request else "health.last_request")


def _course(request: Request, title: str) -> Iterator[str]:
    yield text(title, request=cut_to_width(on_one_line(request.text), _REQUEST))
    if request.limit is None:
        yield text("health.loops_only", used=request.loops)
    else:
        yield text("health.loops", used=request.loops, limit=request.limit.limit)
        yield text("health.limit")
        yield from (f"  {line}" for line in _told(explain(request.limit)))
        if request.extended_from is not None:
            extension = explain_extension(request.extended_from, request.limit.limit)
            yield from (f"  {line}" for line in _told((extension,)))
    asked = [text(f"health.kind.{kind}", count=count) for kind, count in Counter(request.asked).items()]
    yield text("health.asked", asked=", ".join(asked)) if asked else text("health.asked_never")


def _used(state: AgentState) -> str:
    tokens = sum(one.tokens.input_tokens + one.tokens.output_tokens for one in state.usage.values())
    prices = [one.cost_usd for one in state.usage.values() if one.cost_usd is not None]
    request = state.request or state.finished
    return text(
        "health.used",
        tokens=f"{tokens:,}",
        cost=_money(sum(prices) if prices else None),
        request_tokens=f"{request.tokens if request else 0:,}",
        request_cost=_money(request.cost_usd if request else None),
    )


def _money(cost: float | None) -> str:
    return text("health.no_price") if cost is None else f"${cost:,.4f}"


def _told(lines: Iterable[TextLine]) -> list[str]:
    return [_keep_indent(text(line.key, **line.values)) for line in lines]


def _keep_indent(line: str) -> str:
    """A line that stays one, its indentation kept."""
    indent = len(line) - len(line.lstrip(" "))
    return " " * indent + on_one_line(line)
