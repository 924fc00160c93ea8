"""Loops as data for the pacemaker's tests, and a duck that lives by its functions alone."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from duckflow.config.settings import PacemakerSettings
from duckflow.domain.decision import Action, Decision, StateDelta
from duckflow.domain.events import (
    ActionFinished,
    ActionStarted,
    ConsultationAnswered,
    DecisionMade,
    Event,
    TaskFinished,
    Transition,
    UserMessage,
)
from duckflow.domain.pacing.limits import TRACES_KEPT, LoopTrace
from duckflow.domain.pacing.vitals import FocusEvent, Vitals
from duckflow.domain.questions.consultation import ChooseWay
from duckflow.domain.transitions import Step
from duckflow.pacemaker.limit import compute_limit, measure
from duckflow.pacemaker.repetition import IDLE, Sign, find_signs
from duckflow.pacemaker.rules import (
    Consult,
    Extend,
    Move,
    Replan,
    Situation,
    next_move,
    stays_confident,
)
from duckflow.pacemaker.trace import progressed_lately, trace_loop
from duckflow.pacemaker.vitals import focus_after, mood_of, stamina_of


@dataclass(frozen=True)
class Did:
    """An action and how it ended."""

    action: Action
    text: str = ""
    outcome: str = "ok"
    path: str | None = None
    digest: str | None = None
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Loop:
    """One loop: what happened before its decision, what it decided, what came of it."""

    did: tuple[Did, ...] = ()
    left: tuple[Action, ...] = ()
    said: bool = False
    answered: bool = False
    looks: tuple[Did, ...] = ()
    tasks: int = 0
    next_step: str = "continue"
    delta: dict[str, Any] = field(default_factory=dict)
    step: bool = False

    def events(self) -> list[Event]:
        """All that is written down about it."""
        before: list[Event] = []
        if self.said:
            before.append(UserMessage(request_id="r", text="go on"))
        if self.answered:
            before.append(ConsultationAnswered(consultation_id="c", answer=ChooseWay(choice="go_on")))
        before += [event for did in self.looks for event in _ran(did, "look")]
        decision = Decision(
            next_step=self.next_step,
            reply="" if self.did or self.left else "I will do it now.",
            actions=(*(did.action for did in self.did), *self.left),
            state_delta=StateDelta(**self.delta),
        )
        own: list[Event] = [DecisionMade(loop=1, decision=decision, exchange=())]
        if self.step:
            own.append(Transition(start=Step.PLANNING, end=Step.EXECUTION, by="model", reason=""))
        own += [event for place, did in enumerate(self.did) for event in _ran(did, f"a{place}")]
        own += [
            TaskFinished(list_id="l", task_id=f"t{place}", operation="x", status="completed", result="")
            for place in range(self.tasks)
        ]
        return before + own


def _ran(did: Did, action_id: str) -> list[Event]:
    return [
        ActionStarted(action_id=action_id, action=did.action),
        ActionFinished(
            action_id=action_id,
            operation=did.action.operation,
            outcome=did.outcome,
            text=did.text,
            path=did.path,
            digest=did.digest,
            changed=did.changed,
            evidence_id="e1",
        ),
    ]


def read(path: str, content: str = "text", **args: Any) -> Did:
    """A file that was read."""
    digest = hashlib.sha256(content.encode()).hexdigest()
    action = Action(operation="file_ops.read_file", args={"path": path, **args})
    body = content
    if "end" in args:
        body = "\n".join(f"{content} {number}" for number in range(int(args["start"]), args["end"] + 1))
    return Did(action, text=f"{path} (lines)\n{body}", path=path, digest=digest)


def write(path: str, content: str, *, changed: bool = True) -> Did:
    """A file that was written; unchanged where it had this content already."""
    action = Action(operation="file_ops.write_file", args={"path": path, "content": content})
    text = (
        f"changed {path} (+{len(content)} -1)"
        if changed
        else f"unchanged {path}: it has this content already"
    )
    return Did(action, text=text, path=path, changed=(path,) if changed else ())


def edit(path: str, find: str, put: str) -> Did:
    """A file that was edited."""
    action = Action(
        operation="file_ops.edit_file", args={"path": path, "edits": [{"find": find, "replace": put}]}
    )
    return Did(action, text=f"changed {path}", path=path, changed=(path,))


def run(command: str, text: str = "", *, changed: tuple[str, ...] = ()) -> Did:
    """A command that ran; a non-zero exit is a result like any other."""
    return Did(Action(operation="shell.run", args={"command": command}), text=text, changed=changed)


def use(operation: str, text: str = "done", **args: Any) -> Did:
    """Any other operation."""
    return Did(Action(operation=operation, args=args), text=text)


def fail(did: Did, text: str = "no such file", outcome: str = "failed") -> Did:
    """The same action, but it failed."""
    return replace(did, outcome=outcome, text=text, digest=None, changed=())


def loop(*did: Did, **how: Any) -> Loop:
    """A loop with these actions."""
    return Loop(did=did, **how)


def plan(*lines: str, **how: Any) -> Loop:
    """A loop that only sets a plan."""
    return Loop(delta={"plan_brief": lines}, **how)


def trace_all(loops: Sequence[Loop]) -> tuple[LoopTrace, ...]:
    """Their traces, in order."""
    history: tuple[LoopTrace, ...] = ()
    for one in loops:
        history = (*history, trace_loop(history, one.events()))[-TRACES_KEPT:]
    return history


def signs_of(*loops: Loop) -> tuple[Sign, ...]:
    """What is found in the last of these loops."""
    *history, now = trace_all(loops)
    return find_signs(history, now)


class Duck:
    """Runs loops by the pacemaker's functions, without any engine, and tells each next move."""

    def __init__(
        self, vitals: Vitals | None = None, table: PacemakerSettings | None = None, **how: Any
    ) -> None:
        self.table = table or PacemakerSettings()
        self.vitals = vitals or Vitals()
        self.confidence: float | None = how.pop("confidence", 0.9)
        self.history: tuple[LoopTrace, ...] = ()
        self.limit = compute_limit(
            how.pop("profile", None),
            self.vitals,
            measure(messages=1),
            self.table.dynamic_limits,
        ).limit
        self.loops = self.progressed = 0
        self.unresolved = 0
        self.replanned = False
        self.confident = True
        self.moves: list[Move] = []

    def live(self, one: Loop) -> Move:
        """One loop, and the move that follows; an extension is taken and the rules are asked again."""
        trace = trace_loop(self.history, one.events())
        signs = find_signs(self.history, trace)
        self.history = (*self.history, trace)[-TRACES_KEPT:]
        self.loops += 1
        self.progressed += trace.progressed
        events: tuple[FocusEvent, ...] = (*trace.gains, *(("repetition",) if signs else ()))
        self.vitals = Vitals(
            mood=mood_of(self.confidence, self.history),
            focus=focus_after(self.vitals.focus, events),
            stamina=self._stamina(),
        )
        repeated = any(sign not in IDLE for sign in signs)
        move = self._decide(one, repeated=repeated)
        while isinstance(move, Extend):
            self.limit = move.limit
            self.vitals = self.vitals.model_copy(update={"stamina": self._stamina()})
            move = self._decide(one, repeated=repeated)
        if isinstance(move, Replan):
            self.replanned = True
            self._focus("replanned")
        return move

    def _stamina(self) -> float:
        return stamina_of(self.loops, self.limit, self.unresolved, progressed=self.progressed)

    def live_on(self, one: Loop, most: int = 100) -> int:
        """How many times a loop is lived until the user is asked."""
        for count in range(1, most + 1):
            if isinstance(self.live(one), Consult):
                return count
        return most + 1

    def answer(self) -> None:
        """The user answers a consultation."""
        self.replanned, self.loops, self.progressed = False, 0, 0
        self._focus("consultation_answered")

    def _decide(self, one: Loop, *, repeated: bool) -> Move:
        situation = Situation(
            vitals=self.vitals,
            next_step=one.next_step,
            loops=self.loops,
            limit=self.limit,
            progressed=progressed_lately(self.history),
            repeated=repeated,
            replanned=self.replanned,
            confident=self.confident,
        )
        move = next_move(situation, self.table)
        self.confident = stays_confident(situation, move, self.table.thresholds)
        self.moves.append(move)
        return move

    def _focus(self, event: FocusEvent) -> None:
        focus = focus_after(self.vitals.focus, (event,))
        self.vitals = self.vitals.model_copy(update={"focus": focus})
