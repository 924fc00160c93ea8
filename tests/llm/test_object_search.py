"""Finding the object: fences, chatter, thoughts, and what must never be taken for the answer."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from duckflow.llm.answers.json_object import after_thoughts
from duckflow.llm.answers.raw_blocks import find_parts
from duckflow.llm.answers.strict_json import UnusableAnswer
from fakes.rows import every_row

OBJECT = {"next_step": "done", "reply": "hi {there}"}
JSON = json.dumps(OBJECT)
OTHER = JSON.replace("hi", "ho")


def read_answer(text):
    found, _ = find_parts(after_thoughts(text))
    if found.faults:
        raise UnusableAnswer(*found.faults)
    return found.value


ACCEPTED = {
    "bare": JSON,
    "fence with a name": f"```json\n{JSON}\n```",
    "fence without a name": f"```\n{JSON}\n```\n",
    "fence on one line": f"```json {JSON}```",
    "byte order mark": "\ufeff" + JSON,
    "chatter before": f"Sure, here is the decision:\n\n{JSON}",
    "chatter on the same line": f"Decision: {JSON}",
    "chatter after": f"{JSON}\n\nLet me know if you need more.",
    "chatter in Japanese": f"はい、次のようにします。\n```json\n{JSON}\n```\n以上です。",
    "braces in prose": f"I fill {{name}} and {{ }} and {{0}} in `f() {{ return x; }}`:\n{JSON}",
    "empty object in prose": f"function f() {{}} does it.\n{JSON}",
    "JavaScript object in prose": f'Like {{a: 1, b: {{"c": 2}}}} there.\n{JSON}',
    "braces in prose after": f"{JSON}\nThat fills {{name}} in.",
    "thoughts before": f'<think>Maybe {{"next_step": "continue"}}? No.</think>\n{JSON}',
    "thoughts without a beginning": f'Maybe {{"next_step": broken}}? No.\n</think>\n\n{JSON}',
    "indented": json.dumps(OBJECT, indent=4),
    "the same once more": f"{JSON}\n{JSON}",
    "the same in two fences": f"```json\n{JSON}\n```\nAgain:\n```json\n{json.dumps(OBJECT, indent=2)}\n```",
    "a brace too many": JSON + "}",
    "brackets too many, then prose": JSON + "}\n]\n\nThat is all.",
    "blocks before it": f'<<<block a\n{{"no": 1}}\n>>>block a\n{JSON}',
    "Windows line ends": json.dumps(OBJECT, indent=1).replace("\n", "\r\n"),
}


@every_row("text", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_the_object_is_found_whatever_stands_around_it(text):
    assert read_answer(text) == OBJECT


def test_a_fence_inside_a_string_of_the_object_is_content():
    reply = 'Use:\n```json\n{"a": 1}\n```\n'
    assert read_answer(
        'Sure.\n{"next_step": "done", "reply": ' + json.dumps(reply).replace("\\n", "\n") + "}"
    ) == {
        "next_step": "done",
        "reply": reply,
    }


REFUSED = {
    "nothing": ("", "the answer is empty"),
    "white space": (" \n\t", "the answer is empty"),
    "only thoughts": ("<think>hm</think>\n", "the answer is empty"),
    "no object": ("I would read the file first.", "there is no JSON object"),
    "wrong language": ("すみません、できません。", "there is no JSON object"),
    "a list": ('["next_step", "done"]', "there is no JSON object"),
    "two objects": (f"{JSON}\n{OTHER}", "more than one JSON object"),
    "two fences": (f"```json\n{JSON}\n```\nor\n```json\n{OTHER}\n```", "more than one JSON object"),
    "the same, then another": (f"{JSON}\n{JSON}\n{OTHER}", "more than one JSON object"),
    "the same, cut": (f"{JSON}\n{JSON[:-1]}", "more than one JSON object"),
    "an object inside a list": (f'["x", {JSON}]', "closed too early or closed twice"),
    "closed too early": ('{"next_step": "continue"}, "actions": []}', "closed too early"),
    "closed twice, and goes on": (JSON + '}, "actions": []}', "closed too early or closed twice"),
    "the first brace is missing": (
        '"reply": "x", "state_delta": {"goal": "y"}, "next_step": "done"}',
        "closed too",
    ),
    "the first brace is missing, and only a list is left": (
        '"reply": "x", "actions": [{"operation": "a.b"}]}',
        "closed too",
    ),
    "the first brace is missing, and only an object is left": ('"state_delta": {"goal": "y"}}', "closed too"),
    "a broken object before a whole one": (f'{{"next_step": done}}\n{JSON}', "'done' is not a JSON value"),
    "a broken object in chatter before a whole one": (f'So {{"a": b}}:\n{JSON}', "'b' is not a JSON value"),
    "more braces than prose has": ("{a:} " * 300_000 + JSON, "expected a key in double quotes"),
    "an object inside a JavaScript object": (
        f"The answer is {{decision: {JSON}}}",
        "expected a key in double quotes",
    ),
    "JSON5": ('{next_step: \'done\', state_delta: {"goal": "x"}}', "expected a key in double quotes"),
    "cut": (JSON[:-5], "the text ends inside this string"),
    "cut in a fence": ("```json\n" + JSON[:-1], "ends before the object does"),
    "an escaped object": (json.dumps(JSON), "there is no JSON object"),
    "too large": ("x" * 5_000_000, "too large"),
    "too large in a fence": ('```json\n{"a": "' + "x" * 5_000_000 + '"}', "too large"),
    "too deep in chatter": ("Well: " + '{"a":' * 10_000, "nested deeper"),
    "ten thousand brackets": ("[" * 10_000, "there is no JSON object"),
    "ten thousand braces": ("{" * 10_000, "expected a key"),
}


@every_row(("text", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_with_exact_words_A6(text, words):
    with pytest.raises(UnusableAnswer) as caught:
        read_answer(text)
    assert words in caught.value.problem


@given(st.text(alphabet="{}[]\"'`<>/:,ab \n\\") | st.text())
@example("{'" * 50)
@example("{a:" * 50 + '"')
def test_any_text_gives_an_object_or_a_refusal(text):
    try:
        found = read_answer(text)
    except UnusableAnswer as fault:
        found, problem = None, fault.problem
        problem.encode("utf-8", "surrogatepass")
    assert found is None or json.dumps(found)


@given(st.text(alphabet="abc あ{}:;()=\n`", max_size=60), st.text(alphabet="abc あ()=\n`{", max_size=60))
def test_prose_around_an_object_never_changes_what_is_read(before, after):
    try:
        found = read_answer(f"{before}\n{JSON}\n{after}")
    except UnusableAnswer:
        return
    assert found == OBJECT
