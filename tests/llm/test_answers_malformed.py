"""What models really send when they go wrong: none of it is taken, one repair, one clear error (A6)."""

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
    "wrong field": GOOD.replace('"actions"', '"action_list"'),
    "extra field": GOOD[:-1] + ', "thought": "x"}',
    "extra field in an action": GOOD.replace('"args"', '"type": "delete", "args"'),
    "state it may not set": GOOD[:-1] + ', "state_delta": {"mode": "auto"}}',
    "step that does not exist": GOOD[:-1] + ', "step": "FINISHED"}',
    "operation is a number": GOOD.replace('"file_ops.delete_file"', "7"),
    "operation is empty": GOOD.replace("file_ops.delete_file", ""),
    "unknown operation": GOOD.replace("file_ops.delete_file", "file_ops.destroy"),
    "args is a list": GOOD.replace('{"path": "a"}', '["a"]'),
    "actions is an object": json.dumps({"next_step": "continue", "actions": ACTION}),
    "action is a string": json.dumps({"next_step": "continue", "actions": ["rm a"]}),
    "the action alone": json.dumps(ACTION),
    "a list of one": f"[{GOOD}]",
    "two objects": GOOD + "\n" + GOOD,
    "two fences": f"```json\n{GOOD}\n```\n```json\n{GOOD}\n```",
    "object and list": GOOD + "\n" + json.dumps([ACTION]),
    "closed too early": '{"next_step": "done", "reply": "ok"}, "actions": [{"operation": "x"}]}',
    "one brace too many": GOOD + "}",
    "an object around": json.dumps({"Decision": json.loads(GOOD)}),
    "escaped twice": json.dumps(GOOD),
    "JSON5": "{next_step: 'continue', reply: 'ok', actions: [{\"operation\": \"x\"}],}",
    "comments": GOOD.replace('"reply"', '// say\n"reply"'),
    "comma at the end": GOOD[:-1] + ",}",
    "single quotes": GOOD.replace('"', "'"),
    "typographic quotes": GOOD.replace('"', "”"),
    "wide punctuation": GOOD.replace(":", "："),
    "Python": str(json.loads(GOOD)).replace("'", '"').replace('"ok"', "None or True"),
    "null bytes": GOOD.replace("ok", "o\0k"),
    "null bytes between": GOOD.replace(" ", "\0"),
    "escaped null": GOOD.replace("ok", "o\\u0000k"),
    "UTF-16 read as Latin": GOOD.encode("utf-16").decode("latin-1"),
    "lone surrogate": GOOD.replace("ok", "\\ud83e"),
    "missing block": GOOD.replace('"a"', '{"block": "a"}'),
    "cut block": GOOD.replace('"a"', '{"block": "a"}') + "\n<<<block a\nx",
    "unused block": GOOD + "\n<<<block a\nx\n>>>block a",
    "nothing said or done": '{"next_step": "done", "reply": "  ", "actions": []}',
    "next_step of another kind": GOOD.replace('"continue"', "true"),
}


def known(decision):
    """Only what the fake catalogue has may be called."""
    unknown = [action.operation for action in decision.actions if action.operation != ACTION["operation"]]
    return f"there is no operation {unknown[0]}" if unknown else None


@every_row("text", MALFORMED.values(), ids=MALFORMED.keys())
async def test_A6_malformed_answers_are_never_taken_and_repaired_exactly_once(text):
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


TOLERATED = {
    "byte order mark": "\ufeff" + GOOD,
    "fence": f"```json\n{GOOD}\n```",
    "fence and chatter": f"Of course!\n\n```\n{GOOD}\n```\n\nAnything else?",
    "raw line breaks in strings": GOOD.replace("ok", "o\n\tk"),
    "nulls for what is missing": GOOD[:-1] + ', "state_delta": null, "rationale": null, "confidence": null}',
}


@every_row("text", TOLERATED.values(), ids=TOLERATED.keys())
async def test_what_is_only_untidy_needs_no_repair(text):
    answer = await ask(FakeModel(text), REQUEST, Decision, lambda _: None, known)
    assert (answer.tries, answer.value.actions[0].operation) == (1, "file_ops.delete_file")
