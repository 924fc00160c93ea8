"""Whole prompts, word for word, in both languages and each pattern.

After a change that is meant: `.venv/bin/pytest tests/prompts/test_prompt_snapshots.py --inline-snapshot=fix`.
"""

from typing import get_args

from inline_snapshot import external_file

from duckflow.dialects.compact_prompt import Choices, CompactPrompt
from duckflow.dialects.json_text import json_prompt
from duckflow.dialects.prompt import PromptFrame
from duckflow.domain.decision import Operation, PromptPattern
from duckflow.domain.model import ModelRequest, ModelTraits
from duckflow.domain.reduce.transcript import outdate
from duckflow.domain.state import AgentState
from duckflow.domain.transitions import Step
from duckflow.llm.tokens import TokenCounter
from fakes.prompt_states import ENGLISH, JAPANESE, looks
from fakes.rows import every_row

OPERATIONS = tuple(
    Operation(name=line.partition("(")[0], line=line, schema=dict)
    for line in (
        "file_ops.read_file(path, start?, end?): the text of the file at path",
        "file_ops.write_file(path, content): make or replace the file at path",
    )
)
FRAME = PromptFrame(rules="[AGENTS.md]\nUse four spaces.")
STATES = {"en": ENGLISH, "ja": JAPANESE}


def written(request: ModelRequest) -> str:
    return "\n".join(f"=== {message.role}\n{message.text}" for message in request.messages) + "\n"


async def full(state: AgentState, window: int = 32_768) -> str:
    traits = ModelTraits(name="any", window=window)
    return written((await json_prompt(traits, OPERATIONS, FRAME, TokenCounter()).assemble(state)).request)


@every_row("language", STATES)
@every_row("pattern", get_args(PromptPattern))
async def test_F1_F2_the_prompt_in_each_pattern(language: str, pattern: PromptPattern):
    state = STATES[language].model_copy(update={"pattern": pattern})
    assert await full(state) == external_file(f"snapshots/{pattern}_{language}.txt")


@every_row("step", [Step.PLANNING, Step.REVIEW])
async def test_F1_the_prompt_in_the_other_steps(step: Step):
    state = ENGLISH.model_copy(update={"pattern": "base_main_specialized", "step": step})
    assert await full(state) == external_file(f"snapshots/{step.lower()}_en.txt")


async def test_F3_the_prompt_after_a_step_of_leaving_out():
    state, _ = outdate(looks(ENGLISH, 2, 8, size=1500), "part_7.py")
    assert await full(state, window=6000) == external_file("snapshots/left_out_en.txt")


@every_row("language", STATES)
async def test_the_prompt_for_small_models(language: str):
    traits = ModelTraits(name="small", window=8192, small=True)
    prompt = await CompactPrompt(traits, FRAME.rules, TokenCounter()).assemble(STATES[language], Choices())
    assert written(prompt.request) == external_file(f"snapshots/compact_{language}.txt")
