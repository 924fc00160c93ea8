"""F1, F2, F6, F8, B5: what stands in which layer, and which layers a pattern shows."""

from typing import get_args

from duckflow.dialects.json_text import json_prompt
from duckflow.dialects.prompt import PromptFrame
from duckflow.domain.decision import (
    Action,
    Decision,
    NextStep,
    Operation,
    PromptPattern,
    StateDelta,
    TaskProfile,
)
from duckflow.domain.model import ModelTraits
from duckflow.domain.modes import Mode
from duckflow.domain.pacing.vitals import Vitals
from duckflow.domain.state import AgentState
from duckflow.domain.transitions import Step
from duckflow.llm.tokens import TokenCounter, estimate_tokens
from duckflow.prompts.layers import (
    LOW_FOCUS,
    LOW_STAMINA,
    MODES,
    SandboxKind,
    main_text,
    procedure_text,
    sandbox_text,
    session_text,
)
from duckflow.prompts.templates import template
from fakes.prompt_states import ENGLISH, JAPANESE, answered, asked, background, looks
from fakes.rows import every_row

OPERATIONS = (Operation(name="file_ops.read_file", line="file_ops.read_file(path): its text", schema=dict),)
MAIN, PROCEDURE = "Step: EXECUTION", "Procedure for EXECUTION"


async def prompt_for(state: AgentState, rules: str = "", window: int = 32_768) -> list[str]:
    """The texts of a prompt."""
    traits = ModelTraits(name="any", window=window)
    made = json_prompt(traits, OPERATIONS, PromptFrame(rules=rules), TokenCounter())
    return [message.text for message in (await made.assemble(state)).request.messages]


def test_F1_the_fixed_part_of_base_is_short():
    assert len(template("base")) <= 1000
    assert estimate_tokens(template("base")) <= 300


@every_row("word", ["Clarify", "Propose", "Gate", "Summarize", "next", "Nudge", "one question"])
def test_F6_base_holds_the_policy_of_the_dialog(word: str):
    assert word in template("base")


def test_F8_base_says_in_which_language_to_reply():
    assert "in the language of the user's last message" in template("base")


async def test_F5_order_is_fixed_text_operations_rules_conversation_and_what_changes():
    system, *conversation, ending = await prompt_for(ENGLISH, rules="[AGENTS.md]\nBe kind.")
    places = [
        system.index(part)
        for part in ("You are Duckflow", "Output: Decision", "file_ops.read_file", "Be kind.", "Session:")
    ]
    assert places == sorted(places)
    assert conversation == [entry.text for entry in ENGLISH.transcript]
    places = [ending.index(part) for part in ("Earlier requests", "Step:", "Output: Decision")]
    assert places == sorted(places)
    assert ending.endswith("\nOutput: Decision")


async def test_L3_rules_are_there_in_full():
    rules = "[AGENTS.md]\n" + "\n".join(f"{{rule}} {number}" for number in range(300))
    assert rules in (await prompt_for(ENGLISH, rules=rules))[0]


@every_row(
    ("pattern", "main", "procedure"),
    [
        ("base_main", True, False),
        ("base_main_specialized", True, True),
        ("base_specialized", False, True),
    ],
)
async def test_F2_the_model_chooses_what_the_next_prompt_shows(pattern: PromptPattern, main, procedure):
    state = ENGLISH.model_copy(update={"pattern": pattern})
    system, *_, ending = await prompt_for(state)
    assert "You are Duckflow" in system
    assert (MAIN in ending, PROCEDURE in ending) == (main, procedure)


@every_row("step", [Step.AWAITING_APPROVAL, Step.DONE])
async def test_a_step_without_a_procedure_shows_the_main_layer(step: Step):
    state = ENGLISH.model_copy(update={"pattern": "base_specialized", "step": step})
    assert f"Step: {step}" in (await prompt_for(state))[-1]


@every_row("step", [Step.PLANNING, Step.EXECUTION, Step.REVIEW])
def test_F1_each_working_step_has_a_procedure(step: Step):
    assert f"Procedure for {step}" in procedure_text(step)
    assert estimate_tokens(procedure_text(step)) <= 300


def test_F1_review_yields_a_rating_problems_improvements_and_a_verdict():
    review = procedure_text(Step.REVIEW)
    for word in ("good, fair or poor", "problems", "improvements", "approve, fix or reject"):
        assert word in review


def test_F1_main_shows_step_status_task_and_the_five_items():
    main = main_text(ENGLISH)
    for line in (
        "Step: EXECUTION",
        "Task: Make a small game in Python that I can play in the terminal.",
        "Goal: A game that can be played",
        "Why now: The user wants to show it today",
        "Constraints: standard library only",
        "Brief plan: write the moves; play a round",
        "Open questions: how large is the board?",
    ):
        assert f"{line}\n" in main


def test_B5_main_carries_the_progress_of_plan_and_background():
    main = main_text(ENGLISH)
    assert "1 of 3 steps complete, now: Moves (step_2)" in main
    assert "In the background: 1 of 4 tasks complete, 1 failed, now: file_ops.write_file" in main
    ended = background().model_copy(update={"ended": True})
    over = ENGLISH.model_copy(update={"task_list": ended, "active_plan_id": None})
    assert "complete" not in main_text(over)


def test_a_long_task_is_one_short_line_in_main():
    main = main_text(asked("Do\nthis: " + "very " * 200 + "well"))
    assert "Task: Do this: very" in main
    assert max(map(len, main.splitlines())) <= 130


@every_row("mode", get_args(Mode))
def test_the_session_says_what_the_mode_permits(mode: Mode):
    assert MODES[mode] in session_text(ENGLISH.model_copy(update={"mode": mode}))
    assert "folder parts" in session_text(ENGLISH)


async def test_F1_summaries_are_shown_for_what_the_conversation_no_longer_shows():
    ending = (await prompt_for(ENGLISH))[-1]
    assert "- What is in this folder? → Only a README.\n" in ending
    spoken = asked("What is in this folder?", answered("Only a README."), summaries=ENGLISH.summaries)
    assert "Earlier requests" not in (await prompt_for(spoken))[-1]


async def test_F1_a_summary_comes_in_the_very_prompt_its_conversation_goes_from():
    first = "Tell me about the first thing. " * 5
    summary = f"{first[:49]}… → It is the first."
    state = asked(first, *[answered("word " * 300)] * 20, summaries=(summary,))
    later = asked("And the second?").transcript
    state = state.model_copy(
        update={"request": asked("And the second?").request, "transcript": state.transcript + later}
    )
    made = await prompt_for(looks(state, 1, 40), window=8192)
    assert first not in made
    assert summary in made[-1]


@every_row("state", [ENGLISH, JAPANESE], ids=["en", "ja"])
async def test_the_last_line_says_what_to_answer(state: AgentState):
    """N: every output part begins with a line that names the answer."""
    system, *_, ending = await prompt_for(state)
    assert "\nOutput: Decision\n" in system
    assert ending.splitlines()[-1] == "Output: Decision"


def test_the_format_names_every_field_and_value_of_a_decision():
    text = template("decision")
    fields = [*Decision.model_fields, *(name for name in Action.model_fields if name != "call_id")]
    set_by_model = [name for name in StateDelta.model_fields if name not in OTHER_ITEMS]
    values = [*get_args(NextStep), *get_args(PromptPattern), *get_args(TaskProfile)]
    steps = [Step.PLANNING, Step.EXECUTION, Step.REVIEW]
    assert [word for word in [*fields, *set_by_model, *values, *steps] if word not in text] == []


OTHER_ITEMS = ("context_refs", "decision_log", "last_delta")
"""May be set, but are not asked for: they are not among the five."""


@every_row(
    ("kind", "network", "told"),
    [
        (
            "copy",
            False,
            ("on a copy", "/tmp is private and kept", "network is off", "network true", "secrets"),
        ),
        ("copy", True, ("on a copy", "network is open")),
        ("folder", False, ("in the folder itself", "/tmp", ".git", "network is off", ".env")),
        ("landlock", False, ("in the folder itself", "$TMPDIR", "not be made at its top", "network is off")),
        ("external", False, ("calls the sandbox", "$TMPDIR", "network is open")),
        ("none", False, ("without a sandbox", "asked before each", "network is open")),
    ],
)
def test_G7_the_model_is_told_where_its_commands_run(kind: SandboxKind, network: bool, told: tuple[str, ...]):
    said = sandbox_text(kind, network=network, output=12_000)
    assert [word for word in told if word not in said] == []
    assert ("network is off" in said) != ("network is open" in said)
    assert "12,000 characters" in said
    assert said.count("\n") <= 3
    assert estimate_tokens(said) <= 115
    assert said in session_text(ENGLISH, said)


def test_F7_low_focus_asks_for_a_simpler_plan_and_low_stamina_for_an_end():
    calm = ENGLISH.model_copy(update={"vitals": Vitals(mood=0.9, focus=0.5, stamina=0.8)})
    lost = ENGLISH.model_copy(update={"vitals": Vitals(mood=0.9, focus=0.49, stamina=0.8)})
    tired = ENGLISH.model_copy(update={"vitals": Vitals(mood=0.9, focus=0.5, stamina=0.29)})
    assert LOW_FOCUS in main_text(lost)
    assert LOW_STAMINA in main_text(tired)
    for word in ("focus", "stamina", "mood", "Vitals"):
        assert word not in main_text(calm), "what nothing follows from is not shown"
