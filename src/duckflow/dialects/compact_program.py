"""Decisions that the user's words leave no choice about, so that the program makes them for a small model."""

from duckflow.dialects.compact_prompt import Choices, Wish
from duckflow.dialects.dialect import DecisionResult, ModelCall
from duckflow.domain.decision import Action, Decision, TaskProfile
from duckflow.domain.model import ChatMessage
from duckflow.i18n.catalogue import Language, text_in

PROFILES: dict[Wish, TaskProfile] = {"answer": "simple_question", "change": "file_operation"}
"""Task profile for each wish of the user that a small model distinguishes."""

_MOST_SHOWN = 120
"""Largest number of lines of a file, or of files in a list, to show."""

NOT_FOUND = 127
"""Exit code of a shell that does not find a program."""


def saying(
    reply: str, calls: tuple[ModelCall, ...] = (), profile: TaskProfile = PROFILES["answer"]
) -> DecisionResult:
    """Return the decision to give this reply and to do nothing."""
    decision = Decision(reply=reply, next_step="done", task_profile=profile)
    return DecisionResult(
        decision=decision, exchange=(ChatMessage(role="assistant", text=reply),), calls=calls
    )


def decide_by_words(choices: Choices, language: Language) -> DecisionResult | None:
    """Return the decision if the user's words leave no choice, and a small model would only get it wrong."""
    if choices.action is not None:
        return _acting(choices.action)
    if choices.missing:
        return saying(text_in(language, "small.no_file", path=choices.missing))
    if choices.lists:
        listed = "\n".join(f"- `{path}`" for path in choices.files[:_MOST_SHOWN])
        return saying(listed or text_in(language, "small.no_files"))
    if choices.shows and choices.content:
        return saying(_shown(choices))
    match choices.plain:
        case "about":
            return saying(text_in(language, "small.about"))
        case "changes":
            paths = ("、" if language == "ja" else ", ").join(choices.changed)
            return saying(text_in(language, "small.changed" if paths else "small.changed_none", paths=paths))
        case "talk":
            return saying(text_in(language, f"small.{choices.talk}"), profile="general_chat")
        case "large":
            return saying(text_in(language, "small.large"))
        case "undo":
            return saying(text_in(language, "small.undo"))
        case "leave":
            return saying(text_in(language, "small.left"))
        case "run" if choices.exit_code is not None:
            return saying(text_in(language, "small.ran" if choices.exit_code == 0 else "small.run_failed"))
        case "run" if choices.starts:
            return _running(choices.command, text_in(language, "small.runs", command=choices.command))
        case "run" if choices.command:
            return saying(text_in(language, "small.run", command=choices.command))
        case "run":
            return saying(text_in(language, "small.run_any"))
        case "tests" if choices.own_runs:
            return saying("\n".join([text_in(language, "small.tests_own"), *choices.own_runs]))
        case "tests" if choices.exit_code is not None:
            ended = {0: "small.tests_passed", NOT_FOUND: "small.tests_not_run"}
            return saying(text_in(language, ended.get(choices.exit_code, "small.tests_failed")))
        case _ if choices.untested:
            return saying(text_in(language, "small.checks_itself"), profile=PROFILES["change"])
        case "tests" if choices.command:
            return _running(choices.command, text_in(language, "small.runs_tests"))
        case "tests":
            return saying(text_in(language, "small.no_tests"))
        case _:
            return None


def _running(command: str, reply: str) -> DecisionResult:
    """Return the decision to run a command, after which the program reports how it ended."""
    action = Action(operation="shell.run", args={"command": command}, reasoning=reply)
    decision = Decision(reply=reply, actions=(action,), next_step="continue", task_profile=PROFILES["answer"])
    return DecisionResult(decision=decision, exchange=(ChatMessage(role="assistant", text=reply),), calls=())


def _acting(action: Action) -> DecisionResult:
    decision = Decision(actions=(action,), next_step="done", task_profile=PROFILES["change"])
    return DecisionResult(decision=decision, exchange=(), calls=())


def _shown(choices: Choices) -> str:
    lines = choices.content.rstrip().split("\n")
    more = ["…"] if len(lines) > _MOST_SHOWN else []
    return "\n".join(["````", *lines[:_MOST_SHOWN], *more, "````"])
