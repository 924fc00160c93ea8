"""Raw blocks: content outside the JSON, exactly as it is (A7)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.domain.decision import Decision
from duckflow.llm.answers.answer_fields import read_fields
from duckflow.llm.answers.raw_blocks import MAX_FILLED
from duckflow.llm.answers.strict_json import UnusableAnswer
from duckflow.services.task_lists import TaskListDraft
from fakes.rows import every_row


def answer(**args):
    action = {"operation": "file_ops.write_file", "args": args}
    return json.dumps({"next_step": "continue", "actions": [action]})


WRITE = answer(path="a.py", content={"block": "main"})


def read_answer(text, shape=Decision, *, ended=False):
    """The fields of an answer; all that is wrong with it, if there is anything."""
    read = read_fields(text, shape, ended=ended)
    if read.faults:
        raise UnusableAnswer(*read.faults)
    return read.fields


def args_of(text, *, ended=False):
    return read_answer(text, ended=ended)["actions"][0]["args"]


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


MARKERS = {
    "indented end": f"{WRITE}\n<<<block main\nx\n  >>>block main\n",
    "end without a name": f"{WRITE}\n<<<block main\nx\n>>>block\nThat is all.",
    "end with the name in other letters": f"{WRITE}\n<<<block main\nx\n>>>block MAIN \n",
    "name in other letters": f"{WRITE}\n<<<block MAIN\nx\n>>>block MAIN\n",
    "indented markers, content at the first column": f"{WRITE}\n  <<<block main\nx\n  >>>block main\n",
    "the same block twice": f"{WRITE}\n" + "<<<block main\nx\n>>>block main\n" * 2,
    "before the object": f"<<<block main\nx\n>>>block main\n{WRITE}",
    "before the object, with objects in another": (
        f'Here:\n<<<block b\n{{"no": 1}}\n>>>block b\n<<<block main\nx\n>>>block main\n```json\n{WRITE}\n```'
    ),
    "second end without a name": (f"{WRITE}\n<<<block other\ny\n>>>block\n<<<block main\nx\n>>>block\n"),
}


@every_row("text", MARKERS.values(), ids=MARKERS.keys())
def test_A6_A7_markers_that_can_mean_only_one_thing_are_understood(text):
    assert args_of(text)["content"] == "x\n"


OPEN_ENDS = {
    "ended by a line break": (f"{WRITE}\n<<<block main\nx\n", "x\n"),
    "ended by nothing": (f"{WRITE}\n<<<block main\nx", "x\n"),
    "empty": (f"{WRITE}\n<<<block main", ""),
    "a fence around all": (f"```json\n{WRITE}\n<<<block main\nx\n```\n", "x\n"),
    "a fence around the block": (f"```json\n{WRITE}\n```\n```\n<<<block main\nx\n```", "x\n"),
    "a fence in the content": (f"{WRITE}\n<<<block main\n```\nx\n```\n", "```\nx\n```\n"),
    "a fence in the content and around all": (
        f"```json\n{WRITE}\n<<<block main\n```\nx\n```\n```\n",
        "```\nx\n```\n",
    ),
    "a fence that the answer closed before": (f"```json\n{WRITE}\n```\n<<<block main\nx\n```", "x\n```\n"),
    "a prompt of Python's": (f"{WRITE}\n<<<block main\n>>> block = 1\n", ">>> block = 1\n"),
    "other blocks before it": (f"{WRITE}\n<<<block b\n1\n>>>block b\n<<<block main\nx\n", "x\n"),
}


@every_row(("text", "content"), OPEN_ENDS.values(), ids=OPEN_ENDS.keys())
def test_A6_the_last_block_needs_no_end_line_if_the_model_stopped_on_its_own(text, content):
    assert args_of(text, ended=True)["content"] == content
    with pytest.raises(UnusableAnswer, match="the block main has no end"):
        args_of(text)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_A6_a_last_block_without_its_end_line_holds_all_that_follows(content):
    if "block" in content or "\r" in content:
        return
    whole = content if content.endswith("\n") or not content else content + "\n"
    assert args_of(f"{WRITE}\n<<<block main\n{content}", ended=True)["content"] == whole


@every_row(
    ("body", "where"),
    [
        ({"rationale": {"block": "B"}}, ("rationale",)),
        ({"goal_consistency": {"block": "B"}}, ("goal_consistency",)),
        ({"state_delta": {"constraints": ["one", {"block": "B"}]}}, ("state_delta", "constraints", 1)),
        (
            {"actions": [{"operation": "a.b", "args": {}, "reasoning": {"block": "B"}}]},
            ("actions", 0, "reasoning"),
        ),
        (
            {"actions": [{"operation": "a.b", "args": {"path": {"block": "B"}}}]},
            ("actions", 0, "args", "path"),
        ),
        (
            {"actions": [{"operation": "a.b", "args": {"pattern": {"block": "B"}}}]},
            ("actions", 0, "args", "pattern"),
        ),
    ],
)
def test_A6_a_block_may_be_any_text_and_one_line_is_taken_without_its_line_break(body, where):
    value = read_answer(json.dumps({"reply": "x", **body}) + "\n<<<block B\nyes: a\n>>>block B\n")
    for part in where:
        value = value[part]
    assert value == "yes: a"


def test_an_argument_called_block_is_no_block():
    assert args_of('{"actions": [{"operation": "mcp.a.b", "args": {"block": "B"}}]}') == {"block": "B"}


@every_row(
    "own", [{"reply": "Hi"}, {"actions": [{"operation": "a.b", "args": {"text": "Hi"}}], "reply": "x"}]
)
def test_A6_a_block_that_nothing_names_is_left_out_beside_a_reply_and_that_is_said(own):
    read = read_fields(json.dumps(own) + "\n<<<block B\n1\n>>>block B\n", Decision, ended=True)
    assert (read.faults, read.unused) == ((), ("B",))
    assert read.notes == ("Nothing named the block B, so it was left out.",)
    assert read.fields["reply"] == own["reply"]


def test_A6_a_block_that_nothing_names_is_the_reply_if_there_is_no_other():
    read = read_fields(f"{answer(path='a')}\n<<<block B\nHi.\n\n>>>block B\n", Decision, ended=True)
    assert (read.fields["reply"], read.notes, read.unused) == ("Hi.", (), ())
    assert read.hints == ('no argument names the block B: use it as {"block": "B"} or leave it out',)


def test_an_argument_that_is_the_name_of_a_block_is_not_taken_as_it_is():
    with pytest.raises(UnusableAnswer, match="an argument is the text 'CODE'"):
        read_answer(f"{answer(path='a.py', content='CODE')}\n<<<block CODE\nx\n>>>block CODE\n")


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
    assert read_answer(text, TaskListDraft)["tasks"][0]["args"] == {"content": "1\n"}


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
    "two indented ends": (f"{WRITE}\n<<<block main\n  >>>block main\nx\n  >>>block main\n", "has no end"),
    "all of it indented": (f"{WRITE}\n  <<<block main\n  x\n  >>>block main\n", "the block main is indented"),
    "no end before the next": (
        f"{WRITE}\n<<<block a\n1\n<<<block main\nx\n>>>block main\n",
        "the block a has no end",
    ),
    "twice, and different": (
        f"{WRITE}\n<<<block main\nx\n>>>block main\n<<<block main\ny\n>>>block main\n",
        "two blocks with the name main",
    ),
    "own end inside": (f"{WRITE}\n<<<block main\na\n>>>block main\nb\n>>>block main\n", "ends no block"),
    "before the object, without an end": (f"<<<block main\nx\n{WRITE}", "the block main has no end"),
    "only a block": ("<<<block main\nx\n>>>block main\n", "there is no JSON object"),
    "second object after": (
        f"{WRITE}\n<<<block main\nx\n>>>block main\n{answer(path='b')}",
        "more than one JSON object",
    ),
    "NUL": (f"{WRITE}\n<<<block main\na\0b\n>>>block main\n", "the character U+0000"),
    "huge JSON before blocks": ('{"a": "' + "x" * 2_000_001 + '"}\n<<<block x\n1\n>>>block x', "too large"),
    "JSON with a marker in a huge string": ('{"a": "\n<<<block x\n' + "x" * 2_000_001 + '"}', "too large"),
}


@every_row(("text", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_A7_refused_with_exact_words(text, words):
    with pytest.raises(UnusableAnswer) as caught:
        read_answer(text)
    assert words in caught.value.problem


UNCLEAR_ENDS = {
    "ended by another name": f"{WRITE}\n<<<block main\nx\n>>>block mai\n",
    "another block without an end": f"{WRITE}\n<<<block main\nx\n<<<block b\ny\n",
    "before the object": f"<<<block main\nx\n{WRITE}",
}


@every_row("text", UNCLEAR_ENDS.values(), ids=UNCLEAR_ENDS.keys())
def test_A6_an_end_that_may_be_meant_elsewhere_is_unclear(text):
    with pytest.raises(UnusableAnswer, match="the block main has no end"):
        read_answer(text, ended=True)


def test_a_block_used_over_and_over_can_not_grow_without_bound():
    text = answer(a=[{"block": "x"}] * 9)
    with pytest.raises(UnusableAnswer, match="fill in more than"):
        read_answer(f"{text}\n<<<block x\n{'x' * (MAX_FILLED // 8)}\n>>>block x")
