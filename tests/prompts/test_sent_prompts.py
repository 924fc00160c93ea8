"""Prompts on the wire over whole sessions: they repeat, they are short, and their beginning never changes."""

from pathlib import Path

import pytest

from duckflow.domain.events import ConsultationRequested, DecisionMade
from duckflow.llm.tokens import estimate_tokens
from fakes.engine import action, decision, engine
from fakes.model_server import ModelServer
from fakes.plays import asked_for, play
from fakes.sent_prompts import cost, make_project, median_share, send, small_looks

ASKED = ["Which part returns 7?"]
TALK = [f"What does src/part_{number:02}.py do?" for number in range(10)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


@pytest.fixture
def bare(project: Path) -> Path:
    (project / "AGENTS.md").unlink()
    return project


async def test_F5_ten_loops_of_a_request_repeat_nine_tenths(bare: Path):
    prompts = await send(bare, ASKED, small_looks(10))
    assert len(prompts) == 10
    assert median_share(prompts) >= 0.9


async def test_F5_ten_requests_repeat_nine_tenths(bare: Path):
    prompts = await send(bare, TALK, [decision("It returns its number, and nothing else uses it.")] * 10)
    assert len(prompts) == 10
    assert median_share(prompts) >= 0.9


async def test_F3_the_first_prompt_in_a_project_with_rules_is_short(project: Path):
    prompts = await send(project, ASKED, small_looks(1))
    assert estimate_tokens(prompts[0]) <= 3500


async def test_F5_a_session_of_small_commands_costs_little(project: Path):
    """Twice what the most frugal agent takes, counted alike; with rules that it did not have."""
    prompts = await send(project, ASKED, small_looks(21))
    assert len(prompts) == 21
    assert cost(prompts) <= 46_600


async def test_F5_the_first_message_stays_the_same_through_a_session(project: Path):
    answers = [
        decision("", action("read_file", path="README.md"), step="EXECUTION", state_delta={"goal": "know"}),
        decision("", action("write_file", path="a.py", content="x = 1\n"), prompt_pattern="base_specialized"),
        decision("", action("edit_file", path="a.py", edits=[{"find": "x = 1", "replace": "x = 2"}])),
        decision("Done.", step="REVIEW"),
        decision("Hello."),
    ]
    with ModelServer(play(*answers)) as server:
        async with engine(project, server=server) as duck:
            await duck.app.chat.say("Look and write")
            rules = project / "AGENTS.md"
            rules.write_text(rules.read_text().replace("# Rules", "# New"))
            await duck.app.chat.say("こんにちは")
        sent = [asked.body["messages"] for asked in server.requests if asked_for(asked.body) == "Decision"]
        systems = {messages[0]["content"] for messages in sent}
        assert [messages[0]["role"] for messages in sent] == ["system"] * 5
    assert len(systems) == 1
    assert "Rule 38" in systems.pop()


async def test_F2_the_pattern_the_model_asks_for_is_what_it_gets_next(project: Path):
    answers = [
        decision("", action("read_file", path="README.md"), prompt_pattern="base_main_specialized"),
        decision("", action("read_file", path="src/part_01.py"), step="EXECUTION"),
        decision("", action("read_file", path="src/part_02.py"), prompt_pattern="base_main"),
        decision("Done."),
    ]
    prompts = await send(project, ASKED, answers)
    assert ["Procedure for PLANNING" in prompt for prompt in prompts] == [False, True, False, False]
    assert ["Procedure for EXECUTION" in prompt for prompt in prompts] == [False, False, True, False]


async def test_F3_rules_that_are_too_long_are_told_before_the_model_is_asked(project: Path):
    (project / "AGENTS.md").write_text("1234567890" * 6000, "utf-8")
    async with engine(project, decision("hello")) as duck:
        assert await duck.app.chat.say("hello") == "consultation"
        (asked,) = duck.of(ConsultationRequested)
        assert [one.key for one in asked.consultation.findings] == ["prompt.rules_too_long"]
        assert duck.of(DecisionMade) == []
