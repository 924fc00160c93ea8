"""Requests to the embedded runtime and its errors; no model needed."""

import pytest

from duckflow.domain.errors import Unavailable
from duckflow.domain.model import ChatMessage, ModelRequest, StreamEnd, TextPiece, Usage
from duckflow.llm.local.process import thread_counts, usable_cores
from duckflow.llm.local.protocol import SCHEMA, completion, load_failure, loosen, refusal
from duckflow.llm.wire.json_fields import JsonFields
from duckflow.llm.wire.openai import OpenAIResponse
from fakes.rows import every_row


def request(**changes: object) -> ModelRequest:
    messages = (ChatMessage(role="user", text="Hello"),)
    return ModelRequest.model_validate({"output": "Text", "messages": messages, **changes})


def test_the_temperature_is_zero_unless_asked_otherwise():
    assert completion(request())["temperature"] == 0.0
    assert completion(request(temperature=0.7))["temperature"] == 0.7


def test_the_schema_goes_along_only_where_there_is_one():
    assert SCHEMA not in completion(request())
    assert completion(request(answer_schema={"type": "string"}))[SCHEMA] == {"type": "string"}


def test_a_stop_goes_along_only_where_there_is_one():
    assert "stop" not in completion(request())
    assert completion(request(stop=("\n```",)))["stop"] == ["\n```"]


def test_limits_on_the_length_of_strings_are_left_out_and_nothing_else():
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 200},
            "maxLength": {"type": "integer", "maximum": 5},
            "list": {"type": "array", "items": {"anyOf": [{"type": "string", "maxLength": 9}]}},
        },
        "required": ["maxLength"],
    }
    assert loosen(schema) == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "maxLength": {"type": "integer", "maximum": 5},
            "list": {"type": "array", "items": {"anyOf": [{"type": "string"}]}},
        },
        "required": ["maxLength"],
    }


def taken(*chunks: dict) -> tuple[str, list]:
    """Return the text of the chunks, and the end."""
    answer = OpenAIResponse()
    pieces = [piece for chunk in chunks for piece in answer.add_chunk(JsonFields(chunk))]
    text = "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))
    return text, list(answer.rest())


def test_an_answer_without_an_end_is_cut_off():
    with pytest.raises(Unavailable) as caught:
        taken({"choices": [{"delta": {"content": "Du"}, "finish_reason": None}]})
    assert caught.value.key == "llm.cut_off"


def test_the_end_has_its_reason_and_what_was_used_and_progress_and_thinking_bring_no_characters():
    details = {"prompt_tokens_details": {"cached_tokens": 32}}
    usage = Usage(input_tokens=33, cached_tokens=32, output_tokens=3)
    assert taken(
        {"choices": [{"delta": {"content": None}}], "prompt_progress": {"total": 9}},
        {"choices": [{"delta": {"reasoning_content": "hm"}}]},
        {"choices": [{"delta": {}, "finish_reason": "length"}]},
        {"choices": [], "usage": {"prompt_tokens": 33, "completion_tokens": 3, **details}},
    ) == ("", [StreamEnd(stop="length", usage=usage)])


def test_what_the_runtime_refuses_is_passed_on():
    refused = refusal({"code": 400, "message": "failed to parse grammar"})
    assert (refused.key, refused.values["detail"]) == ("embedded.refused", "failed to parse grammar")


@every_row(
    ("status", "printed", "key"),
    [
        (1, "E gguf_init_from_reader: invalid magic characters: 'abcd', expected 'GGUF'", "not_gguf"),
        (1, "E tensor 'x' data is not within the file bounds, model is corrupted", "cut_file"),
        (1, "E ggml_aligned_malloc: insufficient memory (attempted to allocate 9 MB)", "no_memory"),
        (1, "terminate called after throwing an instance of 'std::bad_alloc'", "no_memory"),
        (-9, "", "no_memory"),
        (-4, "", "load_failed"),
        (1, "E unknown model architecture: 'duck'", "load_failed"),
    ],
)
def test_why_a_file_can_not_be_loaded_is_told_apart(status, printed, key):
    assert load_failure("model.gguf", "Failed to init server", status, printed).key == f"embedded.{key}"


@every_row(
    ("cores", "wanted", "threads"),
    [(1, None, (1, 1)), (2, None, (2, 2)), (8, None, (7, 8)), (8, 3, (3, 3))],
)
def test_one_core_is_left_free_where_there_are_more_than_two(cores, wanted, threads):
    assert thread_counts(cores, wanted) == threads


def test_a_containers_limit_on_cores_is_kept(tmp_path):
    quota = tmp_path / "cpu.max"
    without = usable_cores(quota)
    quota.write_text("max 100000\n")
    assert usable_cores(quota) == without >= 1
    quota.write_text("50000 100000\n")
    assert usable_cores(quota) == 1
