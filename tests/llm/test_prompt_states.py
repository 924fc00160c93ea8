"""Prompt states are saved, found only for identical models and texts, and limited in size."""

import os
from pathlib import Path

import pytest

from duckflow.config.settings import EmbeddedSettings
from duckflow.domain.model import ChatMessage, ModelRequest, StreamEnd, Usage
from duckflow.llm.local.embedded import EmbeddedModel, open_embedded
from duckflow.llm.local.prompt_states import PromptStates, forget_sessions, states_folder

BEGINNING = ChatMessage(role="system", text="You are a duck that counts. " * 20, stable=True)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    return file


def test_a_state_is_only_found_for_the_same_model_window_and_texts(tmp_path: Path, model: Path):
    first = PromptStates(tmp_path, model, 2048, 10)
    again = PromptStates(tmp_path, model, 2048, 10)
    assert first.name("beginning", "a") == again.name("beginning", "a")
    other = PromptStates(tmp_path, model, 4096, 10)
    names = [first.name("beginning", "a"), first.name("beginning", "b"), first.name("session", "a")]
    model.write_bytes(b"GGUG")
    changed = PromptStates(tmp_path, model, 2048, 10)
    assert len({*names, other.name("beginning", "a"), changed.name("beginning", "a")}) == 5


def test_only_whole_states_count_and_the_oldest_go_first(tmp_path: Path, model: Path):
    states = PromptStates(tmp_path / "states", model, 2048, 1)
    for age, name in enumerate(("new", "middle", "old")):
        draft = states.draft()
        (states.folder / draft).write_bytes(b"x" * 400_000)
        assert not states.has(f"{name}.state")
        states.keep(draft, f"{name}.state")
        if states.has(f"{name}.state"):
            os.utime(states.folder / f"{name}.state", (1000 - age, 1000 - age))
    draft = states.draft()
    (states.folder / draft).write_bytes(b"x" * 400_000)
    states.keep(draft, "newest.state")
    assert sorted(path.name for path in states.folder.iterdir()) == ["new.state", "newest.state"]


def test_sessions_can_be_forgotten_and_the_beginning_stays(tmp_path: Path):
    for name in ("session-1.state", "beginning-1.state"):
        (tmp_path / name).write_bytes(b"")
    forget_sessions(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["beginning-1.state"]


async def usage(model: EmbeddedModel, *said: str) -> Usage:
    messages = (BEGINNING, *(ChatMessage(role="user", text=text) for text in said))
    request = ModelRequest(output="Any", messages=messages, max_tokens=2, temperature=0.0)
    pieces = [piece async for piece in model.stream(request)]
    assert isinstance(pieces[-1], StreamEnd)
    return pieces[-1].usage


async def one_process(file: Path, *said: str) -> Usage:
    model = await open_embedded(file, EmbeddedSettings(window=1024, threads=1))
    try:
        return await usage(model, *said)
    finally:
        await model.aclose()


async def test_J11_nothing_is_read_twice_not_even_in_a_new_process(two_layers: Path):
    """The beginning for everybody, a session for itself; a broken state is thrown away and read again."""
    await one_process(two_layers, "One")
    kept = {path.name.partition("-")[0]: path for path in states_folder().iterdir()}
    assert sorted(kept) == ["beginning", "session"]
    new = await one_process(two_layers, "Two three four five six seven eight nine ten")
    assert new.cached_tokens > 100
    assert new.cached_tokens < new.input_tokens
    same = await one_process(two_layers, "Two three four five six seven eight nine ten")
    assert same.cached_tokens > new.cached_tokens
    for path in states_folder().iterdir():
        path.write_bytes(b"broken")
    assert (await one_process(two_layers, "Two")).output_tokens > 0
    assert all(path.stat().st_size > 1000 for path in states_folder().glob("beginning-*"))
