"""Applies the pacemaker: turns the results of the pure functions in `pacemaker/` into events."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from duckflow.config.settings import PacemakerSettings
from duckflow.domain import events
from duckflow.domain.decision import TaskProfile
from duckflow.domain.frozen import replace
from duckflow.domain.model import ModelTraits
from duckflow.domain.pacing.limits import LoopLimit
from duckflow.domain.pacing.vitals import FocusEvent, Vitals
from duckflow.domain.questions.consultation import ConsultationKind
from duckflow.domain.state import AgentState, Request
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.loops.session import SessionPart
from duckflow.pacemaker.budget import BudgetLevel, explain_budget, judge
from duckflow.pacemaker.limit import compute_limit, measure
from duckflow.pacemaker.log_lines import log_end, log_loop, log_move, log_start
from duckflow.pacemaker.repetition import IDLE, find_signs
from duckflow.pacemaker.rules import Consult, Extend, Go, Replan, Situation, next_move, stays_confident
from duckflow.pacemaker.trace import progressed_lately, trace_loop
from duckflow.pacemaker.vitals import begin, crosses_window, focus_after, mood_of, stamina_of, turns_away

_log = logging.getLogger("duckflow.pacemaker")


@dataclass(eq=False)
class Pacing(SessionPart):
    """Watches the loops of a request, and decides how to continue."""

    _table: PacemakerSettings
    _traits: Callable[[], Awaitable[ModelTraits]]
    _experience: Callable[[TaskProfile | None], Sequence[int]]
    _warned: tuple[str, int] | None = None

    def begin(self) -> None:
        """Set the vitals (focus, stamina and so on) for a new request (H2 to H4)."""
        state = self._state
        self._change("request", begin(state.vitals, state.praised), "new_request")

    def answered(self, kind: ConsultationKind) -> None:
        """Set the vitals after the user has answered a consultation. Saying what to do instead costs none."""
        if (request := self._state.request) is not None:
            moved = self._moved(request, *(("consultation_answered",) if kind != "instead" else ()))
            self._change("answer", moved, "consultation_answered")

    def set_limit(self) -> None:
        """Set the loop limit at the first decision of a request, and when its kind of task changes (I2)."""
        request = self._state.request
        if request is None:
            return
        if request.limit and request.profile in (None, request.limit.profile):
            return
        complexity = _complexity(self._state, request)
        used = request.loops if request.limit else 0
        known = self._experience(request.profile) if self._table.learning.enabled else ()
        limits = self._table.dynamic_limits
        limit = compute_limit(request.profile, self._state.vitals, complexity, limits, used, known)
        self._session.record(events.LimitSet(limit=limit))
        _write(*log_start(limit))

    async def observe(self, recorded: Sequence[events.Event], *, refused: bool = False) -> None:
        """Update the vitals after a loop. `refused`: its actions were part of a failed attempt (J4)."""
        traits = await self._traits()
        state, request = self._state, self._state.request
        if request is None:
            return
        trace = trace_loop(request.history, recorded, rose=_rose(recorded, request))
        signs = (*find_signs(request.history, trace), *(("failed_before",) if refused else ()))
        tokens = _prompt_tokens(recorded) or state.prompt_tokens
        moved: list[FocusEvent] = []
        if _turned(recorded, request.goal):
            moved.append("direction_changed")
        if crosses_window(state.prompt_tokens, tokens, traits.window):
            moved.append("window_crossed")
        moved += trace.gains
        if signs:
            moved.append("repetition")
        said = (one.decision.confidence for one in reversed(recorded) if isinstance(one, events.DecisionMade))
        traces = (*request.history, trace)
        mood = mood_of(next(said, None), traces, small=traits.small, praised=state.praised)
        counted = replace(request, progressed=request.progressed + trace.progressed)
        vitals = replace(self._moved(counted, *moved), mood=mood)
        self._session.record(
            events.VitalsChanged(
                vitals=vitals,
                cause="loop",
                loop=request.loops,
                signs=signs,
                moved_by=tuple(moved),
                confident=state.confident,
                prompt_tokens=tokens,
                trace=replace(trace, repeated=any(sign not in IDLE for sign in signs)),
            )
        )
        _write(*log_loop(request.loops, signs, state.vitals, vitals))

    def next_move(self, *, asking: bool = False) -> Go | Replan | Consult:
        """Choose how to continue before another loop (H5). With `asking`, the result is never a replan."""
        state, request = self._state, self._state.request
        if state.asks_instead:
            return Consult(kind="instead", cause="again" if state.reminded else "no")
        if request is None or request.limit is None or request.loops == 0:
            return Go()
        self.set_limit()  # the search for requirements may have found the kind of task
        request = self._state.request or request
        while True:
            situation = self._situation(request, asking=asking)
            move = next_move(situation, self._table)
            if not isinstance(move, Go):
                _write(log_move(request.loops, move))
            if not isinstance(move, Extend):
                break
            request = self._extend(request, move.limit)
        self._warn(request, situation.budget)
        confident = stays_confident(situation, move, self._table.thresholds)
        if isinstance(move, Replan):
            self._change("replan", self._moved(request, "replanned"), "replanned", confident=confident)
        elif confident != self._state.confident:
            self._change("loop", self._state.vitals, confident=confident)
        return move

    def reason_to_ask(self) -> Consult:
        """Return the question to ask after too many errors."""
        move = self.next_move(asking=True)
        return move if isinstance(move, Consult) else Consult(kind="over_exertion", cause="errors")

    def end(self, outcome: RequestOutcome) -> None:
        """Log the outcome of the request."""
        request = self._state.request
        if request is not None:
            _write(*log_end(request.loops, self._limit(request), request.asked, outcome))

    def _situation(self, request: Request, *, asking: bool) -> Situation:
        return Situation(
            vitals=self._state.vitals,
            next_step=self._state.next_step,
            loops=request.loops,
            limit=self._limit(request),
            progressed=progressed_lately(request.history),
            repeated=bool(request.history) and request.history[-1].repeated,
            replanned=asking or request.replanned,
            confident=self._state.confident,
            sure=request.sure,
            budget=judge(request, self._table.budget),
        )

    def _extend(self, request: Request, limit: int) -> Request:
        before = request.limit or LoopLimit(limit=0)
        self._session.record(events.LimitSet(limit=replace(before, limit=limit), extended_from=before.limit))
        longer = self._state.request or request
        self._change("extension", self._moved(longer))
        return longer

    def _moved(self, request: Request, *causes: FocusEvent) -> Vitals:
        vitals, limit, errors = self._state.vitals, self._limit(request), len(request.failing)
        return replace(
            vitals,
            focus=focus_after(vitals.focus, causes),
            stamina=stamina_of(request.loops, limit, errors, progressed=request.progressed),
        )

    def _limit(self, request: Request) -> int:
        return request.limit.limit if request.limit else self._table.dynamic_limits.max_loops

    def _change(
        self,
        cause: Literal["request", "loop", "extension", "replan", "answer"],
        vitals: Vitals,
        *moved_by: FocusEvent,
        confident: bool | None = None,
    ) -> None:
        state = self._state
        self._session.record(
            events.VitalsChanged(
                vitals=vitals,
                cause=cause,
                moved_by=moved_by,
                confident=state.confident if confident is None else confident,
                prompt_tokens=state.prompt_tokens,
            )
        )

    def _warn(self, request: Request, level: BudgetLevel) -> None:
        given = (request.request_id, request.grants)
        line = explain_budget(level) if level.level == "near" and given != self._warned else None
        if line is not None:
            self._warned = given
            self._session.notify(line.key, **line.values)


def _turned(recorded: Sequence[events.Event], goal_before: str) -> bool:
    """Return whether the user changed the goal of the request with a message."""
    told = any(isinstance(one, events.ConsultationAnswered) for one in recorded)
    spoke = any(isinstance(one, events.UserMessage) for one in recorded)
    goals = (one.decision.state_delta.goal for one in recorded if isinstance(one, events.DecisionMade))
    return spoke and not told and any(turns_away(goal_before, goal) for goal in goals)


def _complexity(state: AgentState, request: Request) -> float:
    acts = [act for trace in request.history for act in trace.acts]
    return measure(
        files=len({entry.path for entry in state.transcript if entry.path}),
        messages=sum(entry.said for entry in state.transcript),
        errors=sum(act.failed for act in acts),
        actions=len(acts),
    )


def _prompt_tokens(recorded: Iterable[events.Event]) -> int:
    calls = (one for one in recorded if isinstance(one, events.UsageReported) and one.output == "Decision")
    return max((call.tokens.input_tokens for call in calls), default=0)


def _rose(recorded: Iterable[events.Event], request: Request) -> bool:
    """Return whether an evaluation scored higher than all evaluations before it (I7)."""
    scores = [one.evaluation.overall_score for one in recorded if isinstance(one, events.Evaluated)]
    before = [one.score for one in request.objective.attempts[: -len(scores)]] if scores else []
    return bool(scores) and max(scores) > max(before, default=0.0)


def _write(*lines: str) -> None:
    for line in lines:
        _log.info("%s", line)
