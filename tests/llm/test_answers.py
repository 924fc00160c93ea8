"""Asking for an answer: repairs with all faults at once, one mechanism for every kind of answer (A6)."""

import asyncio
import json

import pytest

from duckflow.domain.decision import Decision, StateDelta
from duckflow.domain.errors import BadAnswer, Unavailable
from duckflow.domain.frozen import Frozen
from duckflow.domain.live_updates import ReplyPiece, ReplyVoid, Waiting, Writing
from duckflow.domain.model import (
    ChatMessage,
    ModelRequest,
    ModelTraits,
    NativeTool,
    Retrying,
    StreamEnd,
    TextPiece,
    ToolCall,
    Usage,
)
from duckflow.llm.answers.response import MAX_RESPONSE
from duckflow.llm.answers.structured import SHOWN_AGAIN, ask
from fakes.model import ONE_CALL, FakeModel, said

GOOD = json.dumps({"next_step": "done", "reply": "Hi 🦆"}, ensure_ascii=False)
REQUEST = ModelRequest(
    output="Decision", messages=(ChatMessage(role="user", text="Say hi.\nOutput: Decision"),)
)
TOOLS = (NativeTool(name="shell__run", description="", parameters={}),)


class Weather(Frozen):
    """An answer type used only here."""

    city: str
    degrees: float


class Seen(list):
    """Live updates in order; `text` is the text on the user's screen."""

    @property
    def text(self):
        shown = ""
        for piece in self:
            if not isinstance(piece, Writing):
                shown = shown + piece.text if isinstance(piece, ReplyPiece) else ""
        return shown


@pytest.fixture
def seen():
    return Seen()


async def decide(model, seen, request=REQUEST, check=None):
    return await ask(model, request, Decision, seen.append, check)


async def test_a_good_answer_is_taken_at_the_first_try(seen):
    answer = await decide(model := FakeModel(GOOD), seen)
    assert answer.value == Decision(next_step="done", reply="Hi 🦆")
    assert (answer.text, answer.usage, len(model.requests)) == (GOOD, ONE_CALL, 1)
    assert model.requests == [REQUEST]
    assert seen.text == "Hi 🦆"
    assert not [piece for piece in seen if not isinstance(piece, ReplyPiece | Writing)]


async def test_A6_a_repair_carries_the_bad_answer_and_the_exact_error(seen):
    bad = '{"next_step": "done", "reply": "No", "reply": "Yes"}'
    answer = await decide(model := FakeModel(bad, GOOD), seen)
    assert (answer.value.reply, answer.text, len(model.requests)) == ("Hi 🦆", GOOD, 2)
    assert answer.usage == ONE_CALL + ONE_CALL
    repair = model.requests[1]
    assert repair.messages[:-2] == REQUEST.messages
    assert repair.messages[-2] == ChatMessage(role="assistant", text=bad)
    assert repair.messages[-1].role == "user"
    assert "the key 'reply' appears twice in the same object" in repair.messages[-1].text
    assert "\nOutput: Decision\n" in repair.messages[-1].text
    assert "the JSON object and its blocks" in repair.messages[-1].text
    assert repair.model_copy(update={"messages": ()}) == REQUEST.model_copy(update={"messages": ()})
    assert ReplyVoid() in seen
    assert seen.text == "Hi 🦆"


async def test_A6_the_same_faults_twice_are_a_clear_error_that_knows_what_was_spent(seen):
    model = FakeModel("I am done.", "Really, it is done.", GOOD)
    with pytest.raises(BadAnswer) as caught:
        await decide(model, seen)
    assert caught.value.key == "llm.bad_answer"
    assert caught.value.values == {"output": "Decision", "problem": "there is no JSON object in the answer"}
    assert caught.value.usage == ONE_CALL + ONE_CALL
    assert len(model.requests) == 2
    assert seen.text == ""


BAD = ["I am done.", '{"reply": "a", "reply": "b"}', '{"actions": [{}]}', '{"reply": NaN}', GOOD]


async def test_A6_other_faults_are_repaired_up_to_three_times(seen):
    answer = await decide(model := FakeModel(*BAD[:3], GOOD), seen)
    assert (answer.value.reply, len(model.requests)) == ("Hi 🦆", 4)
    assert [len(request.messages) for request in model.requests] == [1, 3, 3, 3]
    assert "`actions[0].operation` is missing" in model.requests[3].messages[-1].text
    with pytest.raises(BadAnswer, match="'NaN' is not a JSON value") as caught:
        await decide(model := FakeModel(*BAD), seen)
    assert len(model.requests) == 4
    assert caught.value.usage == ONE_CALL + ONE_CALL + ONE_CALL + ONE_CALL


ALL_WRONG = """
{"reply": "a", "reply": "b", "confidence": NaN, "actions": [
 {"operation": "file_ops.fly", "args": {"to": {"block": "WHERE"}}},
 {"args": {"path": "a"}},
 {"operation": "file_ops.swim"}]}
<<<block CODE
x
>>>block CODE
"""


async def test_A6_all_faults_are_reported_at_once(seen):
    def check(decision):
        for action in decision.actions:
            yield f"there is no operation {action.operation}"

    await decide(model := FakeModel(ALL_WRONG, GOOD), seen, check=check)
    told = model.requests[1].messages[-1].text
    for fault in (
        "the key 'reply' appears twice",
        "'NaN' is not a JSON value",
        "actions[0].args.to names the block 'WHERE'",
        "`actions[1].operation` is missing",
        "there is no operation file_ops.fly",
        "there is no operation file_ops.swim",
        "no argument names the block CODE",
    ):
        assert fault in told


async def test_A6_blocks_that_nothing_names_and_fields_of_the_state_that_do_not_exist_are_left_out_and_told(
    seen,
):
    text = '{"reply": "Hi", "state_delta": {"goal": "g", "mood": "x", "why_now": {"a": [1]}}}\n'
    answer = await decide(model := FakeModel(text + "<<<block A\na\n>>>block A\n"), seen)
    assert (len(model.requests), answer.value.reply, answer.unused) == (1, "Hi", ("A",))
    assert answer.value.state_delta == StateDelta(goal="g")
    state, block = answer.notes
    assert state.startswith("state_delta did not set mood, why_now: ")
    assert block == "Nothing named the block A, so it was left out."


async def test_the_same_function_serves_every_kind_of_answer(seen):
    request = REQUEST.model_copy(update={"output": "Weather"})
    model = FakeModel(
        '{"city": "奈良", "degree": 3, "reply": "x"}', 'Sure! ```json\n{"city": "奈良", "degrees": 3}\n```'
    )
    answer = await ask(model, request, Weather, seen.append)
    assert answer.value == Weather(city="奈良", degrees=3)
    told = model.requests[1].messages[-1].text
    assert "`degrees` is missing" in told
    assert "`degree` is not a field; did you mean `degrees`?" in told
    assert "Output: Weather" in told
    assert [piece for piece in seen if not isinstance(piece, Writing)] == [ReplyVoid()]


async def test_A6_the_caller_s_own_check_goes_through_the_same_repair(seen):
    unknown = '{"next_step": "continue", "actions": [{"operation": "file_ops.fly"}]}'

    def check(decision):
        return ["there is no operation file_ops.fly"] if decision.actions else []

    await decide(model := FakeModel(unknown, GOOD), seen, check=check)
    assert len(model.requests) == 2
    assert "there is no operation file_ops.fly" in model.requests[1].messages[-1].text
    with pytest.raises(BadAnswer, match=r"no operation file_ops\.fly"):
        await decide(FakeModel(unknown, unknown), seen, check=check)


async def test_a_long_bad_answer_goes_back_cut(seen):
    await decide(model := FakeModel("🦆" * 10_000, GOOD), seen)
    assert len(model.requests[1].messages[-2].text) == SHOWN_AGAIN
    large = ModelTraits(name="large", window=200_000)
    await decide(model := FakeModel("🦆" * 30_000, GOOD, traits=large), seen)
    assert len(model.requests[1].messages[-2].text) == 20_000


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"next_step": "done"}, "a decision needs a reply or at least one action"),
        ({}, "a decision needs a reply or at least one action"),
        ({"replies": "a"}, "`replies` is not a field; did you mean `reply`?"),
        ({"zzz": 1}, "`zzz` is not a field; known are: rationale, goal_cons"),
        ({str(number): 1 for number in range(30)}, "more faults of this kind"),
        ({"actions": [{"operation": "a"}, {"operations": "b"}]}, "`actions[1].operation` is missing"),
        (
            {"actions": [{"operations": "b"}]},
            "`actions[0].operations` is not a field; did you mean `operation`?",
        ),
        ({"actions": [{"operation": ""}]}, "`actions[0].operation`: string should have at least"),
        ({"actions": [{"operation": "a", "args": ["b"]}]}, "`actions[0].args`: must be an object, not ['b']"),
        ({"actions": [1]}, "`actions[0]`: must be an object, not 1"),
        ({"reply": {"a": 1, "b": 2}}, "`reply`: must be a string, not {'a': 1, 'b': 2}"),
        ({"reply": [["a"]]}, "`reply`: must be a string, not [['a']]"),
    ],
)
async def test_A6_wrong_fields_are_named_by_path(seen, bad, words):
    await decide(model := FakeModel(json.dumps(bad), GOOD), seen)
    assert words in model.requests[1].messages[-1].text


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        (said(""), "the answer is empty"),
        (said(" \n"), "the answer is empty"),
        ([StreamEnd()], "the answer is empty"),
        ([], "the answer was cut off before its end"),
        ([TextPiece(text=GOOD)], "the answer was cut off before its end"),
        (said("I can't help with that.", stop="refusal"), "the request was declined"),
        (said(GOOD, stop="refusal"), "the request was declined"),
        (said("\ud83e lone", width=1), "half of a surrogate pair"),
        (said("ends in half \ud83e", width=1), "half of a surrogate pair"),
    ],
)
async def test_A6_empty_cut_and_refused_answers_are_repaired(seen, turn, words):
    await decide(model := FakeModel(turn, GOOD), seen)
    assert words in model.requests[1].messages[-1].text
    assert all(message.text.encode() for message in model.requests[1].messages)
    with pytest.raises(BadAnswer):
        await decide(FakeModel(turn, turn, GOOD), seen)


async def test_an_answer_that_is_whole_at_the_token_limit_is_taken(seen):
    await decide(model := FakeModel(said(GOOD + "\nThat is", stop="length")), seen)
    assert len(model.requests) == 1


async def test_A6_a_model_that_never_stops_is_not_listened_to(seen):
    endless = [TextPiece(text="鴨" * 1_000_000)] * 100
    await decide(model := FakeModel(endless, GOOD), seen)
    assert len(model.requests) == 2
    assert model.pieces_taken - len(said(GOOD)) == MAX_RESPONSE // 3_000_000 + 1
    assert model.streams_closed == 2
    assert "too large" in model.requests[1].messages[-1].text


async def test_endless_calls_are_not_listened_to_either(seen):
    endless = [ToolCall(name="shell__run", arguments="x" * 1_000_000)] * 100
    await decide(model := FakeModel(endless, GOOD), seen)
    assert model.pieces_taken < 30


async def test_K4_what_was_streamed_before_a_retry_is_void(seen):
    pieces = [
        TextPiece(text='{"next_step": "done", "reply": "Hel'),
        ToolCall(name="x", arguments="{}"),
        Retrying(reason="busy", wait_s=2),
        *said(GOOD),
    ]
    answer = await decide(model := FakeModel(pieces), seen)
    assert answer.value == Decision(next_step="done", reply="Hi 🦆")
    assert len(model.requests) == 1
    assert seen[:3] == [ReplyPiece(text="Hel"), ReplyVoid(), Waiting(reason="busy", wait_s=2)]
    assert seen.text == "Hi 🦆"


async def test_errors_of_the_provider_pass_and_know_what_was_spent_before(seen):
    busy = Unavailable("llm.busy")
    with pytest.raises(Unavailable) as caught:
        await decide(FakeModel("no JSON", [TextPiece(text="{"), busy]), seen)
    assert caught.value is busy
    assert caught.value.usage == ONE_CALL


async def test_cancelling_closes_the_stream_and_passes(seen):
    waiting = asyncio.Event()

    class Slow(FakeModel):
        async def stream(self, request):
            try:
                yield TextPiece(text="{")
                waiting.set()
                await asyncio.sleep(60)
            finally:
                self.streams_closed += 1

    task = asyncio.create_task(decide(model := Slow(), seen))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.streams_closed == 1


async def test_a_pair_that_a_provider_cut_in_two_is_one_character(seen):
    pieces = [
        TextPiece(text='{"next_step": "done", "reply": "a\ud83e'),
        TextPiece(text='\udd86b"}'),
        StreamEnd(),
    ]
    answer = await decide(FakeModel(pieces), seen)
    assert answer.value.reply == seen.text == "a🦆b"
    assert answer.text.encode()


async def test_A7_blocks_work_through_the_whole_path(seen):
    args = {"path": "a.py", "content": {"block": "a"}}
    text = json.dumps(
        {"next_step": "continue", "actions": [{"operation": "file_ops.write_file", "args": args}]}
    )
    text += "\n<<<block a\nprint('\\n')\n>>>block a\n"
    answer = await decide(FakeModel(text), seen)
    assert answer.value.actions[0].args["content"] == "print('\\n')\n"
    assert answer.text == text
    open_end = text.replace(">>>block a\n", "")
    assert (await decide(FakeModel(open_end), seen)).value == answer.value
    whole = await decide(FakeModel(said(open_end, stop="length"), ">>>block a\n"), seen)
    assert whole.value == answer.value


async def test_A8_plain_text_is_no_answer_where_no_tools_are_offered(seen):
    await decide(model := FakeModel("I am done.", GOOD), seen)
    assert "there is no JSON object" in model.requests[1].messages[-1].text


@pytest.mark.parametrize(
    ("stop", "key"), [("refusal", "llm.declined"), ("length", "llm.still_cut"), ("end", "llm.bad_answer")]
)
async def test_the_last_unusable_answer_says_why_the_model_stopped(seen, stop, key):
    with pytest.raises(BadAnswer) as caught:
        await decide(FakeModel(*[said("no object", stop=stop)] * 20), seen)
    assert caught.value.key == key


async def test_calls_are_refused_where_another_answer_was_asked_for(seen):
    model = FakeModel([ToolCall(name="x", arguments="{}"), StreamEnd()], '{"city": "奈良", "degrees": 3}')
    await ask(model, REQUEST, Weather, seen.append)
    assert "no tool can be called here" in model.requests[1].messages[-1].text


async def test_usage_adds_up_over_tries(seen):
    first, second = (
        Usage(input_tokens=1, output_tokens=2),
        Usage(input_tokens=30, cached_tokens=1, output_tokens=4),
    )
    model = FakeModel(said("x", usage=first), said(GOOD, usage=second))
    assert (await decide(model, seen)).usage == Usage(input_tokens=31, cached_tokens=1, output_tokens=6)
