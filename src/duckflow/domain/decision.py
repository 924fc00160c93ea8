"""Decision and Action: the one shape of everything a model wants done (SPEC A1, A2)."""

import unicodedata
from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, JsonValue, ValidationInfo, field_validator, model_validator

from duckflow.domain.frozen import Frozen
from duckflow.domain.model import JsonSchema
from duckflow.domain.patterns import late
from duckflow.domain.transitions import Step

NextStep = Literal["done", "pending_user", "defer", "continue"]
PromptPattern = Literal["base_main", "base_main_specialized", "base_specialized"]
TaskProfile = Literal[
    "simple_question",
    "code_analysis",
    "file_operation",
    "complex_reasoning",
    "multi_step_task",
    "general_chat",
    "creative_writing",
    "debugging",
    "research",
]

_YES = late(r"(?:yes(?!\W*(?:and|or|but)?\W*no\b)|はい(?:です)?|ええ)(?!\w)")


class Action(Frozen):
    """One call of one operation of the tool catalogue."""

    operation: Annotated[str, Field(min_length=1, max_length=200)]
    args: dict[str, JsonValue] = Field(default_factory=dict)
    reasoning: str | None = None
    call_id: str = ""
    """Id of the native tool call that expressed it. The result goes back under this id."""


class StateDelta(Frozen):
    """What a decision may set of the five items; nothing else is accepted (SPEC E2)."""

    goal: str | None = None
    why_now: str | None = None
    constraints: tuple[str, ...] | None = None
    plan_brief: tuple[str, ...] | None = None
    open_questions: tuple[str, ...] | None = None
    context_refs: tuple[str, ...] | None = None
    decision_log: tuple[str, ...] | None = None
    last_delta: str | None = None


class Decision(Frozen):
    """What the model wants: an explanation of itself, a reply for the user, actions in order."""

    rationale: str = ""
    goal_consistency: str = "yes"
    constraint_check: str = "yes"
    next_step: NextStep
    step: Step | None = None
    prompt_pattern: PromptPattern | None = None
    state_delta: StateDelta = StateDelta.model_construct()
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    task_profile: TaskProfile | None = None
    reply: str = ""
    actions: tuple[Action, ...] = ()

    @field_validator("state_delta", "reply", "rationale", "actions", mode="before")
    @classmethod
    def _left_out(cls, value: object, info: ValidationInfo) -> object:
        """Null is as good as nothing, and so is an empty text for what is to be set."""
        nothing = value is None or (value == "" and info.field_name == "state_delta")
        return cls.model_fields[str(info.field_name)].default if nothing else value

    @model_validator(mode="after")
    def _says_or_does(self) -> "Decision":
        if not self.reply.strip() and not self.actions:
            raise ValueError("a decision needs a reply or at least one action")
        return self

    @property
    def objection(self) -> str | None:
        """The model's answer on its goal or constraints that is no clear yes, if there is one (SPEC A5)."""
        return next(
            (said for said in (self.goal_consistency, self.constraint_check) if not is_yes(said)), None
        )


def is_yes(answer: str) -> bool:
    """Whether it clearly begins with yes, in English or Japanese: not "yesterday", not "yes and no"."""
    return bool(_YES.match(unicodedata.normalize("NFKC", answer).strip().casefold()))


class Operation(NamedTuple):
    """An operation as a model learns of it: its name, one line with its arguments, and their schema."""

    name: str
    line: str
    schema: Callable[[], JsonSchema]
    """Made on demand: most models are shown the line alone."""
