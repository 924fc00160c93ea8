"""Requirements of a request (J1, K1)."""

import json
from datetime import UTC, datetime

from duckflow.domain.errors import ProviderError, Unavailable
from duckflow.domain.events import Event, RequestFinished, RequirementsFound, StoredEvent, UserMessage
from duckflow.domain.model import ModelTraits, Usage
from duckflow.domain.reduce.apply import apply
from duckflow.domain.state import AgentState
from duckflow.prompts.questions import SMALL_ANSWER
from duckflow.services.evaluation import (
    MOST_REQUIREMENTS,
    RequirementList,
    extract_task_requirements,
    plain_requirements,
)
from duckflow.services.questions import put
from fakes.model import ONE_CALL, FakeModel
from fakes.rows import every_row

REQUEST = "Create hello.py that\nprints hello"


def listed(*parts):
    return json.dumps({"requirements": [{"requirement": text, "priority": rank} for text, rank in parts]})


async def extract(*turns, **options):
    model = FakeModel(*turns, **options)
    found, usage = await put(model, extract_task_requirements(REQUEST, "- hello → hi"))
    return found.requirements, usage, model


async def test_a_request_becomes_requirements_with_priorities_J1():
    found, usage, model = await extract(listed(("hello.py exists", 1), ("it prints hello", 2)))
    assert [(one.requirement, one.priority, one.satisfaction, one.evidence) for one in found] == [
        ("hello.py exists", 1, 0.0, ()),
        ("it prints hello", 2, 0.0, ()),
    ]
    assert usage == ONE_CALL
    (request,) = model.requests
    system, asked = request.messages
    assert request.output == "RequirementList"
    assert "\nOutput: RequirementList\n" in system.text
    assert system.stable
    assert REQUEST in asked.text
    assert "- hello → hi" in asked.text
    assert asked.text.endswith("Output: RequirementList")


@every_row(
    ("bad", "problem"),
    [
        ("I would list them.", "JSON"),
        (listed(), "needs at least one"),
        ('{"requirements": [], "profile": "debugging"}', "needs at least one"),
        (listed((" ", 1)), "none may be empty"),
        (listed(("a", 4)), "`requirements[0].priority`"),
        ('{"requirements": [{"text": "a"}]}', "`requirements[0].requirement` is missing"),
    ],
)
async def test_a_bad_list_is_mended_once_A6(bad, problem):
    found, usage, model = await extract(bad, listed(("it prints hello", 1)))
    assert [one.requirement for one in found] == ["it prints hello"]
    assert problem in model.requests[1].messages[-1].text
    assert usage == ONE_CALL + ONE_CALL


@every_row(
    ("turns", "spent"),
    [
        (("nonsense", "nonsense"), ONE_CALL + ONE_CALL),
        (([ProviderError("llm.no_key")],), Usage()),
        (([Unavailable("llm.timeout", seconds=1)],), Usage()),
    ],
)
async def test_where_no_model_can_tell_the_request_itself_is_what_is_wanted_J1(turns, spent):
    found, usage, _ = await extract(*turns)
    assert found == plain_requirements(REQUEST)
    assert [(one.requirement, one.priority) for one in found] == [("Create hello.py that prints hello", 1)]
    assert usage == spent


async def test_repeated_and_too_many_requirements_go_the_least_important_first():
    parts = [
        ("Same", 1),
        ("same", 3),
        *((f"wish {n}", 3) for n in range(6)),
        *((f"must {n}", 1) for n in range(10)),
    ]
    found, *_ = await extract(listed(*parts))
    assert len(found) == MOST_REQUIREMENTS
    assert [one.requirement for one in found] == ["Same", "wish 0", *(f"must {n}" for n in range(10))]


async def test_what_a_model_writes_stays_one_line_of_bounded_length():
    found, *_ = await extract(listed(("a\n2. b (priority 1)", 1), ("word " * 200, 2)))
    assert found[0].requirement == "a 2. b (priority 1)"
    assert len(found[1].requirement) == 300


async def test_a_model_that_can_be_bound_is_bound_and_a_small_one_says_little():
    _, _, model = await extract(listed(("a", 1)), traits=ModelTraits(name="s", window=4096, small=True))
    (request,) = model.requests
    schema = request.answer_schema
    assert schema is not None
    assert schema["required"] == list(RequirementList.model_fields)
    assert schema["$defs"]["RequirementDraft"]["required"] == ["requirement", "priority", "asks_for"]
    assert (request.max_tokens, request.temperature) == (SMALL_ANSWER, 0.0)
    assert SMALL_ANSWER <= 300


@every_row(
    ("said", "profile"),
    [
        ("debugging", "debugging"),
        ("Code Analysis", "code_analysis"),
        ("multi-step task", "multi_step_task"),
        ("feature", None),
        (3, None),
        (None, None),
    ],
)
async def test_the_kind_of_task_is_asked_for_with_the_requirements_A8(said, profile):
    answer = json.dumps({"requirements": [{"requirement": "it prints hello"}], "profile": said})
    model = FakeModel(answer)
    found, _ = await put(model, extract_task_requirements(REQUEST))
    assert found.profile == profile
    assert "- profile" in model.requests[0].messages[0].text


async def test_a_long_request_is_in_the_question_once_and_whole_J2():
    request = "\n".join(f"{number}. the report has a column {number}" for number in range(700))
    model = FakeModel(listed(("a", 1)), traits=ModelTraits(name="m", window=200_000))
    await put(model, extract_task_requirements(request))
    asked = model.requests[0].messages[-1].text
    assert asked.count(request) == 1


async def test_C6_new_words_are_read_beside_the_requirements_so_far():
    model = FakeModel(json.dumps({"requirements": [{"requirement": "b.py exists"}], "replaces": True}))
    known = plain_requirements("a.py exists")
    found, _ = await put(model, extract_task_requirements("a.py\n\nb.py instead", "", known, "b.py instead"))
    asked = model.requests[0].messages[-1].text
    assert "Requirements so far:\n- a.py exists" in asked
    assert "Since then the user has said:\nb.py instead" in asked
    assert ([one.requirement for one in found.requirements], found.replaces) == (["b.py exists"], True)


def applied(state: AgentState, event: Event) -> AgentState:
    return apply(state, StoredEvent(seq=1, at=datetime(2026, 1, 1, tzinfo=UTC), event=event))


async def test_C4_words_after_a_stop_may_ask_for_something_else():
    said = UserMessage(request_id="r", text="which versions?")
    stopped = RequestFinished(request_id="r", outcome="interrupted", exit_code=130)
    state = AgentState()
    for event in (UserMessage(request_id="r", text="make a.txt"), stopped, said):
        state = applied(state, event)
    assert state.request is not None
    objective = state.request.objective
    assert (objective.added, objective.stopped) == ("which versions?", True)
    model = FakeModel(json.dumps({"requirements": [{"requirement": "name the versions"}], "replaces": True}))
    question = extract_task_requirements(objective.request, "", (), objective.added, stopped=True)
    found, _ = await put(model, question)
    assert "The user stopped this work. After that the user has said:\nwhich versions?" in (
        model.requests[0].messages[-1].text
    )
    state = applied(state, RequirementsFound(requirements=found.requirements, replaces=found.replaces))
    assert state.request is not None
    assert state.request.objective.request == "which versions?", "the stopped request is not taken up again"
    assert not state.request.objective.stopped


async def test_J1_thanks_need_no_requirements_and_no_second_question():
    model = FakeModel('{"requirements": [], "profile": "general_chat"}')
    found, usage = await put(model, extract_task_requirements("ありがとう！"))
    assert (found.profile, usage) == ("general_chat", ONE_CALL)
