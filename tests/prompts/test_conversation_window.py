"""The part of a prompt that grows: its beginning stays the same, and what goes, goes in order (F3, F5)."""

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from duckflow.domain.frozen import replace
from duckflow.domain.model import ToolCall
from duckflow.domain.reduce.transcript import outdate, remember
from duckflow.domain.state import AgentState, Request, TranscriptEntry
from duckflow.llm.tokens import TokenCounter, estimate_tokens
from duckflow.prompts.conversation.history import PromptHistory
from duckflow.prompts.conversation.trimming import NO_ROOM
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
    """Return whether evidence itself is shown, and not a stub."""
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


def read_again(number: int, before: int, path: str) -> TranscriptEntry:
    """A look at a file that only points to an earlier one."""
    pointer = found(number, f"{path} is unchanged: see [e{before}].", path)
    return pointer.model_copy(update={"same_as": f"e{before}"})


async def test_F3_a_pointer_to_what_was_left_out_shows_it_again():
    conversation, state = PromptHistory(TokenCounter()), looks(asked("Find it"), 1, 8, size=2000)
    texts = await shown(conversation, state, room=4000)
    assert [number for number in range(1, 9) if full(texts, number)] == [7, 8]
    state = remember(state, answered("Again"), read_again(9, 2, "part_2.py"), read_again(10, 8, "part_8.py"))
    texts = await shown(conversation, state, room=8000)
    assert texts[-2].startswith("[e9] file_ops.read_file: ok\nline 2 line 2")
    assert texts[-1].endswith("part_8.py is unchanged: see [e8].")


async def test_F3_what_a_late_pointer_points_to_stays():
    state = looks(asked("Find it"), 1, 8, size=2000)
    state = remember(state, answered("Again"), read_again(9, 2, "part_2.py"))
    texts = await shown(PromptHistory(TokenCounter()), state, room=6000)
    assert [number for number in range(1, 9) if full(texts, number)] == [2, 7, 8]


async def test_F3_the_results_of_the_last_two_loops_stay_past_the_room_up_to_the_limit():
    state = looks(asked("Find it"), 1, 4, size=2000)
    both = [found(number, f"line {number} " * 900, f"large_{number}.py") for number in (5, 6)]
    state = looks(remember(state, answered("Both"), *both), 7, 1)
    texts = await shown(PromptHistory(TokenCounter()), state, room=4000, limit=9000)
    assert [number for number in range(1, 8) if full(texts, number)] == [5, 6, 7]
    texts = await shown(PromptHistory(TokenCounter()), state, room=4000, limit=4500)
    assert [number for number in range(1, 8) if full(texts, number)] == [6, 7]


async def test_F3_what_the_request_changed_stays():
    """The newest look at a file that was changed, and what was told of the change."""
    state = looks(asked("Mend it"), 1, 3, size=2000)
    told = TranscriptEntry(
        role="user",
        text="[e4] file_ops.edit_file: ok\nchanged part_1.py\n" + "line 4 " * 100,
        evidence_id="e4",
        operation="file_ops.edit_file",
        path="part_1.py",
    )
    state = remember(outdate(state, "part_1.py")[0], answered("Edit"), told)
    state = remember(state, answered("Look"), found(5, "line 5 " * 300, "part_1.py"))
    changed = replace(state.request, changed=("part_1.py",)) if state.request else None
    state = looks(replace(state, request=changed), 6, 6, size=2000)
    texts = await shown(PromptHistory(TokenCounter()), state, room=6000)
    assert [number for number in range(1, 12) if full(texts, number)] == [4, 5, 10, 11]


async def test_F3_looks_that_can_not_fit_cost_neither_the_changes_nor_the_words():
    told = found(1, "line 1 " * 40).model_copy(update={"path": "a.py"})
    state = remember(asked("Mend it"), answered("First I edit."), told)
    changed = replace(state.request, changed=("a.py",)) if state.request else None
    state = looks(replace(state, request=changed), 2, 2)
    state = remember(state, answered("All"), *(found(n, f"line {n} " * 900) for n in range(4, 9)))
    texts = await shown(PromptHistory(TokenCounter()), state, room=6000, limit=8000)
    assert "First I edit." in texts
    assert [number for number in range(1, 9) if full(texts, number)] == [1, 7, 8]


async def test_F3_of_very_many_changes_the_oldest_go_in_one_step_at_the_limit():
    conversation, state, moved = PromptHistory(TokenCounter()), asked("Mend it"), 0
    changed = replace(state.request, changed=("a.py",)) if state.request else None
    state, before = replace(state, request=changed), list[str]()
    for number in range(1, 101):
        told = found(number, f"line {number} " * 40).model_copy(update={"path": "a.py"})
        state = remember(state, answered("Edit"), told)
        now = await shown(conversation, state, room=6000, limit=8000)
        moved += now[: len(before)] != before
        before = now
        assert sum(conversation.tokens.values()) <= 8000
    assert 1 <= moved <= 8
    assert all(full(before, number) for number in range(90, 101))


async def test_F3_the_largest_and_oldest_results_go_first():
    state = looks(asked("Find it"), 1, 2, size=400)
    state = remember(state, answered("Large"), found(3, "line 3 " * 800, "large.py"))
    state = looks(state, 4, 5, size=400)
    texts = await shown(PromptHistory(TokenCounter()), state, room=3500)
    assert [number for number in range(1, 9) if not full(texts, number)] == [3]


async def test_F3_while_nothing_may_go_the_beginning_does_not_move():
    conversation = PromptHistory(TokenCounter())
    state = remember(asked("Find it"), answered("All"), *(found(n, f"line {n} " * 900) for n in (1, 2, 3)))
    before = await shown(conversation, state, room=5000, limit=20_000)
    now = await shown(conversation, looks(state, 4, 1), room=5000, limit=20_000)
    assert now[: len(before)] == before
    assert [full(now, number) for number in (1, 2, 3)] == [True] * 3
    after = await shown(conversation, looks(state, 4, 2), room=5000, limit=20_000)
    assert not any(full(after, number) for number in (1, 2))


def call(number: int, *more: int) -> TranscriptEntry:
    """An answer with native calls."""
    calls = tuple(ToolCall(name="read_file", arguments="{}", id=f"c{n}") for n in (number, *more))
    return TranscriptEntry(role="assistant", text="", calls=calls)


async def test_F3_each_call_keeps_its_result_whatever_is_left_out():
    conversation, state = PromptHistory(TokenCounter()), asked("Find it")
    for number in range(1, 400, 2):
        text, result = f"line {number} " * 40, f"c{number}"
        state = remember(
            state,
            call(number, number + 1),
            found(number, text, result_of=result),
            found(number + 1, text, result_of=f"c{number + 1}"),
        )
        if number % 20 == 1:
            await shown(conversation, state, room=3000)
            messages = conversation.with_ending(ENDING)
            asked_for = [one.id for message in messages for one in message.calls]
            assert [message.result_of for message in messages if message.result_of] == asked_for
            assert sum(conversation.tokens.values()) <= 3000
    assert len(asked_for) < 100


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
"""Tokens that something found just now, or last, may always take."""


def newest_found(entries: list[tuple[str, int, bool]]) -> int:
    """Count the results since the last answer of the model."""
    kinds = "".join(kind[0] for kind, _, _ in entries)
    return kinds.rpartition("a")[2].count("f")


SHORT_RESULT = [
    *[("said", 1, False)] * 4,
    *[("said", 196, False)] * 2,
    ("found", 1, False),
    ("answered", 1, False),
]


@example([*SHORT_RESULT, ("said", 194, False)], 200, 0)
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
        told = estimate_tokens(conversation.recap) if conversation.recap else 0
        least = conversation.least(0) + SMALL * max(newest_found(entries[:number]), 1) + told
        assert total <= max(room + more, least)
        assert texts.count("Find it") == 1
        assert len(texts) < 2 or texts[0] != texts[1]
