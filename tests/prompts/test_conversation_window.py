"""The part of a prompt that grows: its beginning stays the same, and what goes, goes in order (F3, F5)."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from duckflow.domain.reduce.transcript import outdate, remember
from duckflow.domain.state import AgentState, Request, TranscriptEntry
from duckflow.prompts.conversation.history import PromptHistory
from duckflow.prompts.conversation.trimming import NO_ROOM
from duckflow.prompts.tokens import TokenCounter, estimate_tokens
from fakes.prompt_states import answered, asked, found, looks, said

ENDING = "Output: Decision"


async def shown(
    conversation: PromptHistory, state: AgentState, room: int = 10**9, limit: int | None = None
) -> list[str]:
    """The texts a model would see, within a room."""
    await conversation.read(state)
    await conversation.trim(room, limit)
    return [message.text for message in conversation.with_ending(ENDING)][:-1]


def full(texts: list[str], number: int) -> bool:
    """Whether evidence is shown, and not only what stands in its place."""
    return any(text.startswith(f"[e{number}]") and f"line {number}" in text for text in texts)


async def test_F5_each_prompt_begins_with_the_one_before():
    conversation, state, before = PromptHistory(TokenCounter()), asked("Find it"), list[str]()
    for number in range(1, 30):
        now = await shown(conversation, state)
        assert now[: len(before)] == before
        before, state = now, looks(state, number, 1)
    assert len(before) == 1 + 2 * 28


async def test_the_ends_that_other_prompts_share_are_marked():
    conversation = PromptHistory(TokenCounter())
    await conversation.read(looks(asked("Find it"), 1, 2))
    messages = conversation.with_ending(ENDING)
    assert [message.stable for message in messages] == [False, False, True, False, True, False]
    assert messages[-1].text == ENDING


class Counting(TokenCounter):
    """Notes what it is asked to count."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: list[str] = []

    async def count(self, text: str) -> int:
        self.counted.append(text)
        return await super().count(text)


async def test_F4_only_what_is_new_is_counted_in_a_late_loop():
    counter = Counting()
    conversation, state = PromptHistory(counter), asked("Find it")
    for number in range(1, 2001):
        await shown(conversation, state, room=20_000)
        state = looks(state, number, 1)
        counter.counted.clear()
    await shown(conversation, state, room=20_000)
    assert len(counter.counted) == 2


async def test_F3_evidence_goes_before_words_and_the_oldest_first():
    state = looks(asked("Find it"), 1, 10, size=2000)
    texts = await shown(PromptHistory(TokenCounter()), state, room=4000)
    gone = [number for number in range(1, 11) if not full(texts, number)]
    assert gone == list(range(1, gone[-1] + 1))
    assert 1 <= len(gone) < 10
    assert [text for text in texts if "look" in text and text.startswith("{")] == [
        f'{{"look": {number}}}' for number in range(1, 11)
    ]
    assert texts[2] == "[e1] file_ops.read_file: ok, part_1.py: left out, look again if you need it"


async def test_F3_it_goes_in_large_steps():
    """Between two steps the beginning stays the same for many loops."""
    conversation, state, prompts = PromptHistory(TokenCounter()), asked("Find it"), list[list[str]]()
    for number in range(1, 101):
        state = looks(state, number, 1, size=700)
        prompts.append(await shown(conversation, state, room=6000))
    changed = [now[: len(before)] != before for before, now in pairwise(prompts)]
    assert 2 <= sum(changed) <= 15
    assert all(sum(map(estimate_tokens, prompt)) <= 6000 for prompt in prompts)


async def grown(state: AgentState, *, outdated: bool) -> tuple[list[str], list[str], list[str]]:
    """A conversation before a file was changed, after it, and once it has grown past its room."""
    conversation, probe = PromptHistory(TokenCounter()), PromptHistory(TokenCounter())
    await probe.read(looks(state, 11, 1, size=700))
    room = sum(probe.tokens.values())
    before = await shown(conversation, state, room)
    if outdated:
        state, ids = outdate(state, "part_9.py")
        assert ids == ("e9",)
    state = looks(state, 11, 1, size=700)
    now = await shown(conversation, state, room)
    return before, now, await shown(conversation, looks(state, 12, 1, size=700), room)


async def test_F5_an_old_version_stays_until_the_next_step_and_then_goes_first():
    state = looks(asked("Find it"), 1, 10, size=700)
    before, now, after = await grown(state, outdated=True)
    assert now[: len(before)] == before
    assert full(now, 9)
    assert not full(after, 9)
    *_, by_age = await grown(state, outdated=False)
    assert full(by_age, 9)


async def test_F5_a_file_that_changes_after_a_step_does_not_move_the_beginning():
    conversation, state = PromptHistory(TokenCounter()), looks(asked("Find it"), 1, 12, size=700)
    before = await shown(conversation, state, room=3000)
    assert not full(before, 1)
    kept = next(number for number in range(1, 13) if full(before, number))
    state, _ = outdate(state, f"part_{kept}.py")
    assert (await shown(conversation, looks(state, 13, 1), room=3000))[: len(before)] == before


async def test_F3_words_go_last_and_it_is_said():
    state = asked("Find it")
    for number in range(200):
        state = remember(state, answered(f"word {number} " * 20), TranscriptEntry(role="user", text="go on"))
    texts = await shown(PromptHistory(TokenCounter()), state, room=3000)
    assert texts[:2] == ["Older parts of this conversation are left out.", "Find it"]
    assert texts[-2].startswith("word 199")
    assert sum(map(estimate_tokens, texts)) <= 1500


async def test_F3_the_users_request_and_last_message_are_never_left_out():
    request = "Find it. " * 300
    state = remember(asked(request), answered("Where?"), said("In the attic"))
    state = looks(state, 1, 50, size=3000)
    texts = await shown(PromptHistory(TokenCounter()), state, room=500)
    assert request in texts
    assert "In the attic" in texts


async def test_F3_a_request_the_state_has_let_go_of_is_shown_again():
    state = AgentState(request=Request(request_id="r", text="Find it"))
    texts = await shown(PromptHistory(TokenCounter()), looks(state, 1, 2))
    assert texts[1] == "Find it"
    trimmed = await shown(PromptHistory(TokenCounter()), looks(state, 1, 60, size=2000), room=900)
    assert trimmed[:2] == ["Older parts of this conversation are left out.", "Find it"]


async def test_what_was_found_just_now_is_cut_where_it_alone_is_too_much():
    state = remember(
        asked("Find it"),
        answered("I look"),
        found(1, "a" * 90_000),
        found(2, "begin " + "b" * 90_000 + " end"),
    )
    texts = await shown(PromptHistory(TokenCounter()), state, room=2000)
    assert sum(map(estimate_tokens, texts)) <= 2000
    assert texts[2].endswith(NO_ROOM)
    assert "begin" in texts[3]
    assert texts[3].endswith("end")
    assert "characters left out" in texts[3]


async def test_a_transcript_that_was_cut_is_read_anew():
    conversation = PromptHistory(TokenCounter())
    state = looks(asked("Find it"), 1, 5)
    await shown(conversation, state)
    cut = state.model_copy(update={"transcript": state.transcript[4:]})
    again = await shown(conversation, cut)
    assert again == await shown(PromptHistory(TokenCounter()), cut)


ENTRIES = st.lists(
    st.tuples(st.sampled_from(["said", "answered", "found", "told"]), st.integers(1, 4000), st.booleans()),
    min_size=1,
    max_size=40,
)


SMALL = 45
"""Tokens that something found just now may always take."""


def newest_found(entries: list[tuple[str, int, bool]]) -> int:
    """How many things were found since the model last spoke."""
    kinds = "".join(kind[0] for kind, _, _ in entries)
    return kinds.rpartition("a")[2].count("f")


@given(ENTRIES, st.integers(200, 4000), st.integers(0, 4000))
async def test_F3_whatever_happens_it_fits_and_the_request_is_there(entries, room, more):
    conversation, state = PromptHistory(TokenCounter()), asked("Find it")
    for number, (kind, size, stale) in enumerate(entries, start=1):
        text = (f"{kind} {number} " * size)[:size]
        match kind:
            case "said":
                entry = said(text[:200])
            case "answered":
                entry = answered(text)
            case "found":
                entry = found(number, text, stale=stale)
            case _:
                entry = TranscriptEntry(role="user", text=text[:100])
        state = remember(state, entry)
        texts = await shown(conversation, state, room, room + more)
        total = sum(conversation.tokens.values())
        assert total == sum(map(estimate_tokens, texts))
        assert total <= max(room + more, conversation.least(0) + SMALL * newest_found(entries[:number]))
        assert texts.count("Find it") == 1
        assert len(texts) < 2 or texts[0] != texts[1]
