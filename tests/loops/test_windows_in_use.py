"""F3 and K7 over real HTTP: what was found stays while the window holds it, and errors teach its size."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from duckflow.domain.events import DecisionMade, ErrorReported
from duckflow.llm.tokens import estimate_tokens
from fakes.engine import action, decision, engine
from fakes.model_server import ModelServer, Raw, Reply
from fakes.plays import asked_for, play
from fakes.rows import every_row
from fakes.sent_prompts import written

FILES = [f"part_{number}.txt" for number in range(8)]
SIZE = 30_000
READ = decision("", *(action("read_file", path=name) for name in FILES))
WORK = (READ, decision("", action("list_files")), decision("", action("search", pattern="zzz")))

TOO_LONG = (
    "This model's maximum context length is {limit} tokens. However, your messages resulted in {asked} "
    "tokens. Please reduce the length of the messages."
)


def text_of(name: str) -> str:
    """As ordinary as text can be."""
    line = f"The file {name} has many lines, and each of them says the same.\n"
    return (line * SIZE)[: SIZE - 1].rstrip()


def eight_files(folder: Path) -> Path:
    """Eight files of 30,000 characters."""
    folder.mkdir()
    for name in FILES:
        (folder / name).write_text(text_of(name) + "\n")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return eight_files(tmp_path / "project")


class LimitedModel:
    """A model with a window: what is longer is refused in the words of a provider."""

    def __init__(self, limit: int, answers: Sequence[str], words: str = TOO_LONG, status: int = 400) -> None:
        self._play = play(*answers)
        self._limit, self._words, self._status = limit, words, status
        self.refused: list[str] = []
        """Sizes that the refused calls had asked for."""
        self.served: list[str] = []
        """The prompts for decisions that were answered."""

    def __call__(self, body: dict[str, Any]) -> Reply:
        prompt = written(body)
        asked = estimate_tokens(prompt)
        if asked > self._limit:
            self.refused.append(asked_for(body))
            message = self._words.format(limit=self._limit, asked=asked)
            error = {"error": {"message": message, "type": "invalid_request_error"}}
            return Raw(json.dumps(error).encode(), "application/json", self._status)
        if asked_for(body) == "Decision":
            self.served.append(prompt)
        return self._play(body)


def whole_files(prompt: str) -> int:
    """Count the files that a prompt shows in full."""
    return sum(text_of(name) in prompt for name in FILES)


async def test_F3_eight_files_read_at_once_are_all_in_the_next_two_prompts(folder: Path):
    model = LimitedModel(128_000, [*WORK, decision("All eight say the same.")])
    with ModelServer(model) as server:
        async with engine(folder, server=server) as duck:
            assert await duck.app.chat.say("What do the eight files say?") == "done"
    assert [whole_files(prompt) for prompt in model.served[:3]] == [0, 8, 8]
    assert model.refused == []


async def test_F3_what_never_goes_is_not_cut_for_a_guess_of_the_window(folder: Path):
    """Digits take many tokens, by our estimate more than the window that is guessed."""
    dense = ("line 123 " * 10 + "\n") * (SIZE // 91)
    for name in FILES:
        (folder / name).write_text(f"{name}\n{dense}")
    model = LimitedModel(400_000, [*WORK, decision("Lines.")])
    with ModelServer(model) as server:
        async with engine(folder, server=server) as duck:
            assert await duck.app.chat.say("What do the eight files say?") == "done"
    for prompt in model.served[1:3]:
        assert all(f"{name}\n{dense}".rstrip() in prompt for name in FILES)


async def test_K7_the_work_goes_on_after_the_window_was_learned_and_the_next_session_knows_it(folder: Path):
    model = LimitedModel(40_000, [*WORK, decision("All eight say the same."), *WORK, decision("The same.")])
    with ModelServer(model) as server:
        async with engine(folder, server=server) as duck:
            assert await duck.app.chat.say("What do the eight files say?") == "done"
            assert model.refused == ["Decision"]
            assert len(duck.of(DecisionMade)) == 4
            told = [event for event in duck.of(ErrorReported) if event.key == "llm.window_learned"]
            assert [event.values["window"] for event in told] == ["40,000"]
            learned = await duck.app.model.traits()
            assert (learned.window, learned.window_from) == (40_000, "learned")
        assert 1 <= whole_files(model.served[1]) < 8
        async with engine(folder, server=server) as duck:
            known = await duck.app.model.traits()
            assert (known.window, known.window_from) == (40_000, "learned")
            assert await duck.app.chat.say("What do the eight files say?") == "done"
    assert model.refused == ["Decision"]


VLLM = "This model's maximum context length is {limit} tokens. However, you requested {asked} tokens"
LLAMA = (
    "the request exceeds the available context size. try increasing the context size or enable context shift"
)


@every_row(
    ("status", "words"),
    [
        (400, VLLM),
        (500, LLAMA),
        (400, "prompt is too long: {asked} tokens > {limit} maximum"),
        (422, "Prompt contains {asked} tokens, too large for model with {limit} maximum context length"),
        (413, "Request too large for model `m` on tokens per minute (TPM): Limit {limit}, Requested {asked}"),
        (400, "Your input exceeds the context window of this model. Please adjust your input and try again."),
    ],
)
async def test_K7_it_costs_one_call_whatever_the_words_are(tmp_path: Path, status: int, words: str):
    folder = eight_files(tmp_path / "project")
    model = LimitedModel(40_000, [*WORK, decision("All eight say the same.")], words, status)
    with ModelServer(model) as server:
        async with engine(folder, server=server) as duck:
            assert await duck.app.chat.say("What do the eight files say?") == "done"
    assert model.refused == ["Decision"]


async def test_K7_a_side_question_that_is_too_long_is_asked_again_shorter(folder: Path):
    """The judge gets what was found, and has its own prompt."""
    written_file = action("write_file", path="new.txt", content="The same.\n")
    answers = [READ, decision("", written_file), decision("All eight say the same, see new.txt.")]
    model = LimitedModel(72_000, answers)
    with ModelServer(model) as server:
        async with engine(folder, server=server) as duck:
            assert await duck.app.chat.say("Write what the eight files say into new.txt") == "done"
    assert model.refused.count("Decision") <= 1
    assert len(model.refused) <= 2


async def test_K7_where_nothing_helps_the_user_is_told(folder: Path):
    model = LimitedModel(300, [decision("Hello.")])
    with ModelServer(model) as server:
        async with engine(folder, server=server) as duck:
            assert await duck.app.chat.say("Hello") == "provider_error"
            assert [event.key for event in duck.of(ErrorReported)][-1] == "llm.prompt_too_long"
    assert model.refused.count("Decision") == 3
