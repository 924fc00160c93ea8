"""F4: tokens by the model's own tokenizer where it has one to ask, else estimated on the safe side."""

import tomllib
from pathlib import Path

from duckflow.config.settings import LlmSettings
from duckflow.domain.errors import ProviderError
from duckflow.domain.model import ModelClient
from duckflow.llm.retry import RetryingClient
from duckflow.llm.tokens import TokenCounter, estimate_tokens
from duckflow.llm.wrapping_client import WrappingClient
from fakes.model import FakeModel
from fakes.rows import every_row

COUNTED = tomllib.loads(Path(__file__).with_name("tokens.toml").read_text("utf-8"))


@every_row("kind", COUNTED)
def test_F4_the_estimate_is_never_far_below_any_tokenizer(kind: str):
    """A little below only for rows of kanji in cl100k, and for long German words."""
    counts, estimate = COUNTED[kind]["counts"], estimate_tokens(COUNTED[kind]["text"])
    assert estimate >= 0.86 * max(counts.values())
    assert estimate >= 0.98 * counts["qwen"]


@every_row("kind", ["english", "python", "json", "diff", "log", "paths", "japanese", "mixed"])
def test_F4_the_estimate_wastes_little_of_the_window(kind: str):
    counts, estimate = COUNTED[kind]["counts"], estimate_tokens(COUNTED[kind]["text"])
    assert estimate <= 1.4 * max(counts.values())


@every_row("text", ["", "\n" * 1000, " " * 1000, "\x00" * 10, "あ" * 1000, "x" * 1000, "\ud800"])
def test_no_text_is_too_odd_to_be_counted(text: str):
    assert 1 <= estimate_tokens(text) <= 1 + 2 * len(text)


class Counting(FakeModel):
    """A model with a simple tokenizer."""

    async def count_tokens(self, text: str) -> int:
        return len(text.split())


class Broken(FakeModel):
    """A model whose process is gone."""

    async def count_tokens(self, text: str) -> int:
        raise ProviderError("embedded.refused", detail="tokenize")


@every_row("client", [Counting(), WrappingClient(RetryingClient(Counting(), LlmSettings()))])
async def test_F4_a_model_with_a_tokenizer_is_asked(client: ModelClient):
    assert await TokenCounter(client).count("one two three") == 3
    assert await TokenCounter(client).count("") == 0


@every_row(
    "client",
    [None, FakeModel(), RetryingClient(FakeModel(), LlmSettings()), RetryingClient(Broken(), LlmSettings())],
)
async def test_F4_else_it_is_estimated(client: ModelClient | None):
    assert await TokenCounter(client).count("one two three") == estimate_tokens("one two three")
