"""Find the fields of an answer in a model's text; accepts every form whose meaning is clear (A6)."""

from collections.abc import Mapping
from typing import NamedTuple, cast, get_origin

from pydantic import BaseModel, JsonValue

from duckflow.domain.decision import Decision, StateDelta
from duckflow.domain.reading.fitting import as_text, fit, word_of
from duckflow.llm.answers.json_object import after_thoughts
from duckflow.llm.answers.raw_blocks import Blocks, fill_in, find_parts
from duckflow.llm.answers.strict_json import JsonObject, UnusableAnswer, parse_object

_ACTIONS = ("action", "tool_calls", "calls", "operations", "action_list", "ActionList")
_REPLY = ("response", "answer", "message", "final_answer", "text")
_OPERATION = ("operation", "op", "tool", "tool_name", "function", "name", "action")
_ARGS = ("args", "arguments", "input", "parameters", "params", "tool_input")
_REASONING = ("reasoning", "reason", "rationale", "thought", "explanation", "comment")
_BESIDE = ("type", "call_id", "note", "why", "purpose", "intent", "priority", "order")
"""Fields that models write beside an action's arguments, but that are not arguments."""
_NONE = ("none", "null", "nothing", "n/a")
_DECISION = frozenset(Decision.model_fields)


class AnswerFields(NamedTuple):
    """Fields of an answer. `faults` make it unusable; `hints` then help the model to correct it."""

    fields: JsonObject
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences for the model about fields and blocks that were ignored."""
    hints: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    """Names of the blocks that were ignored because no field refers to them."""


def read_fields(text: str, shape: type[BaseModel], *, ended: bool) -> AnswerFields:
    """Return the fields of an answer of type `shape`. `ended`: the model stopped without hitting a limit."""
    found, blocks = find_parts(after_thoughts(text), ended=ended)
    fields = _unwrapped(found.value, shape)
    if shape is Decision:
        fields = _with_usual_names(fields)
    fields, unused, wrong = fill_in(fields, blocks)
    faults = (*found.faults, *wrong)
    hints = tuple(
        f'no argument names the block {name}: use it as {{"block": "{name}"}} or leave it out'
        for name in unused
    )
    if not issubclass(shape, Decision):
        return AnswerFields(fields, faults, hints=hints)
    fields, unused = _with_reply(fields, unused)
    fields, notes = _with_known_state(fields)
    notes += tuple(f"Nothing named the block {name}, so it was left out." for name in unused)
    return AnswerFields(fields, faults, notes, hints, tuple(unused))


def _unwrapped(value: JsonObject | list[JsonValue], shape: type[BaseModel]) -> JsonObject:
    """Unwrap an answer nested in a list or object. A bare list becomes the shape's only list field."""
    known = shape.model_fields.keys()
    if isinstance(value, list):
        first = value[0] if len(value) == 1 else None
        if isinstance(first, dict) and first.keys() & known:
            return first
        lists = [name for name, field in shape.model_fields.items() if get_origin(field.annotation) is tuple]
        if len(lists) != 1:
            raise UnusableAnswer("the answer is a list: give one JSON object")
        return {lists[0]: value}
    inner = [one for one in value.values() if isinstance(one, dict) and one.keys() & known]
    around = len(inner) == 1 and not value.keys() & known and not _operation_key(value)
    return inner[0] if around else value


def _with_usual_names(fields: JsonObject) -> JsonObject:
    """Rename fields and actions from the names that models often use to those of a Decision."""
    fields = dict(fields)
    if "actions" not in fields and _is_call(fields):
        action = {name: value for name, value in fields.items() if name not in _DECISION}
        fields = {name: value for name, value in fields.items() if name in _DECISION}
        fields["actions"] = [action]
    actions = fields.get("actions")
    if not actions or word_of(actions, _NONE):
        actions = next((fields[name] for name in _ACTIONS if _holds_actions(fields.get(name))), None)
    if fields.get("reply") is None:
        fields["reply"] = next((fields[name] for name in _REPLY if _holds_text(fields.get(name))), None)
    listed = [actions] if isinstance(actions, dict) else actions
    if isinstance(listed, list):
        listed = [_action(one) if isinstance(one, dict) else one for one in listed]
    return {**fields, "actions": listed}


def _holds_actions(value: JsonValue) -> bool:
    listed = value if isinstance(value, list) else [value]
    return bool(listed) and all(isinstance(one, dict) and _operation_key(one) for one in listed)


def _holds_text(value: JsonValue) -> bool:
    return isinstance(value, str | list) or (isinstance(value, dict) and len(value) == 1)


def _is_call(fields: JsonObject) -> bool:
    key = _operation_key(fields)
    return key in ("operation", "function") or (
        key is not None and any(isinstance(fields.get(name), dict) for name in _ARGS)
    )


def _operation_key(entry: Mapping[str, JsonValue]) -> str | None:
    function = entry.get("function")
    if isinstance(function, dict) and isinstance(function.get("name"), str):
        return "function"
    return next((name for name in _OPERATION if isinstance(entry.get(name), str)), None)


def _action(entry: JsonObject) -> JsonObject:
    """Return an action with a Decision's field names. Without `args`, its other fields are the arguments."""
    key = _operation_key(entry)
    if key is None:
        return entry
    if isinstance(entry[key], dict):
        return _action({**entry, key: None, **cast("JsonObject", entry[key])})
    given = next((name for name in _ARGS if entry.get(name) is not None), None)
    args = _object(entry[given]) if given else None
    if not args:
        about = {key, *_REASONING, *_BESIDE}
        flat = {name: value for name, value in entry.items() if name not in about and value is not None}
        args = cast("JsonValue", flat if given is None else {})
    reasoning = next((entry[name] for name in _REASONING if entry.get(name) is not None), None)
    operation = str(entry[key]).strip().removeprefix("functions.")
    return {"operation": operation, "args": args, "reasoning": reasoning}


def _object(value: JsonValue) -> JsonValue:
    """Parse arguments that some models write as a string of JSON."""
    if not isinstance(value, str):
        return value
    try:
        return parse_object(value) if value.strip() else None
    except UnusableAnswer:
        return value


def _with_reply(fields: JsonObject, unused: Blocks) -> tuple[JsonObject, Blocks]:
    """Use an unreferenced block as the reply if the answer has none. Return the fields and unused blocks."""
    if as_text(fields.get("reply") or "").strip():
        return fields, unused
    named = [name for name in unused if name.casefold() in ("reply", *_REPLY)]
    meant = named if len(named) == 1 else list(unused)
    if len(meant) != 1:
        return fields, unused
    reply = unused[meant[0]].rstrip("\r\n")
    return {**fields, "reply": reply}, {name: text for name, text in unused.items() if name != meant[0]}


def _with_known_state(fields: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """Drop state fields that a decision may not set (E2), and return a note for the model about them."""
    delta = fields.get("state_delta")
    if not delta:
        return {name: value for name, value in fields.items() if name != "state_delta"}, ()
    if not isinstance(delta, dict):
        return {**fields, "state_delta": None}, ("state_delta was no object, so it set nothing.",)
    usable = {name: value for name, value in delta.items() if not fit(StateDelta, {name: value}).faults}
    known = {name: value for name, value in usable.items() if name in StateDelta.model_fields}
    refused = ", ".join(name for name, value in delta.items() if name not in known and value is not None)
    allowed = ", ".join(StateDelta.model_fields)
    notes = (f"state_delta did not set {refused[:200]}: it sets texts or lists of texts, of {allowed}.",)
    return {**fields, "state_delta": known}, notes if refused else ()
