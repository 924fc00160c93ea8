"""Plans for the first attempt at a request and the next (J4, K1)."""

import json

from duckflow.domain.errors import ProviderError
from duckflow.domain.model import ModelTraits
from duckflow.domain.work.objective import AttemptResult, ContinuationContext
from duckflow.services.plans import (
    plain_continuation,
    plan_continuation_execution,
    plan_initial_execution,
)
from duckflow.services.questions import put
from fakes.cases import seen
from fakes.model import ONE_CALL, FakeModel
from fakes.rows import every_row

CONTEXT = ContinuationContext(
    score=0.4,
    needed=0.8,
    attempts=(AttemptResult(number=1, strategy="Use the template", score=0.4),),
    problems=("nothing is printed",),
    improvements=("print hello",),
    unavailable=("e4 run curl: not allowed",),
    failed_approaches=("Use the template",),
    limitations=("no network",),
)


def drafted(name="Write it by hand", steps=2, **fields):
    listed = [{"name": f"S{n}", "description": f"Do {n}", "depends_on": []} for n in range(1, steps + 1)]
    body = {"name": name, "goal": "", "risk": "low", "success_criteria": ["it prints hello", " "]}
    return json.dumps({**body, "steps": listed, **fields})


async def first(*turns):
    model = FakeModel(*turns)
    plan, usage = await put(model, plan_initial_execution("Make a.py", "- hello → hi", seen("e1")))
    return plan, usage, model


async def again(*turns, context=CONTEXT, evidence=seen("e1")):  # noqa: B008 - it is never changed
    model = FakeModel(*turns)
    plan, usage = await put(model, plan_continuation_execution("Make a.py", context, evidence))
    return plan, usage, model


async def test_the_first_plan_has_a_strategy_and_steps_K1():
    plan, usage, model = await first(drafted("Write it\nby hand"))
    assert (plan.strategy, plan.steps, plan.risk) == ("Write it by hand", ("S1: Do 1", "S2: Do 2"), "low")
    assert (plan.success_criteria, plan.constraints, plan.avoid) == (("it prints hello",), (), ())
    assert usage == ONE_CALL
    (request,) = model.requests
    system, asked = (message.text for message in request.messages)
    assert request.output == "PlanDraft"
    assert "\nOutput: PlanDraft\n" in system
    for shown in ("Make a.py", "- hello → hi", "[e1] created a.py"):
        assert shown in asked
    assert asked.endswith("Output: PlanDraft")


async def test_the_next_plan_carries_strategy_constraints_and_what_to_avoid_J4():
    plan, usage, model = await again(drafted(avoid=["a mock"]))
    assert plan.strategy == "Write it by hand"
    assert plan.constraints == ("no network", "refused by the rules: e4 run curl: not allowed")
    assert plan.avoid == ("a mock", "Use the template")
    assert usage == ONE_CALL
    asked = model.requests[0].messages[1].text
    for shown in (
        "Attempt 2 begins",
        "- nothing is printed",
        "- print hello",
        "- Use the template",
        "1. Use the template (0.40)",
    ):
        assert shown in asked


@every_row("name", ["Use the template", "use the  template!"])
async def test_a_strategy_that_the_user_does_not_want_any_more_is_refused_once_J4(name):
    plan, _, model = await again(drafted(name), drafted())
    assert plan.strategy == "Write it by hand"
    assert "is not wanted any more, choose another" in model.requests[1].messages[-1].text
    without, *_ = await again(drafted(name), drafted(name))
    assert without == plain_continuation(CONTEXT)


async def test_J4_a_right_strategy_that_was_carried_out_badly_may_be_chosen_again():
    plan, *_ = await again(
        drafted("Use the template"), context=CONTEXT.model_copy(update={"failed_approaches": ()})
    )
    assert (plan.strategy, plan.avoid) == ("Use the template", ())


async def test_J4_the_question_for_the_next_plan_is_short():
    _, _, model = await again(drafted(), evidence=seen("e1", text="word " * 20_000))
    assert len(model.requests[0].messages[1].text) < 20_000


@every_row(
    ("bad", "problem"),
    [
        ("First I would look.", "JSON"),
        (drafted(" "), "`name` is empty"),
        (drafted(steps=0), "a plan has 1 to 7 steps, not 0"),
        (drafted(steps=8), "a plan has 1 to 7 steps, not 8"),
        (drafted(steps=1).replace("S1", "").replace("Do 1", " "), "step 1 needs a name or a description"),
        (drafted(risk="huge"), "`risk`"),
    ],
)
async def test_a_bad_plan_is_mended_once_A6(bad, problem):
    plan, usage, model = await first(bad, drafted(steps=1))
    assert plan.steps == ("S1: Do 1",)
    assert problem in model.requests[1].messages[-1].text
    assert usage == ONE_CALL + ONE_CALL


async def test_without_a_model_there_is_no_first_plan_and_the_next_does_what_is_missing():
    plan, usage, _ = await first("nonsense", "nonsense")
    assert (plan, usage) == (None, ONE_CALL + ONE_CALL)
    plan, *_ = await again([ProviderError("llm.no_key")])
    assert plan == plain_continuation(CONTEXT)


async def test_a_small_model_is_told_less():
    long = CONTEXT.model_copy(update={"problems": tuple(f"{n} " + "word " * 40 for n in range(6))})
    told = []
    for small in (False, True):
        model = FakeModel(drafted(), traits=ModelTraits(name="m", window=8192, small=small))
        await put(model, plan_continuation_execution("Make a.py", long, ()))
        told.append(len(model.requests[0].messages[1].text))
    assert told[1] < 1_000 < told[0]


def test_without_a_model_the_next_attempt_does_what_is_missing_J4():
    plan = plain_continuation(CONTEXT)
    assert (plan.strategy, plan.steps) == ("print hello", ("print hello",))
    assert plan.constraints[0] == "no network"
    assert plan.avoid == ("Use the template",)
    other = plain_continuation(CONTEXT.model_copy(update={"alternatives": ("by hand",)}))
    assert other.strategy == "by hand"
    assert plain_continuation(ContinuationContext(score=0, needed=0.8)).strategy == "another way than before"
