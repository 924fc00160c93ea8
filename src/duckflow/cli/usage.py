"""Translates typer's help pages and errors."""

import difflib
import io
import re
import sys
from collections.abc import Callable, Collection
from contextlib import redirect_stdout
from typing import Any

from typer.exceptions import TyperException

from duckflow.domain.modes import MODES
from duckflow.domain.patterns import lazy_regex
from duckflow.i18n.catalogue import current_language, text
from duckflow.ui.output.escaping import echo

_GIVEN = lazy_regex(r"'([^']*)' is not")
_NAMED = lazy_regex(
    r"No such command '(?P<command>.*?)'\.(?: Did you mean .*)?$|.*\(s\) \((?P<extra>.*)\)", re.DOTALL
)
"""The part that typer's message names: a command in quotes, arguments in brackets."""

_BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}

_FRAME = {
    "usage": r"^Usage:",
    "options": r"^Options:",
    "arguments": r"^Arguments:",
    "commands": r"^Commands:",
    "default": r"(?<=[\[ ])default:",
    "required": r"(?<=[\[ ])required(?=\])",
    "help": r"Show\s+this\s+message\s+and\s+exit\.",
    "install": r"Install\s+completion\s+for\s+the\s+current\s+shell\.",
    "completion": r"Show\s+completion\s+for\s+the\s+current\s+shell,\s+to\s+copy\s+it\s+or\s+customize\s+the"
    r"\s+installation\.",
}
"""Patterns of typer's own words, by the last part of our key for them; typer can't translate its words."""


def translated(shown: str) -> str:
    """Translate typer's own words on a help page."""
    if current_language() == "en":
        return shown
    for key, words in _FRAME.items():
        said = text(f"help.frame.{key}")
        shown = re.sub(words, lambda _, said=said: said, shown, flags=re.MULTILINE)
    return shown


def with_translated_help(run: Callable[[], object]) -> object:
    """Run a command line; a help page is printed in the user's language."""
    if current_language() == "en" or not {"-h", "--help"}.intersection(sys.argv[1:]) or "--" in sys.argv:
        return run()
    page = io.StringIO()
    with redirect_stdout(page):
        code = run()
    sys.stdout.write(translated(page.getvalue()))
    return code


def report_usage(error: TyperException) -> int:
    """Print the fault in the arguments; return the exit code."""
    if type(error).__name__ == "NoArgsIsHelpError":
        echo(translated(error.format_message()), sys.stderr)
        return error.exit_code
    message = text("error.line", message=_message(error))
    context: Any = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "duckflow"
    echo(f"{message}\n{text('usage.help', command=command)}", sys.stderr)
    return error.exit_code


def _message(error: TyperException) -> str:
    """Return the message for an error, by its class's name: typer has no public names for these classes."""
    match type(error).__name__:
        case "NoSuchOption":
            near = ", ".join(sorted(getattr(error, "possibilities", None) or ()))
            key = "usage.no_option_near" if near else "usage.no_option"
            return text(key, option=getattr(error, "option_name", ""), nearest=near)
        case "BadOptionUsage":
            return text("usage.no_value", option=getattr(error, "option_name", ""))
        case "MissingParameter":
            return text("usage.missing", name=_parameter(error))
        case "BadParameter":
            return _bad_value(error)
        case _:
            named = _NAMED.match(error.message)
            if named and named["command"]:
                return _no_command(error, named["command"])
            return text("usage.too_many", found=named["extra"]) if named else text("usage.no_command_given")


def _no_command(error: TyperException, name: str) -> str:
    context: Any = getattr(error, "ctx", None)
    group: Any = getattr(context, "command", None) or getattr(error, "cmd", None)
    if getattr(context, "parent", None) is None and name.casefold() in _conversation_commands():
        return text("usage.in_conversation", name=name)
    near = difflib.get_close_matches(name, getattr(group, "commands", ()), n=1)
    return text("usage.no_command_near" if near else "usage.no_command", name=name, nearest="".join(near))


def _conversation_commands() -> Collection[str]:
    from duckflow.ui.commands.table import COMMANDS  # noqa: PLC0415 - only after a mistake

    return {name for command in COMMANDS.values() for name in (command.name, *command.aliases)}


def _bad_value(error: TyperException) -> str:
    name = _parameter(error)
    if name == "--mode":
        found = _GIVEN.search(error.message)
        return text("usage.not_one_of", name=name, choices=", ".join(MODES), found=found[1] if found else "")
    cause: Any = error.__cause__  # from pydantic, which knows the type
    problem: dict[str, Any] = cause.errors()[0] if hasattr(cause, "errors") else {}
    bounds: dict[str, object] = problem.get("ctx", {})
    wanted = [f"{sign} {bounds[bound]}" for bound, sign in _BOUNDS.items() if bound in bounds]
    wanted += [text("usage.number")] if str(problem.get("type")).endswith("_parsing") else []
    if not wanted:
        return text("usage.bad_value", name=name)
    return text("usage.not_so", name=name, wanted=wanted[0], found=problem["input"])


def _parameter(error: TyperException) -> str:
    param: Any = getattr(error, "param", None)
    if param is None:
        return ""
    named = [name for name in param.opts if name.startswith("-")]
    return named[0] if named else str(param.metavar or param.name).strip("[].").upper()
