"""K7: providers' words for "the prompt is too long", and what they tell of the window."""

import tomllib
from pathlib import Path
from typing import Any

from duckflow.domain.errors import PromptTooLong, ProviderError, Unavailable
from duckflow.llm.endpoints import find_endpoint
from duckflow.llm.wire.errors import status_failure
from duckflow.llm.wire.window_errors import TooLong, read_too_long
from fakes.rows import every_row

SAID = tomllib.loads(Path(__file__).with_name("window_errors.toml").read_text("utf-8"))
ENDPOINT = find_endpoint("openai:m", {"OPENAI_API_KEY": "k"})


@every_row("case", SAID["too_long"])
def test_K7_the_words_of_each_provider_are_understood(case: dict[str, Any]):
    window, asked = case["window"] or None, case["asked"] or None
    assert read_too_long(case["status"], case["body"]) == TooLong(window, asked), case["name"]
    error = status_failure(ENDPOINT, case["status"], case["body"])
    assert isinstance(error, PromptTooLong)
    assert (error.window, error.asked) == (window, asked)


@every_row("case", SAID["other"])
def test_K7_other_errors_are_not_taken_for_it(case: dict[str, Any]):
    error = status_failure(ENDPOINT, case["status"], case["body"])
    assert type(error) is (Unavailable if case["waits"] else ProviderError), case["name"]


@every_row("body", ["", "[]", "null", "{" * 5000, "context length " * 5000, "9" * 60_000])
def test_K7_nonsense_is_read_quickly_and_tells_nothing(body: str):
    assert read_too_long(400, body) in (None, TooLong())
