"""Decision and Action: the single format for everything a model wants to do (A1, A2)."""

import unicodedata
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, cast, get_args

from pydantic import Field, JsonValue, ValidationInfo, field_validator, model_validator

from duckflow.domain.frozen import Frozen
from duckflow.domain.model import JsonSchema
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.reading.fitting import as_text, share_of, word_of
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
TALK: tuple[TaskProfile, ...] = ("simple_question", "general_chat")
"""Kinds of requests that end once they are answered and that need little thinking."""

_KNOWN = {
    "step": tuple(Step),
    "prompt_pattern": get_args(PromptPattern),
    "task_profile": get_args(TaskProfile),
}
"""Allowed words of some fields. An unknown word counts as if the field were missing (A6)."""

_OPTIONAL = ("rationale", "goal_consistency", "constraint_check", "state_delta", "reply", "actions")
"""Fields whose default also replaces a null."""

_TROUBLE = (
    "conflict|constraint|contradiction|violation|issue|problem|objection|concern|worry|worrie|risk|doubt|breach|"
    "deviation|restriction|limitation|rule|harm|change|file"
)
_NO = lazy_regex(
    r"[^\w{\[]*(?:(?:nope|false)\b"
    # Exclude "no-op", "no one", and "no new conflict", which is not a negative answer either.
    rf"|no\b(?!-\w|\s+one\b|\s+(?:(?:new|other|further|known|such|hard|real)\s+){{0,2}}(?:{_TROUBLE})s?\b)"
    r"|いいえ|いえ(?!\w)|ノー(?!\w)|否(?!\w))"
)


_EDIT_NAMES = {"old_string": "find", "new_string": "replace", "replace_all": "all"}
"""Field names of an edit in other programs, and their names here."""


class Action(Frozen):
    """One call of one operation of the tool catalogue."""

    operation: Annotated[str, Field(min_length=1, max_length=200)]
    args: dict[str, JsonValue] = Field(default_factory=dict)
    reasoning: str | None = None
    call_id: str = ""
    """Id of the native tool call behind this action. The result is returned under this id."""

    @field_validator("reasoning", mode="before")
    @classmethod
    def _in_words(cls, value: object) -> str | None:
        return None if value is None else as_text(value)

    @field_validator("args")
    @classmethod
    def _with_own_names(cls, args: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if "old_string" in args and "edits" not in args:
            rest = {name: value for name, value in args.items() if name not in _EDIT_NAMES}
            return {**rest, "edits": [_as_edit(args)]}
        edits = args.get("edits")
        if not isinstance(edits, list):
            return args
        return {**args, "edits": [_as_edit(one) if isinstance(one, dict) else one for one in edits]}


def _as_edit(given: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        _EDIT_NAMES.get(name, name): value
        for name, value in given.items()
        if name in _EDIT_NAMES or "old_string" not in given
    }


class StateDelta(Frozen):
    """Changes a decision may make to the five items; other fields are rejected (E2)."""

    goal: str | None = None
    why_now: str | None = None
    constraints: tuple[str, ...] | None = None
    plan_brief: tuple[str, ...] | None = None
    open_questions: tuple[str, ...] | None = None
    context_refs: tuple[str, ...] | None = None
    decision_log: tuple[str, ...] | None = None
    last_delta: str | None = None


class Decision(Frozen):
    """A model's decision: its reasoning, a reply for the user, and actions in order."""

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

    @model_validator(mode="before")
    @classmethod
    def _next_step_by_actions(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        fields = cast("dict[str, Any]", data)
        said = word_of(fields.get("next_step"), get_args(NextStep))
        return {**fields, "next_step": said or ("continue" if fields.get("actions") else "done")}

    @field_validator("rationale", "goal_consistency", "constraint_check", mode="before")
    @classmethod
    def _in_words(cls, value: object) -> str:
        return as_text({True: "yes", False: "no"}[value] if isinstance(value, bool) else value)

    @field_validator("step", "prompt_pattern", "task_profile", mode="before")
    @classmethod
    def _known_word(cls, value: object, info: ValidationInfo) -> str | None:
        return word_of(value, _KNOWN[str(info.field_name)])

    @field_validator("confidence", mode="before")
    @classmethod
    def _share(cls, value: object) -> float | None:
        return share_of(value)

    # This validator is the last one here, because pydantic runs it before those above.
    @field_validator(*_OPTIONAL, mode="before")
    @classmethod
    def _left_out(cls, value: object, info: ValidationInfo) -> object:
        nothing = value is None or (value == "" and info.field_name == "state_delta")
        return cls.model_fields[str(info.field_name)].default if nothing else value

    @model_validator(mode="after")
    def _says_or_does(self) -> "Decision":
        if not self.reply.strip() and not self.actions:
            raise ValueError("a decision needs a reply or at least one action")
        return self

    @property
    def objection(self) -> str | None:
        """The answer about goal or constraints that begins with "no"; None if neither does (A5)."""
        return next((said for said in (self.goal_consistency, self.constraint_check) if is_no(said)), None)


def is_no(answer: str) -> bool:
    """Return whether an answer begins with "no", in English or Japanese. "none" does not count."""
    return bool(_NO.match(unicodedata.normalize("NFKC", answer).casefold()))


class Operation(NamedTuple):
    """An operation as described to a model: its name, one line with its arguments, and their schema."""

    name: str
    line: str
    schema: Callable[[], JsonSchema]
    """Builds the schema on demand: most models are shown only the line."""
