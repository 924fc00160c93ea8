"""Consultations: questions to the user, and the texts that tell the model the user's answer."""

from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from duckflow.domain.events import ConsultationRequested
from duckflow.domain.lines import TextLine, line
from duckflow.domain.pacing.health import examine
from duckflow.domain.pacing.limits import LoopTrace
from duckflow.domain.questions.consultation import (
    CHOICES,
    Choice,
    ChooseWay,
    Consultation,
    ConsultationKind,
    effect_of,
)
from duckflow.domain.state import AgentState, Request
from duckflow.domain.text import cut
from duckflow.evaluation.continuation import situation_of
from duckflow.loops.judging.advice import work_done

CAUSES = ("limit", "errors", "stamina")
"""Causes that the question names besides its situation."""

SPENT = ("limit", "budget")
"""Causes of "over_exertion" that mean a used-up limit, for which the question has other words."""

LOST = "model"
"""Cause of an escalation when the model itself failed."""

CARRY_ON: tuple[Choice, ...] = ("go_on", "accept", "simplify", "different_way", "stop")
"""Choices after a used-up limit or a failed model, where the work itself is not at fault."""

AGAIN: tuple[Choice, ...] = ("reconsider",)
"""Further choice if the model keeps proposing what the user refused."""

PARTS = ("request", "attempts", "score", "missing", "collected", "checks", "quality")
"""Parts of the situation report, in order (J5)."""

WISHES: dict[Choice, str] = {
    "more_information": "The user adds what you did not know:",
    "go_on": "The user wants you to continue as before.",
    "another_approach": "The user wants another kind of approach. Do not repeat: {tried}. Keep what is met.",
    "detail": "The user says more exactly what is wanted:",
    "divide": "The user wants the work divided. Follow the plan; without one, do the smallest part first.",
    "other_source": "The user asked someone else. Compare their answer with the evidence.",
    "most_important": "Only one requirement matters now, everything else can wait:",
    "reset": "The user wants a fresh start. Forget the plan; goal, constraints and findings still apply.",
    "sort_out": "The user got a summary of the work so far. Continue with what is missing first.",
    "another_angle": "The user wants another angle. Question your assumptions, do not start with: {tried}.",
    "analyse": "The user asked for the cause and was told what follows. Change nothing until they answer.",
    "simplify": "The user wants it simpler. Do the smallest useful part, and say what you leave out.",
    "different_way": "The user wants an entirely different way. Do not repeat what failed: {failed}.",
    "instruct": "The user tells you what to do:",
    "second_opinion": "The user asked another model. Compare its opinion with the evidence.",
    "rest": "The user paused the work. Continue when they say so.",
    "more_detail": "The user says in more detail what is wanted:",
    "technical_help": "The user asked for the obstacle and was told what follows. Change nothing yet.",
    "cut_rules": "The project's rules are too long: you see only their beginning.",
    "leave_rules_out": "The project's rules are too long, and the user wants you to work without them.",
    "reconsider": "The user wants to see again what they refused: propose it once more.",
}
"""Texts for the model about choices that leave the request open."""

_LISTED, _NAMES = 200, 5


def consult(
    state: AgentState, kind: ConsultationKind, cause: str = "", *, alone: bool = False, **values: JsonValue
) -> ConsultationRequested:
    """Return the question for this situation, in words and without numbers, with the known reasons.

    If the model is `alone`, no choice offers the view of another one.
    """
    failing = state.request.failing if state.request else ()
    known: dict[str, JsonValue] = {"failing": cut(", ".join(failing), _LISTED)}
    if kind == "escalation" and state.request:
        known |= situation_of(state.request.objective)
        known["collected"] = "\n".join(work_done(state.request)) if state.request.acted else ""
    known |= values
    # A used-up limit has its own text, because the work may have made progress.
    spent = (kind == "over_exertion" and cause in SPENT) or cause == LOST
    again = kind == "instead" and cause == "again"
    choices = CARRY_ON if spent else (*AGAIN, *CHOICES[kind]) if again else CHOICES[kind]
    return ConsultationRequested(
        kind=kind,
        consultation=Consultation(
            consultation_id=f"c{state.seq + 1}",
            kind=kind,
            situation=f"consultation.{kind}_{cause}" if spent or again else f"consultation.{kind}",
            values=known,
            findings=tuple(_findings(state, kind, "" if spent else cause, known)),
            choices=tuple(one for one in choices if not (alone and effect_of(one).reviews)),
        ),
    )


def wish(state: AgentState, answer: ChooseWay, found: str = "") -> str:
    """Return the text about an answer for the model: the choice, the user's words, and the findings."""
    strategies = state.request.objective.strategies if state.request else ()
    tried = cut("; ".join(strategies), _LISTED) or "what was tried before"
    failed = cut(", ".join(state.request.failing if state.request else ()), _LISTED) or "what was tried"
    wishes: dict[str, str] = {**WISHES}
    told = wishes.get(answer.choice, "").replace("{tried}", tried).replace("{failed}", failed)
    words = answer.text.strip()
    if not words and effect_of(answer.choice).needs_words:
        told = told.rstrip(":") + "; they say it in their next message."
    return "\n\n".join(part for part in (f"{told} {words}".strip(), found) if part)


def _findings(
    state: AgentState, kind: ConsultationKind, cause: str, values: dict[str, JsonValue]
) -> Iterator[TextLine]:
    if kind == "oracle":
        yield from examine(state)
    elif kind == "escalation":
        known = [part for part in PARTS if values.get(part)]
        yield from (line(f"consultation.report.{part}", **values) for part in known)
    elif kind == "unknown" and values.get("what"):
        yield line("consultation.report.unknown", **values)
    elif kind == "rules" and cause:
        yield line(cause, **values)
    elif state.request is not None and kind != "instead":
        yield from _reasons(state, state.request, kind, cause)


def _reasons(state: AgentState, request: Request, kind: ConsultationKind, cause: str) -> Iterator[TextLine]:
    if cause in CAUSES:
        yield line(f"consultation.because.{cause}")
    repeated = _repeated(request.history)
    if repeated and kind in ("stagnation", "confusion"):
        yield _known("repeated", repeated)
    if request.history and request.history[-1].idle and kind in ("stagnation", "confusion"):
        yield line("consultation.known.idle")
    if request.failing:
        yield _known("failing", request.failing)
    if state.items.open_questions and kind in ("lost_confidence", "confusion"):
        yield _known("questions", state.items.open_questions)
    if request.objective.missing:
        yield _known("missing", request.objective.missing)


def _known(name: str, what: Sequence[str]) -> TextLine:
    listed = cut(", ".join(" ".join(one.split()) for one in what[:_NAMES]), _LISTED)
    return line(f"consultation.known.{name}", what=listed)


def _repeated(history: Sequence[LoopTrace]) -> tuple[str, ...]:
    """Return the targets of calls in the last loop that earlier loops had already made."""
    if not history:
        return ()
    before = {act.call for trace in history[:-1] for act in trace.acts}
    return tuple(dict.fromkeys(act.target for act in history[-1].acts if act.call in before))
