"""Missing parts after a verdict (J4, K1)."""

import json

from duckflow.domain.errors import ProviderError
from duckflow.domain.model import Usage
from duckflow.domain.work.objective import RequirementScore, SatisfactionEvaluation
from duckflow.services.evaluation import extract_missing_information, plain_missing
from duckflow.services.questions import put
from fakes.cases import case
from fakes.model import ONE_CALL, FakeModel
from fakes.rows import every_row

SCORES = (
    RequirementScore(requirement="a.py exists", priority=1, score=1.0, evidence=("e1",)),
    RequirementScore(requirement="it is fast", priority=3, score=0.2),
    RequirementScore(requirement="it prints hello", priority=2, score=0.0),
)
UNMET = SatisfactionEvaluation(
    overall_score=0.5, done=False, requirement_scores=SCORES, missing_aspects=("nothing is printed",)
)


def found(*missing, constraints=(), alternatives=()):
    items = [{"what": what, "priority": priority} for what, priority in missing]
    return json.dumps({"missing": items, "constraints": constraints, "alternatives": alternatives})


async def extract(*turns, evaluation=UNMET):
    model = FakeModel(*turns)
    made, usage = await put(model, extract_missing_information(case(), evaluation))
    return made, usage, model


async def test_what_is_lacking_comes_most_important_first_J4():
    answer = found(("speed", 3), ("print\nhello", 1), (" ", 1), constraints=["no network", "no network", ""])
    made, usage, model = await extract(answer)
    assert [(one.what, one.priority) for one in made.missing] == [("print hello", 1), ("speed", 3)]
    assert made.constraints == ("no network",)
    assert usage == ONE_CALL
    system, asked = (message.text for message in model.requests[0].messages)
    assert "\nOutput: MissingInfoAnalysis\n" in system
    assert "3. it prints hello: 0.00" in asked
    assert "- nothing is printed" in asked
    assert asked.endswith("Output: MissingInfoAnalysis")


async def test_answers_are_bounded():
    many = [str(n) for n in range(30)]
    made, *_ = await extract(found(*((one, 1) for one in many), constraints=many, alternatives=many))
    assert (len(made.missing), len(made.constraints), len(made.alternatives)) == (8, 5, 5)


@every_row(
    ("turns", "spent"),
    [
        (("nonsense", "more nonsense"), ONE_CALL + ONE_CALL),
        ((found(("a", 7)), found(("b", 7))), ONE_CALL + ONE_CALL),
        (([ProviderError("llm.no_key")],), Usage()),
    ],
)
async def test_where_no_model_can_tell_the_verdict_does_J4(turns, spent):
    made, usage, _ = await extract(*turns)
    assert made == plain_missing(UNMET)
    assert [one.what for one in made.missing] == ["nothing is printed"]
    assert usage == spent


async def test_a_model_that_finds_nothing_missing_does_not_have_the_last_word_J4():
    made, *_ = await extract(found(alternatives=["by hand"]))
    assert [one.what for one in made.missing] == ["nothing is printed"]
    assert made.alternatives == ("by hand",)


def test_where_the_verdict_names_nothing_the_unmet_requirements_are_lacking_J4():
    plain = plain_missing(UNMET.model_copy(update={"missing_aspects": ()}))
    assert [(one.what, one.priority) for one in plain.missing] == [("it prints hello", 2), ("it is fast", 3)]
