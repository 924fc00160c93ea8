"""Causes of failures (K1)."""

import json

from duckflow.domain.errors import ProviderError
from duckflow.services.evaluation import MOST_FIXES, analyze_execution_failure
from duckflow.services.questions import put
from fakes.cases import seen
from fakes.model import ONE_CALL, FakeModel


def told(cause="The path is wrong.", *fixes):
    return json.dumps({"cause": cause, "fixes": list(fixes)})


async def analyze(*turns):
    model = FakeModel(*turns)
    failures = ["e1 read b.py: no such file", "e2 read c.py:\nno such file"]
    found, usage = await put(
        model, analyze_execution_failure("Fix b.py", failures, seen("e3", text="a.py, d.py"))
    )
    return found, usage, model


async def test_the_cause_and_what_to_do_about_it_K1():
    found, usage, model = await analyze(told("The\npath is wrong.", "look at\nd.py", " ", "ask"))
    assert (found.cause, found.fixes) == ("The path is wrong.", ("look at d.py", "ask"))
    assert usage == ONE_CALL
    system, asked = (message.text for message in model.requests[0].messages)
    assert "\nOutput: FailureAnalysis\n" in system
    for shown in (
        "Fix b.py",
        "- e1 read b.py: no such file",
        "- e2 read c.py: no such file",
        "[e3] a.py, d.py",
    ):
        assert shown in asked
    assert asked.endswith("Output: FailureAnalysis")


async def test_an_analysis_without_a_cause_is_mended_once_A6():
    found, usage, model = await analyze(told(" "), told())
    assert found.cause == "The path is wrong."
    assert "`cause` is empty" in model.requests[1].messages[-1].text
    assert usage == ONE_CALL + ONE_CALL


async def test_fixes_are_bounded():
    found, *_ = await analyze(told("x " * 2_000, *map(str, range(20))))
    assert len(found.fixes) == MOST_FIXES
    assert len(found.cause) == 1_000


async def test_without_a_model_there_is_no_analysis():
    found, usage, _ = await analyze("nonsense", "more nonsense")
    assert (found, usage) == (None, ONE_CALL + ONE_CALL)
    found, *_ = await analyze([ProviderError("llm.no_key")])
    assert found is None
