"""Malformed answers of real models: accepted where the meaning is plain, else repaired (A6)."""

import json

import pytest

from duckflow.domain.decision import Decision
from duckflow.domain.errors import BadAnswer
from duckflow.domain.model import ChatMessage, ModelRequest
from duckflow.llm.answers.structured import ask
from fakes.model import FakeModel, said
from fakes.rows import every_row

ACTION = {"operation": "file_ops.delete_file", "args": {"path": "a"}}
GOOD = json.dumps({"next_step": "continue", "reply": "ok", "actions": [ACTION]})
REQUEST = ModelRequest(output="Decision", messages=(ChatMessage(role="user", text="Output: Decision"),))

MALFORMED = {
    "empty": "",
    "white space": "\n \t\n",
    "not JSON": "I'd delete the file a now.",
    "wrong language": "申し訳ありませんが、その形式では答えられません。",
    "shell": "```bash\nrm a\n```",
    "YAML": "next_step: continue\nactions:\n  - operation: file_ops.delete_file",
    "XML": "<decision><next_step>continue</next_step></decision>",
    "wrong field": GOOD.replace('"actions"', '"steps"').replace('"reply"', '"say"'),
    "two objects": GOOD + "\n" + GOOD.replace("ok", "OK"),
    "two fences": f"```json\n{GOOD}\n```\n```json\n{GOOD.replace('ok', 'OK')}\n```",
    "single quotes and Python": str(json.loads(GOOD)),
    "truncated": GOOD[:-2],
    "truncated in a key": GOOD[: GOOD.index("_step")],
    "truncated in the action": GOOD[: GOOD.index('"args"')],
    "truncated fence": "```json\n" + GOOD[:-1],
    "duplicate keys": GOOD[:-1] + ', "actions": []}',
    "duplicate keys in args": GOOD.replace('{"path": "a"}', '{"path": "a", "path": "b"}'),
    "NaN": GOOD[:-1] + ', "confidence": NaN}',
    "Infinity": GOOD[:-1] + ', "confidence": Infinity}',
    "number out of range": GOOD[:-1] + ', "confidence": 1e400}',
    "five megabytes": GOOD[:-1] + ', "rationale": "' + "x" * 5_000_000 + '"}',
    "five megabytes of chatter": "well, " * 1_000_000 + GOOD,
    "ten thousand levels": GOOD[:-1] + ', "rationale": ' + "[" * 10_000 + "]" * 10_000 + "}",
    "ten thousand objects deep": '{"actions":' * 10_000,
    "operation is a number": GOOD.replace('"file_ops.delete_file"', "7"),
    "operation is empty": GOOD.replace("file_ops.delete_file", ""),
    "unknown operation": GOOD.replace("file_ops.delete_file", "file_ops.destroy"),
    "args is a list": GOOD.replace('{"path": "a"}', '["a"]'),
    "action is a string": json.dumps({"next_step": "continue", "actions": ["rm a"]}),
    "object and list": GOOD + "\n" + json.dumps([ACTION]),
    "closed too early": '{"next_step": "done", "reply": "ok"}, "actions": [{"operation": "x"}]}',
    "escaped twice": json.dumps(GOOD),
    "JSON5": "{next_step: 'continue', reply: 'ok', actions: [{\"operation\": \"x\"}],}",
    "single quotes": GOOD.replace('"', "'"),
    "typographic quotes": GOOD.replace('"', "”"),
    "wide punctuation": GOOD.replace(":", "："),
    "null bytes": GOOD.replace("ok", "o\0k"),
    "null bytes between": GOOD.replace(" ", "\0"),
    "escaped null": GOOD.replace("ok", "o\\u0000k"),
    "UTF-16 read as Latin": GOOD.encode("utf-16").decode("latin-1"),
    "lone surrogate": GOOD.replace("ok", "\\ud83e"),
    "missing block": GOOD.replace('"a"', '{"block": "a"}'),
    "nothing said or done": '{"next_step": "done", "reply": "  ", "actions": []}',
}


def known(decision):
    """Only what the fake catalogue has may be called."""
    unknown = [action.operation for action in decision.actions if action.operation != ACTION["operation"]]
    return [f"there is no operation {name}" for name in unknown]


@every_row("text", MALFORMED.values(), ids=MALFORMED.keys())
async def test_A6_malformed_answers_are_never_taken_and_given_up_if_they_come_again(text):
    width = max(7, len(text) // 500)
    model = FakeModel(said(text, width=width), said(text, width=width), GOOD)
    with pytest.raises(BadAnswer) as caught:
        await ask(model, REQUEST, Decision, lambda _: None, known)
    assert len(model.requests) == 2
    assert 0 < len(str(caught.value.values["problem"])) <= 1_000
    assert sum(len(message.text) for message in model.requests[1].messages) < 6_000


@every_row("text", MALFORMED.values(), ids=MALFORMED.keys())
async def test_A6_a_repaired_answer_is_taken_as_if_it_were_the_first(text):
    model = FakeModel(said(text, width=max(7, len(text) // 500)), GOOD)
    answer = await ask(model, REQUEST, Decision, lambda _: None, known)
    assert answer.value == Decision.model_validate_json(GOOD)


CALL = {"name": "file_ops.delete_file", "arguments": {"path": "a"}}
WITH_BLOCK = GOOD.replace('"a"', '{"block": "B"}')

TOLERATED = {
    "byte order mark": "\ufeff" + GOOD,
    "fence": f"```json\n{GOOD}\n```",
    "fence and chatter": f"Of course!\n\n```\n{GOOD}\n```\n\nAnything else?",
    "raw line breaks in strings": GOOD.replace("ok", "o\n\tk"),
    "nulls for what is missing": GOOD[:-1] + ', "state_delta": null, "rationale": null, "confidence": null}',
    "nothing but the actions": json.dumps({"actions": [ACTION]}),
    "extra field": GOOD[:-1] + ', "thought": "x"}',
    "extra field in an action": GOOD.replace('"args"', '"type": "delete", "args"'),
    "state it may not set": GOOD[:-1] + ', "state_delta": {"mode": "auto"}}',
    "state that is no object": GOOD[:-1] + ', "state_delta": "none"}',
    "step that does not exist": GOOD[:-1] + ', "step": "FINISHED"}',
    "next_step of another kind": GOOD.replace('"continue"', "true"),
    "rationale of another kind": GOOD[:-1] + ', "rationale": ["one", "two"]}',
    "action for actions": GOOD.replace('"actions"', '"action"'),
    "tool_calls for actions": GOOD.replace('"actions"', '"tool_calls"'),
    "actions is an object": json.dumps({"next_step": "continue", "actions": ACTION}),
    "null among the actions": json.dumps({"actions": [None, ACTION, None]}),
    "the action alone": json.dumps(ACTION),
    "the action alone, among the fields": json.dumps({"reply": "ok", "next_step": "done", **ACTION}),
    "the action alone, under other names": json.dumps(CALL),
    "a list of one": f"[{GOOD}]",
    "a list of actions": json.dumps([ACTION, ACTION]),
    "a list of actions in a fence": f"So:\n```json\n[\n  {json.dumps(CALL)}\n]\n```",
    "other names in an action": json.dumps(
        {"actions": [{"tool": "file_ops.delete_file", "input": {"path": "a"}}]}
    ),
    "arguments as text": json.dumps({"actions": [{**CALL, "arguments": '{"path": "a"}'}]}),
    "arguments as text as a whole": json.dumps({"actions": [{**ACTION, "args": '{"path": "a"}'}]}),
    "a function around the call": json.dumps(
        {"actions": [{"id": "call_1", "type": "function", "function": CALL}]}
    ),
    "arguments beside the operation": json.dumps(
        {"actions": [{"operation": ACTION["operation"], "path": "a"}]}
    ),
    "arguments and a purpose beside the operation": json.dumps(
        {"actions": [{"operation": ACTION["operation"], "path": "a", "why": "it is old", "mode": None}]}
    ),
    "unknown fields that resemble others": GOOD[:-1]
    + ', "text": {"a": 1, "b": 2}, "calls": ["x"], "name": "y"}',
    "a namespace": GOOD.replace("file_ops.delete_file", " functions.file_ops.delete_file"),
    "the same object twice": GOOD + "\n" + GOOD,
    "the same in two fences": f"```json\n{GOOD}\n```\n```json\n{GOOD}\n```",
    "one brace too many": GOOD + "}",
    "one brace too many in a fence": f"```json\n{GOOD}\n}}\n```",
    "an object around": json.dumps({"Decision": json.loads(GOOD)}),
    "comments": GOOD.replace('"reply"', '// say\n/* it */ "reply"').replace("}", "} # end\n"),
    "commas at the end": GOOD.replace("]", ",]").replace("}", ",}"),
    "Python's words": GOOD[:-1] + ', "step": None, "x": True, "y": False}',
    "thoughts": f"<think>{{}}</think>{GOOD}",
    "a block": WITH_BLOCK + "\n<<<block B\na\n>>>block B",
    "a block in a fence": f"```json\n{WITH_BLOCK}\n<<<block B\na\n>>>block B\n```",
    "a block without its end": WITH_BLOCK + "\n<<<block B\na",
    "a block without its end in a fence": f"```json\n{WITH_BLOCK}\n<<<block B\na\n```\n",
    "a block before the object": "<<<block B\na\n>>>block B\n" + WITH_BLOCK,
    "a block under a name in other letters": WITH_BLOCK + "\n<<<block b\na\n>>>block b",
    "a block that nothing names": GOOD + "\n<<<block B\na\n>>>block B",
}


@every_row("text", TOLERATED.values(), ids=TOLERATED.keys())
async def test_A6_what_is_only_untidy_needs_no_repair(text):
    answer = await ask(model := FakeModel(text), REQUEST, Decision, lambda _: None, known)
    action = answer.value.actions[0]
    assert (len(model.requests), action.operation, action.args) == (1, "file_ops.delete_file", {"path": "a"})


REPLIES = {
    "lines": '{"reply": ["one", "two"]}',
    "an object with the text": '{"reply": {"text": "one\\ntwo"}}',
    "an object with a block": '{"reply": {"text": {"block": "R"}}}\n<<<block R\none\ntwo\n>>>block R',
    "a block": '{"reply": {"block": "R"}}\n<<<block R\none\ntwo\n>>>block R',
    "a block without its end": '{"reply": {"block": "R"}}\n<<<block R\none\ntwo\n',
    "a block that nothing names": '{"reply": ""}\n<<<block R\none\ntwo\n>>>block R',
    "two of them, one with the right name": (
        '{"next_step": "done"}\n<<<block REPLY\none\ntwo\n>>>block REPLY\n<<<block x\n1\n>>>block x'
    ),
    "an empty object before a block": "{}\n<<<block R\none\ntwo\n>>>block R",
    "no actions, in words": '{"reply": "one\\ntwo", "actions": "None", "step": "none"}',
    "no actions, as an object": '{"reply": "one\\ntwo", "actions": {}, "state_delta": []}',
    "a block beside an empty reply": '{"reply": " "}\n<<<block R\none\ntwo\n>>>block R',
    "another name": '{"response": "one\\ntwo", "next_step": "done"}',
    "an object around it": '{"output": {"reply": "one\\ntwo"}, "type": "Decision"}',
}


@every_row("text", REPLIES.values(), ids=REPLIES.keys())
async def test_A6_a_reply_may_take_any_form_that_is_plain(text):
    answer = await ask(model := FakeModel(text), REQUEST, Decision, lambda _: None, known)
    assert (len(model.requests), answer.value.reply, answer.value.next_step) == (1, "one\ntwo", "done")
