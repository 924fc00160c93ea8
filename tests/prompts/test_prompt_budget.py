"""F3: what each layer may take, what goes first, and what never goes."""

import pytest

from duckflow.dialects.json_text import json_prompt
from duckflow.dialects.prompt import DROP_ORDER, LayerSizes, PromptFrame
from duckflow.domain.model import ModelTraits
from duckflow.domain.state import AgentState, Items
from duckflow.i18n.catalogue import set_language, text
from duckflow.llm.tokens import TokenCounter, estimate_tokens
from duckflow.loops.thinking.rules import Rules, RulesTooLong
from duckflow.prompts.sections import RenderedPrompt
from fakes.model import FakeModel
from fakes.prompt_states import answered, asked, found, looks
from fakes.rows import every_row

SUMMARIES = tuple(f"{number}番目の依頼です。" + "要約" * 45 for number in range(5))
FULL = Items(
    goal="目" * 200,
    why_now="今" * 200,
    constraints=("制" * 100,) * 2,
    plan_brief=("計" * 100,) * 3,
    open_questions=("問" * 100,) * 2,
)


async def assemble(state: AgentState, window: int = 32_768, rules: str = "", **sizes: int) -> RenderedPrompt:
    frame = PromptFrame(rules=rules, sizes=LayerSizes(**sizes))
    return await json_prompt(ModelTraits(name="any", window=window), (), frame, TokenCounter()).assemble(
        state
    )


def whole(prompt: RenderedPrompt) -> str:
    return "\n\n".join(message.text for message in prompt.request.messages)


def test_F3_the_order_of_going_is_data():
    assert DROP_ORDER == ("summaries", "open_questions", "plan_brief")


async def test_F3_layers_keep_to_their_budgets():
    state = asked("日本語でお願いします", summaries=SUMMARIES, items=FULL, pattern="base_main_specialized")
    tokens = (await assemble(state)).tokens
    assert tokens["base"] + tokens["session"] + tokens["summaries"] <= 500
    assert tokens["main"] <= 1000  # nothing that may go is left in it
    assert 0 < tokens["specialized"] <= 1200


async def test_F3_over_the_base_budget_the_oldest_summaries_go():
    prompt = await assemble(asked("go", summaries=SUMMARIES))
    shown = [summary for summary in SUMMARIES if summary in whole(prompt)]
    assert 0 < len(shown) < 5
    assert shown == list(SUMMARIES[-len(shown) :])
    roomy = whole(await assemble(asked("go", summaries=SUMMARIES), base=2000))
    assert all(summary in roomy for summary in SUMMARIES)


@every_row(
    ("main_tokens", "questions", "plan"), [(2500, True, True), (1400, False, True), (900, False, False)]
)
async def test_F3_over_the_main_budget_questions_go_before_the_plan(main_tokens, questions, plan):
    made = whole(await assemble(asked("go", items=FULL), main=main_tokens))
    assert ("Open questions" in made, "Brief plan" in made) == (questions, plan)
    for line in (FULL.goal, FULL.why_now, *FULL.constraints):
        assert line in made


async def test_a_procedure_that_does_not_fit_is_left_out():
    state = asked("go", pattern="base_specialized")
    made = whole(await assemble(state, specialized=100))
    assert "Procedure" not in made
    assert "Step: EXECUTION" in made


async def test_F3_over_the_window_evidence_goes_then_summaries_then_questions_then_the_plan():
    """A long request stays; everything else is dropped, in order, as the window gets smaller."""
    request = "これを直してください。" * 100
    old = answered("見ます"), found(1, "old find " * 400)
    state = looks(asked(request, *old), 2, 2)
    state = state.model_copy(update={"summaries": SUMMARIES, "items": FULL})
    marks = ("old find old find", SUMMARIES[-1], "Open questions", "Brief plan")
    seen: list[tuple[bool, ...]] = []
    for window in range(12_000, 3000, -100):
        made = whole(await assemble(state, window=window, base=2000, main=2500))
        assert request in made
        assert FULL.goal in made
        kept = tuple(mark in made for mark in marks)
        if kept not in seen:
            seen.append(kept)
    assert seen == [
        (True, True, True, True),
        (False, True, True, True),
        (False, False, True, True),
        (False, False, False, True),
        (False, False, False, False),
    ]


@every_row("window", [8192, 16_384, 32_768])
async def test_F3_a_prompt_leaves_room_for_the_answer(window: int):
    state = asked("go", summaries=SUMMARIES, items=FULL, pattern="base_main_specialized")
    prompt = await assemble(looks(state, 1, 100, size=3000), window, rules="rule " * 300)
    assert sum(prompt.tokens.values()) <= window * 3 // 4
    assert estimate_tokens(whole(prompt)) <= window * 3 // 4 + 50
    assert prompt.request.max_tokens <= window // 4


async def test_L3_rules_are_never_cut_to_make_room():
    rules = "\n".join(f"rule {number}" for number in range(400))
    prompt = await assemble(looks(asked("go", items=FULL), 1, 100, size=3000), 8192, rules)
    assert rules in prompt.request.messages[0].text


@every_row(("language", "word"), [("en", "quarter"), ("ja", "4 分の 1")])
async def test_F3_rules_over_a_quarter_of_the_window_are_told(language, word):
    client = FakeModel(traits=ModelTraits(name="any", window=8192))
    await Rules(text="1" * 2000).fit(client, "whole")
    with pytest.raises(RulesTooLong) as caught:
        await Rules(text="1" * 2100).fit(client, "whole")
    assert caught.value.values == {"tokens": 2101, "window": 8192}
    set_language(language)
    assert word in text(caught.value.key, **caught.value.values)
