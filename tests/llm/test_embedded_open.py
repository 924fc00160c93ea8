"""Which file the embedded model is loaded from, and the sentence for each that can't be."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from duckflow.config.settings import EmbeddedSettings
from duckflow.domain.errors import ProviderError, UsageError
from duckflow.domain.model import ChatMessage, ModelRequest
from duckflow.llm.local import embedded
from duckflow.llm.weights import installation as weights
from fakes.rows import every_row

REQUEST = ModelRequest(output="Text", messages=(ChatMessage(role="user", text="Hello"),), max_tokens=2)


async def failure(file: Path | None, **options: object) -> ProviderError:
    """Return the error of opening or asking the model."""
    try:
        model = await embedded.open_embedded(file, EmbeddedSettings.model_validate(options))
    except ProviderError as exc:
        return exc
    with pytest.raises(ProviderError) as caught:
        await anext(aiter(model.stream(REQUEST)))
    await model.aclose()
    return caught.value


async def name_of(file: Path | None, **options: object) -> str:
    model = await embedded.open_embedded(file, EmbeddedSettings.model_validate(options))
    await model.aclose()
    return model.traits.name


async def test_a_given_file_goes_before_the_configured_one_and_that_before_the_cache(tmp_path, smollm2):
    given, configured = tmp_path / "given.gguf", tmp_path / "configured.gguf"
    given.symlink_to(smollm2)
    shutil.copy(smollm2, configured)
    weights.install("smollm2-135m", from_path=smollm2)
    assert await name_of(given, path=configured) == f"embedded:{smollm2.name}"
    assert await name_of(None, path=configured, model="smollm2-135m") == "embedded:configured.gguf"
    assert await name_of(None, model="smollm2-135m") == "embedded:smollm2-135m"


async def test_without_a_file_the_user_is_told_how_to_get_one():
    wrong = await failure(None)
    assert (wrong.key, wrong.values) == ("embedded.not_installed", {"model": "qwen2.5-coder-1.5b"})


async def test_a_name_that_is_no_model_is_an_error_of_use():
    with pytest.raises(UsageError):
        await embedded.open_embedded(None, EmbeddedSettings(model="gpt-9"))


async def test_a_missing_runtime_is_named(monkeypatch, smollm2):
    monkeypatch.setattr(embedded, "find_spec", lambda name: None)
    assert (await failure(smollm2)).key == "embedded.no_runtime"


async def test_a_file_that_is_not_there(tmp_path):
    assert (await failure(tmp_path / "none.gguf")).key == "embedded.no_file"
    assert (await failure(None, path=tmp_path)).key == "embedded.no_file"


async def test_a_file_that_is_something_else(tmp_path):
    garbage = tmp_path / "garbage.gguf"
    garbage.write_bytes(os.urandom(5000))
    assert (await failure(garbage)).key == "embedded.not_gguf"


async def test_a_file_that_only_begins_like_a_model(tmp_path):
    garbage = tmp_path / "garbage.gguf"
    garbage.write_bytes(b"GGUF" + bytes(range(256)) * 20)
    wrong = await failure(garbage)
    assert (wrong.key, wrong.values["path"]) == ("embedded.load_failed", str(garbage))


async def test_a_file_that_was_cut_short(tmp_path, smollm2):
    short = tmp_path / "short.gguf"
    with smollm2.open("rb") as whole:
        short.write_bytes(whole.read(50_000_000))
    assert (await failure(short)).key == "embedded.cut_file"


async def test_a_project_can_not_stand_in_for_the_runtime(tmp_path, monkeypatch, smollm2):
    for name in ("xllamacpp.py", "json.py", "socket.py"):
        (tmp_path / name).write_text("raise SystemExit('not the real one')")
    monkeypatch.chdir(tmp_path)
    model = await embedded.open_embedded(smollm2, EmbeddedSettings(window=512, threads=1))
    assert [piece async for piece in model.stream(REQUEST)]
    await model.aclose()


async def test_K2_leaving_does_not_wait_for_an_answer_that_was_given_up(monkeypatch, two_layers):
    """A stop is heard between two batches: on a slow processor that is seconds later."""
    model = await embedded.open_embedded(two_layers, EmbeddedSettings(window=2048, threads=1))
    beginning = ChatMessage(role="system", text="You answer.", stable=True)
    messages = (beginning, ChatMessage(role="user", text="Tell a long story."))
    stream = model.stream(ModelRequest(output="Text", messages=messages, max_tokens=500))
    await anext(stream)
    await stream.aclose()
    saving = asyncio.Event()

    async def save(*_: object) -> None:
        saving.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(model, "_save", save)
    monkeypatch.setattr(embedded, "SAVE_LIMIT_S", 3600.0)
    await asyncio.wait_for(model.aclose(), 300)
    assert saving.is_set()


@every_row(
    ("wanted", "processor", "guesses"),
    [
        ("auto", "x86_64", True),
        ("auto", "AMD64", True),
        ("auto", "aarch64", False),
        ("on", "aarch64", True),
        ("off", "x86_64", False),
    ],
)
def test_guessing_by_n_grams_is_for_processors_that_read_fast(wanted, processor: str, guesses: bool):
    assert embedded.drafts(wanted, processor) is guesses
