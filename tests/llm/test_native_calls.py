"""Native tool calls become the same Decision as JSON does (SPEC A8)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.domain.decision import Decision
from duckflow.domain.model import ToolCall
from duckflow.llm.answers.native_calls import native_name, operation_of, read_native
from duckflow.llm.answers.strict_json import UnusableAnswer
from fakes.rows import every_row

READ = ToolCall(name="file_ops__read_file", arguments='{"path": "a.py"}')
RUN = ToolCall(name="shell.run", arguments='{"command": "ls"}')


def decide(text, *calls):
    return Decision.model_validate(read_native(text, calls))


def test_names_go_there_and_back():
    assert native_name("file_ops.write_file") == "file_ops__write_file"
    assert operation_of("file_ops__write_file") == "file_ops.write_file"
    assert operation_of("file_ops.write_file") == "file_ops.write_file"


@given(st.text(st.characters(exclude_categories=["Cs"])) | st.text(alphabet="ab._-x5fé"))
def test_every_operation_name_fits_what_providers_take_and_comes_back(name):
    native = native_name(name)
    assert re.fullmatch("[A-Za-z0-9_-]*", native)
    assert operation_of(native) == name


@given(st.text())
def test_any_name_a_model_invents_stands_for_something_printable(name):
    operation_of(name.encode("utf-8", "replace").decode()).encode()


def test_A8_calls_in_order_are_the_actions_and_the_text_is_the_reply():
    decision = decide("I look first.\n", READ, RUN)
    assert [action.operation for action in decision.actions] == ["file_ops.read_file", "shell.run"]
    assert [action.args for action in decision.actions] == [{"path": "a.py"}, {"command": "ls"}]
    assert (decision.reply, decision.next_step) == ("I look first.", "continue")


def test_A8_text_alone_is_a_finished_reply():
    decision = decide('It is `{"a": 1}` in the file, {so}.')
    assert (decision.reply, decision.next_step) == ('It is `{"a": 1}` in the file, {so}.', "done")
    assert decision.actions == ()


def test_A8_calls_alone_are_a_decision():
    assert decide("", RUN).next_step == "continue"


def test_A8_a_decision_in_the_text_is_merged_with_the_calls():
    text = '```json\n{"next_step": "pending_user", "reply": "Hm", "confidence": 0.5, "actions": [%s]}\n```'
    listed = '{"operation": "shell.run", "args": {"command": "ls"}, "reasoning": "see"}, {"operation": "x.y"}'
    decision = decide(text % listed, READ, RUN)
    assert (decision.next_step, decision.reply, decision.confidence) == ("pending_user", "Hm", 0.5)
    assert [action.operation for action in decision.actions] == ["x.y", "file_ops.read_file", "shell.run"]


def test_a_decision_in_the_text_without_next_step_takes_it_from_the_calls_only():
    assert decide('{"actions": []}', RUN).next_step == "continue"
    assert "next_step" not in read_native('{"actions": [{"operation": "x.y"}]}', [])


def test_thoughts_are_no_part_of_the_reply():
    assert decide("<think>Maybe {x}.</think>\nYes.").reply == "Yes."


def test_a_call_may_name_a_raw_block_of_the_text_A7():
    call = ToolCall(name="file_ops__write_file", arguments='{"path": "a", "content": {"block": "a"}}')
    decision = decide("Writing it.\n<<<block a\nx\n>>>block a\n", call)
    assert decision.actions[0].args == {"path": "a", "content": "x\n"}
    assert decision.reply == "Writing it."


def test_empty_arguments_are_none():
    assert decide("", ToolCall(name="task_loop__cancel", arguments="")).actions[0].args == {}


@every_row(
    ("arguments", "words"),
    [
        (
            '{"a": 1, "a": 2}',
            "the arguments of the call of shell.run: line 1, column 10, at '\"a\": 2}': the key 'a'",
        ),
        ('{"a": NaN}', "not a JSON value"),
        ('{"command": "l', "the text ends inside"),
        ('{"command": "ls"} and', "text goes on"),
        ("[]", "must begin with {"),
        ('{"a":' * 10_000, "nested deeper"),
        ('{"a": "' + "x" * 2_000_000 + '"}', "too large"),
        ('{"content": {"block": "a"}}', "names the block 'a'"),
    ],
)
def test_A6_bad_arguments_are_refused_with_exact_words(arguments, words):
    with pytest.raises(UnusableAnswer) as caught:
        read_native("", [ToolCall(name="shell__run", arguments=arguments)])
    assert words in caught.value.problem


@every_row(
    "text",
    [
        '{"rationale": "x", "next_st',
        'So: {"next_step": "done", "reply": oops}',
        '{"next_step": "done"}\n{"a": 1}',
    ],
)
def test_a_broken_decision_in_the_text_is_refused_and_never_shown_as_a_reply(text):
    with pytest.raises(UnusableAnswer):
        read_native(text, [])
