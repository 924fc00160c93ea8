"""Text of /status: vitals, check-up, chart, and the loop limit with its reasons (H6, H7, I5)."""

from collections import Counter
from collections.abc import Iterable, Iterator

from duckflow.domain.lines import TextLine, line
from duckflow.domain.pacing.health import examine
from duckflow.domain.pacing.reasons import explain
from duckflow.domain.pacing.vitals import VITALS, Vitals, sparkline
from duckflow.domain.state import AgentState, Request
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import on_one_line
from duckflow.ui.output.text_width import cut_to_width, pad_to_width, width_of
from duckflow.ui.views.live.status_bar import vitals_line

_MAX_CHART_COLUMNS = 60
_REQUEST = 100
_GAP = "  "


def status_text(state: AgentState, columns: int | None = None) -> str:
    """Return the text of /status."""
    bar = "".join(piece for _, piece in vitals_line(state.vitals, columns))
    lines = [bar, text("health.title")]
    lines += _lines(examine(state))
    if state.vitals_over_time:
        lines += [text("health.chart"), *_chart(state.vitals_over_time, columns)]
    if state.request is None:
        lines.append(text("health.nothing"))
    request = state.request or state.finished
    if request is not None:
        title = "health.request" if state.request else "health.last_request"
        lines += [text(title, request=cut_to_width(on_one_line(request.text), _REQUEST)), *_pace(request)]
    tokens = sum(one.tokens.input_tokens + one.tokens.output_tokens for one in state.usage.values())
    prices = [one.cost_usd for one in state.usage.values() if one.cost_usd is not None]
    used = text(
        "health.used",
        tokens=f"{tokens:,}",
        cost=_money(sum(prices) if prices else None),
        request_tokens=f"{request.tokens if request else 0:,}",
        request_cost=_money(request.cost_usd if request else None),
    )
    return "\n".join([*lines, used])


def _chart(history: tuple[Vitals, ...], columns: int | None) -> Iterator[str]:
    titles = {name: text(f"health.{name}_name") for name in VITALS}
    widest = max(map(width_of, titles.values()))
    room = _MAX_CHART_COLUMNS
    if columns is not None:
        room = max(min(room, columns - widest - len(_GAP) * 2), 1)
    for name, title in titles.items():
        values = [getattr(vitals, name) for vitals in history]
        yield f"{_GAP}{pad_to_width(title, widest)}{_GAP}{sparkline(values, room)}"


def _pace(request: Request) -> Iterator[str]:
    if request.limit is None:
        yield text("health.loops_only", used=request.loops)
    else:
        yield text("health.loops", used=request.loops, limit=request.limit.limit)
        yield text("health.limit")
        reasons = [*explain(request.limit)]
        if request.extended_from is not None:
            reasons.append(line("limit.extended", before=request.extended_from, limit=request.limit.limit))
        yield from (f"  {reason}" for reason in _lines(reasons))
    asked = [text(f"health.kind.{kind}", count=count) for kind, count in Counter(request.asked).items()]
    yield text("health.asked", asked=", ".join(asked)) if asked else text("health.asked_never")


def _money(cost: float | None) -> str:
    return text("health.no_price") if cost is None else f"${cost:,.4f}"


def _lines(told: Iterable[TextLine]) -> Iterator[str]:
    for one in told:
        line = text(one.key, **one.values)
        yield " " * (len(line) - len(line.lstrip(" "))) + on_one_line(line)
