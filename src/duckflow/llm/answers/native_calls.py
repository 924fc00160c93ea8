"""Native tool calls: the calls of one response are the actions of a Decision (SPEC A8)."""

from collections.abc import Sequence

from pydantic import JsonValue

from duckflow.domain.model import ToolCall
from duckflow.domain.patterns import late
from duckflow.llm.answers.json_object import after_thoughts
from duckflow.llm.answers.raw_blocks import Blocks, fill, read_parts, split_blocks
from duckflow.llm.answers.strict_json import JsonObject, UnusableAnswer, parse_object

_UNSAFE = late(r"[^A-Za-z0-9_.-]|(?<=[_.])_|_(?=\.)|-(?=x)")
_CODED = late(r"-x([0-9a-f]{1,6})-")
_MEANT_AS_DECISION = late(r'"next_step"\s*+:')


def native_name(operation: str) -> str:
    """The name under which a provider knows an operation: `file_ops.search` is `file_ops__search`."""
    return _UNSAFE.sub(lambda bad: f"-x{ord(bad.group()):x}-", operation).replace(".", "__")


def operation_of(native: str) -> str:
    """The operation a provider's tool name stands for; a name with dots is one already."""
    if "." in native:
        return native
    return _CODED.sub(lambda coded: _character(coded.group(1)), native.replace("__", "."))


def _character(code: str) -> str:
    number = int(code, 16)
    return chr(number) if number < 0xD800 or 0xDFFF < number <= 0x10FFFF else ""


def read_native(text: str, calls: Sequence[ToolCall]) -> JsonObject:
    """The fields of a Decision from text and calls; the text is the reply, or a Decision itself."""
    decision, blocks = _read_text(text, has_calls=bool(calls))
    if calls:
        decision.setdefault("next_step", "continue")
    called = [_action(call) for call in calls]
    listed = decision.get("actions") or []
    if called and isinstance(listed, list):
        # A model that writes its calls into the text as well means them once.
        kept = [action for action in listed if _without_reason(action) not in called]
        decision["actions"] = [*kept, *called]
    return fill(decision, blocks)


def _read_text(text: str, *, has_calls: bool) -> tuple[JsonObject, Blocks]:
    text = after_thoughts(text)
    try:
        decision, blocks = read_parts(text)
    except UnusableAnswer:
        if text.startswith("{") or _MEANT_AS_DECISION.search(text):
            raise
    else:
        if "next_step" in decision or "actions" in decision:
            return decision, blocks
    plain, blocks = split_blocks(text)
    return {"reply": plain.strip(), "next_step": "continue" if has_calls else "done"}, blocks


def _action(call: ToolCall) -> JsonValue:
    name = operation_of(call.name)
    try:
        arguments = parse_object(call.arguments) if call.arguments.strip() else {}
    except UnusableAnswer as fault:
        raise UnusableAnswer(f"the arguments of the call of {name}: {fault.problem}") from fault
    return {"operation": name, "args": arguments}


def _without_reason(action: JsonValue) -> JsonValue:
    if not isinstance(action, dict):
        return action
    return {key: value for key, value in action.items() if key != "reasoning"}
