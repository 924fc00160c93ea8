"""Parsing of answers in the native protocol: calls become actions, and the text becomes the reply."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from duckflow.dialects.dialect import Check
from duckflow.dialects.native_tools import (
    ASK_USER,
    FINISH,
    NOTE,
    action_of,
    asks_for_description,
    describe,
)
from duckflow.domain.decision import Action, Decision, Operation, StateDelta
from duckflow.domain.model import ToolCall
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.reading.fitting import fit
from duckflow.domain.text import one_line
from duckflow.llm.answers.json_object import after_thoughts, find_object
from duckflow.llm.answers.strict_json import JsonObject, UnusableAnswer, parse_object
from duckflow.llm.answers.structured import read_answer

_RATIONALE = 200
_ITEMS = {
    "goal": "goal",
    "constraints": "constraints",
    "plan": "plan_brief",
    "open_questions": "open_questions",
}
REQUIREMENTS = "requirements"
_LISTS = (REQUIREMENTS, "constraints", "plan", "open_questions")
_DECISION_KEY = lazy_regex(r'"next_step"\s*+:')
_BEGINS_AS_JSON = lazy_regex(r'(?:```\w*\s*)?\{\s*"')
_OBJECT = lazy_regex(r'(?:```\w*\s*)?\{\s*"(?:rationale|goal_consistency|reply|actions)"\s*:')


class UnusableCalls(UnusableAnswer):
    """Answer with calls that can't be run. `by_call` maps each such call's id to an error message."""

    def __init__(self, by_call: Mapping[str, str]) -> None:
        super().__init__(*by_call.values())
        self.by_call = by_call


class NativeAnswer(NamedTuple):
    """A parsed answer. `fields` are the Decision fields that the model's notes set."""

    text: str
    actions: tuple[Action, ...]
    fields: JsonObject
    question: str | None
    closing: str | None
    """Reply that ends the turn if all actions succeed."""
    told: Mapping[str, str]
    """Results that the program gives immediately, by call id."""
    ask_again: bool
    """True if the answer only had notes or asked for descriptions, so the model must be asked again."""

    def result(self, noted: JsonObject) -> tuple[Decision, tuple[str, ...]]:
        """Return the decision, with all fields `noted` in this turn, and the user's requirements."""
        last = self.closing if self.closing and not self.actions else self.question
        reply = "\n\n".join(part for part in (self.text, last) if part)
        ends = self.closing is not None or not self.actions
        fields: JsonObject = {
            "rationale": one_line(self.text, _RATIONALE),
            "next_step": "pending_user" if self.question is not None else "done" if ends else "continue",
            "reply": reply,
            **noted,
        }
        wanted = fields.pop(REQUIREMENTS, None)
        decision, faults = fit(Decision, {**fields, "actions": [one.model_dump() for one in self.actions]})
        if decision is None or faults:
            raise UnusableAnswer(*faults)
        return decision, tuple(map(str, wanted)) if isinstance(wanted, list) else ()


def read_calls(
    text: str, calls: Sequence[ToolCall], check: Check, operations: Mapping[str, Operation]
) -> NativeAnswer | Decision:
    """Parse an answer. If its text is a Decision as JSON, return that Decision (N)."""
    text = after_thoughts(text).strip()
    if _DECISION_KEY.search(text) or _OBJECT.match(text):
        decision, _ = read_answer(text, Decision, check, ended=True)
        if not calls:
            return decision
        text = decision.reply  # a model that also writes its calls into the text wants them run once
    elif not calls and _BEGINS_AS_JSON.match(text):
        find_object(text)  # fail if the JSON is broken: the model meant more than a reply
    actions: list[Action] = []
    fields: JsonObject = {}
    question: str | None = None
    closing: str | None = None
    told: dict[str, str] = {}
    faults: dict[str, str] = {}
    for call in calls:
        try:
            args = parse_object(call.arguments) if call.arguments.strip() else JsonObject()
            wanted = operations.get(asks_for_description(call, args) or "")
            if wanted is not None and _needs_arguments(action_of(call, args), wanted, check):
                told[call.id] = describe(wanted)
            elif call.name == NOTE:
                fields = join_notes(fields, _noted(args))
            elif call.name == ASK_USER:
                question = str(args.get("question", "")).strip()
            elif call.name == FINISH:
                closing = str(args.get("reply", "")).strip()
            else:
                actions.append(_checked(action_of(call, args), check))
        except UnusableAnswer as fault:
            faults[call.id] = fault.problem
    if faults:
        raise UnusableCalls(faults)
    ask_again = bool(calls) and not actions and not question and closing is None
    return NativeAnswer(text, tuple(actions), fields, question, closing, told, ask_again)


def _checked(action: Action, check: Check) -> Action:
    faults = tuple(check(Decision(next_step="continue", actions=(action,))))
    if faults:
        raise UnusableAnswer(*faults)
    return action


def _needs_arguments(action: Action, operation: Operation, check: Check) -> bool:
    """Return whether an operation can't run without arguments; some need one of several optional ones."""
    required = operation.schema().get("required")
    return bool(required) or any(check(Decision(next_step="continue", actions=(action,))))


def _noted(args: JsonObject) -> JsonObject:
    delta: JsonObject = {_ITEMS[name]: _as_list(name, args[name]) for name in _ITEMS if args.get(name)}
    if faults := fit(StateDelta, delta).faults:
        raise UnusableAnswer(*faults)
    fields: JsonObject = {"state_delta": delta} if delta else {}
    if args.get("confidence") is not None:
        fields["confidence"] = args["confidence"]
    if wanted := _as_list(REQUIREMENTS, args.get(REQUIREMENTS)):
        fields[REQUIREMENTS] = wanted
    if args.get("profile"):
        fields["task_profile"] = args["profile"]
    if args.get("pattern"):
        fields["prompt_pattern"] = args["pattern"]
    doubt = args.get("doubt")
    if doubt and doubt is not True:
        fields["goal_consistency"] = f"no: {doubt}"
    return fields


def _as_list(name: str, value: JsonValue) -> JsonValue:
    return (
        [line for line in value.splitlines() if line.strip()]
        if name in _LISTS and isinstance(value, str)
        else value
    )


def join_notes(earlier: JsonObject, later: JsonObject) -> JsonObject:
    """Merge two sets of noted fields. Where both set a value, the later value wins."""
    first, second = earlier.get("state_delta"), later.get("state_delta")
    joined = {**earlier, **later}
    if isinstance(first, dict) and isinstance(second, dict):
        joined["state_delta"] = {**first, **second}
    return joined
