"""Raw blocks: content outside the JSON, exactly as it is (SPEC A7)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.llm.answers.raw_blocks import MAX_FILLED, read_answer
from duckflow.llm.answers.strict_json import UnusableAnswer
from fakes.rows import every_row


def answer(**args):
    action = {"operation": "file_ops.write_file", "args": args}
    return json.dumps({"next_step": "continue", "actions": [action]})


WRITE = answer(path="a.py", content={"block": "main"})


def args_of(text):
    return read_answer(text)["actions"][0]["args"]


def test_A7_a_block_stands_for_the_argument_that_names_it():
    code = 'print("\\n")\n\tif x: {"a": 1}\n'
    assert args_of(f"{WRITE}\n<<<block main\n{code}>>>block main\n") == {"path": "a.py", "content": code}


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_A7_any_content_of_whole_lines_arrives_as_it_is(content):
    content = content + "\n" if content else ""
    if ">>>block main" in content:
        return
    assert args_of(f"{WRITE}\n<<<block main\n{content}>>>block main")["content"] == content


def test_the_last_line_keeps_its_line_break_and_an_empty_block_is_empty():
    assert args_of(f"{WRITE}\n<<<block main\nx\n>>>block main")["content"] == "x\n"
    assert args_of(f"{WRITE}\n<<<block main\n\n>>>block main")["content"] == "\n"
    assert args_of(f"{WRITE}\n<<<block main\n>>>block main")["content"] == ""


def test_windows_line_ends_of_markers_are_tolerated_and_those_of_the_content_kept():
    assert args_of(f"{WRITE}\r\n<<<block main\r\na\r\nb\r\n>>>block main\r\n")["content"] == "a\r\nb\r\n"


@every_row(
    "text",
    [
        f"```json\n{WRITE}\n<<<block main\nx\n>>>block main\n```",
        f"```json\n{WRITE}\n```\n<<<block main\nx\n>>>block main\n",
        f"```json\n{WRITE}\n```\n```\n<<<block main\nx\n>>>block main\n```\nDone!",
        f"Here it is.\n{WRITE}\nAnd the file:\n\n<<<block main  \nx\n>>>block main  ",
    ],
)
def test_fences_and_chatter_around_blocks_are_tolerated(text):
    assert args_of(text)["content"] == "x\n"


def test_blocks_may_fill_nested_arguments_and_each_other_s_markers_are_content():
    edits = {
        "path": "a",
        "edits": [{"find": {"block": "old"}, "replace": {"block": "new"}}],
        "keep": {"block": 1},
    }
    old, new = ">>>block new\n<<<block new\n", "b\n"
    text = f"{answer(**edits)}\n<<<block old\n{old}>>>block old\n<<<block new\n{new}>>>block new\n"
    assert args_of(text) == {
        "path": "a",
        "edits": [{"find": old, "replace": new}],
        "keep": {"block": 1},
    }


def test_one_block_may_be_used_twice():
    text = answer(a={"block": "x"}, b=[{"block": "x"}])
    assert args_of(f"{text}\n<<<block x\n1\n>>>block x") == {"a": "1\n", "b": ["1\n"]}


def test_blocks_fill_the_tasks_of_a_task_list_too():
    text = '{"tasks": [{"operation": "o", "args": {"content": {"block": "x"}}}]}\n<<<block x\n1\n>>>block x'
    assert read_answer(text)["tasks"][0]["args"] == {"content": "1\n"}


def test_json_escaped_content_is_accepted_beside_blocks():
    assert args_of(answer(content="a\nb\n")) == {"content": "a\nb\n"}


def test_a_large_block_is_not_held_to_the_limit_of_the_json():
    content = "x" * 3_000_000 + "\n"
    assert args_of(f"{WRITE}\n<<<block main\n{content}>>>block main\n")["content"] == content


def test_a_marker_inside_a_json_string_is_no_block():
    assert args_of('{"actions": [{"args": {"content": "a\n<<<block x\nb\n"}}]}') == {
        "content": "a\n<<<block x\nb\n"
    }


REFUSED = {
    "missing": (WRITE, "actions[0].args.content names the block 'main', but no line `<<<block main` follows"),
    "other name": (f"{WRITE}\n<<<block mian\nx\n>>>block mian", "names the block 'main', but no line"),
    "unterminated": (
        f"{WRITE}\n<<<block main\nx\n",
        "the block main has no end: a line `>>>block main` is missing",
    ),
    "cut in the marker": (f"{WRITE}\n<<<block main", "the block main has no end"),
    "ended by another name": (f"{WRITE}\n<<<block main\nx\n>>>block mai\n", "the block main has no end"),
    "indented end": (f"{WRITE}\n<<<block main\nx\n  >>>block main\n", "the block main has no end"),
    "twice": (f"{WRITE}\n" + "<<<block main\nx\n>>>block main\n" * 2, "two blocks with the name main"),
    "unused": (
        f"{answer()}\n<<<block x\n1\n>>>block x",
        'no argument names the block x: use it as {"block": "x"}',
    ),
    "unused, no actions": ('{"reply": "a"}\n<<<block x\n1\n>>>block x', "no argument names the block x"),
    "own end inside": (f"{WRITE}\n<<<block main\na\n>>>block main\nb\n>>>block main\n", "ends no block"),
    "before the object": (f"<<<block main\nx\n>>>block main\n{WRITE}", "stands before the JSON object"),
    "second object after": (
        f"{WRITE}\n<<<block main\nx\n>>>block main\n{WRITE}",
        "more than one JSON object",
    ),
    "goes on after": ('{"actions": []}\n<<<block x\n1\n>>>block x', "no argument names"),
    "NUL": (f"{WRITE}\n<<<block main\na\0b\n>>>block main\n", "the character U+0000"),
    "huge JSON before blocks": ('{"a": "' + "x" * 2_000_001 + '"}\n<<<block x\n1\n>>>block x', "too large"),
    "JSON with a marker in a huge string": ('{"a": "\n<<<block x\n' + "x" * 2_000_001 + '"}', "too large"),
}


@every_row(("text", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_A7_refused_with_exact_words(text, words):
    with pytest.raises(UnusableAnswer) as caught:
        read_answer(text)
    assert words in caught.value.problem


def test_a_block_used_over_and_over_can_not_grow_without_bound():
    text = answer(a=[{"block": "x"}] * 9)
    with pytest.raises(UnusableAnswer, match="fill in more than"):
        read_answer(f"{text}\n<<<block x\n{'x' * (MAX_FILLED // 8)}\n>>>block x")
