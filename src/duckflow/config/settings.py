"""The settings, one model per part. The string under each field says what it does."""

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from duckflow.config.commands import ShellSettings
from duckflow.config.gate import GateSettings
from duckflow.config.memory import MemorySettings
from duckflow.config.pacing import PacemakerSettings
from duckflow.config.undo import UndoSettings
from duckflow.domain.frozen import Frozen
from duckflow.domain.objective import EvaluationRules
from duckflow.domain.state import Mode
from duckflow.domain.transitions import Transitions

Language = Literal["auto", "ja", "en"]
Name = Annotated[str, Field(min_length=1, max_length=500)]
Count = Annotated[int, Field(ge=1, le=10_000_000)]


class EmbeddedSettings(Frozen):
    """The model that runs inside Duckflow, without a key and without a network."""

    model: Name = "qwen2.5-coder-1.5b"
    """Which of the known models to use; `duckflow model list` shows them."""

    path: Path | None = None
    """A GGUF file of your own, used instead of a known model; `~` is your home."""

    threads: Count | None = None
    """Processor threads; left out, all cores but one."""

    window: Annotated[int, Field(ge=512, le=10_000_000)] = 8192
    """Tokens of prompt and answer together; more needs more memory."""

    @field_validator("path")
    @classmethod
    def _from_home(cls, path: Path | None) -> Path | None:
        return Path(os.path.expanduser(path)) if path else path  # noqa: PTH111 - Path's own can raise


class LlmSettings(Frozen):
    """Which models are asked, and how patiently."""

    model: Name | None = None
    """The model for everything, as `provider:model`; left out, one is chosen at the start."""

    creative: Name | None = None
    """The model that plans and writes, if it is to be another than `model`."""

    fast: Name | None = None
    """The model for short side questions, if it is to be another than `model`."""

    evaluator: Name | None = None
    """The model that judges results, if it is to be another than `model`."""

    by_task: bool = True
    """Whether simple work goes to the `fast` model, where that is another one."""

    small: bool | Literal["auto"] = "auto"
    """Whether to lead the model in small, narrow steps; `auto` does so for small models."""

    native_tools: bool = False
    """Let models that can do so call operations through their provider's own interface."""

    max_retries: Annotated[int, Field(ge=0, le=20)] = 4
    """How often a call is repeated when the provider is busy or breaks off."""

    time_limit_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 300.0
    """Seconds one call may take."""

    max_tokens: Count = 8192
    """The longest answer asked for, in tokens."""

    embedded: EmbeddedSettings = EmbeddedSettings()
    """The embedded model."""


class RulesSettings(Frozen):
    """The project's own rules, which go into every prompt."""

    files: tuple[Name, ...] = ("AGENTS.md", "DUCKFLOW.md")
    """Files looked for in the workspace, by name or by path inside it; all that exist are read."""

    max_bytes: Count = 65_536
    """A longer rules file is refused rather than cut."""

    @field_validator("files")
    @classmethod
    def _inside(cls, files: tuple[str, ...]) -> tuple[str, ...]:
        for name in files:
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise PydanticCustomError("outside_workspace", "not inside the workspace")
        return files


class PromptSettings(Frozen):
    """How much of the model's window each part of a prompt may take."""

    base_tokens: Annotated[int, Field(ge=300, le=100_000)] = 500
    """Tokens for who Duckflow is, the facts of the session and what was spoken of before."""

    main_tokens: Annotated[int, Field(ge=100, le=100_000)] = 800
    """Tokens for the work in hand: step, task, goal, constraints, plan."""

    specialized_tokens: Annotated[int, Field(ge=100, le=100_000)] = 1200
    """Tokens for the procedure of a step; one that does not fit is left out."""

    evidence_share: Annotated[float, Field(ge=0.05, le=0.9)] = 0.5
    """The share of the window that file contents and results may take."""


class UiSettings(Frozen):
    """The conversation on a terminal."""

    notify: Literal["off", "bell", "desktop"] = "off"
    """How you are called when it needs you or is done: a bell, or a notice of the desktop (OSC 9)."""

    titles: bool = True
    """Let the fast model give each session a title, for `/resume` and `duckflow sessions list`."""


class Settings(Frozen):
    """Everything that can be set."""

    language: Language = "auto"
    """The language Duckflow speaks; `auto` follows the locale."""

    mode: Mode = "ask"
    """What may happen without asking: plan (nothing changes), ask, edits, auto."""

    llm: LlmSettings = LlmSettings()
    """Models."""

    transitions: Transitions = Transitions()
    """Which step of the work may follow which."""

    duck_pacemaker: PacemakerSettings = PacemakerSettings()
    """Pace."""

    evaluation: EvaluationRules = EvaluationRules()
    """When a request is done."""

    rules: RulesSettings = RulesSettings()
    """Rules files."""

    prompt: PromptSettings = PromptSettings()
    """Prompts."""

    ui: UiSettings = UiSettings()
    """The conversation."""

    undo: UndoSettings = UndoSettings()
    """Undo."""

    memory: MemorySettings = MemorySettings()
    """Long-term memory."""

    shell: ShellSettings = ShellSettings()
    """Shell commands."""

    gate: GateSettings = GateSettings()
    """Questions."""
