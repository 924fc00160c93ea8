"""Extensions that users and trusted projects add: hooks, skills, commands, plugins, servers (L5-L7)."""

import re
import shlex
from typing import Literal

from duckflow.domain.frozen import Frozen
from duckflow.domain.lines import TextLine
from duckflow.domain.patterns import lazy_regex

_RUNS = lazy_regex(r"!`([^`\n]+)`")
_PLACE = lazy_regex(r"\$(?:ARGUMENTS\b|\{ARGUMENTS\}|([1-9])\b)")

HookEvent = Literal[
    "PreToolUse",
    "PostToolUse",
    "UserPromptSubmit",
    "Stop",
    "Notification",
    "SessionStart",
    "SessionEnd",
]
"""Moments at which hooks run, by the names that other agents use."""

HookOutcome = Literal["ok", "asks", "blocked", "failed"]

HOOK_SECONDS = 60.0
"""Time limit in seconds of a hook for which the file gives none."""


class Hook(Frozen):
    """A command to run at an event, and the file that defines it."""

    event: HookEvent
    matcher: str = ""
    """Tools (or kinds of notification or of start) the hook applies to; empty for all."""
    condition: str = ""
    """Stricter condition, such as `Bash(git push *)`."""
    command: str
    seconds: float = HOOK_SECONDS
    blocks_on_failure: bool = False
    """True if a failing hook means that the action is refused."""
    origin: str


class HookList(Frozen):
    """Hooks of one file, and its entries that Duckflow can't use."""

    hooks: tuple[Hook, ...] = ()
    unused: tuple[str, ...] = ()


class Skill(Frozen):
    """Instructions for a kind of work, which the model reads when it needs them."""

    name: str
    description: str
    place: str
    """Folder of the skill, relative to the project or to the user's home."""
    own: bool = False
    """True for a skill of the project, false for one of the user."""


class CustomAgent(Frozen):
    """An agent from a Markdown file: instructions for a helper, with its model and tools (O3)."""

    name: str
    instructions: str
    description: str = ""
    model: str = ""
    """Model to use, as `provider:model`; empty for that of the session."""
    only_reads: bool = False
    """True if its tools can't change anything."""
    own: bool = False
    """True for an agent of the project, false for one of the user."""


class CustomCommand(Frozen):
    """A slash command from a Markdown file, which stands for a longer message."""

    name: str
    body: str
    description: str = ""
    takes: str = ""
    """Arguments of the command, as the help shows them."""
    allows: bool = False
    """True if it wants to allow tools (`allowed-tools`), which has no effect."""
    own: bool = False
    """True for a command of the project, false for one of the user."""

    def expand(self, argument: str) -> str:
        """Return the message with the arguments filled in. Without placeholders, append them."""
        words = _words(argument)

        def fill(place: re.Match[str]) -> str:
            number = int(place[1] or 0)
            return argument if not number else words[number - 1] if number <= len(words) else ""

        filled, places = _PLACE.subn(fill, self.body)
        return filled if places or not argument else f"{filled}\n\n{argument}"


def _words(argument: str) -> list[str]:
    """Return the words of an argument. As in a shell, quotes keep several together."""
    try:
        return shlex.split(argument)
    except ValueError:  # a quote that is an apostrophe
        return argument.split()


def split_runs(message: str) -> tuple[str, tuple[str, ...]]:
    """Return a command's message without the marks of its `!` lines, and what to run before it."""
    runs = tuple(dict.fromkeys(_RUNS.findall(message)))
    return _RUNS.sub(r"`\1` (its output is above)", message), runs


class PluginFacts(Frozen):
    """An installed plugin and what it adds, or the error with which it failed."""

    name: str
    version: str = ""
    brings: tuple[str, ...] = ()
    error: str = ""


ServerStatus = Literal["waiting", "ready", "down", "off"]


class ServerReport(Frozen):
    """Status of one MCP server."""

    name: str
    status: ServerStatus
    what: str
    """Command that starts the server, or its address."""
    problem: str = ""
    advice: TextLine | None = None
    version: str = ""
    """Version of the protocol."""
    tools: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Tools whose description differs from the one the user accepted."""
    allowed: tuple[str, ...] = ()
    """Tools that the user has allowed permanently: names, `*` (all), `?reading` (those that only read)."""
    prompts: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()


class Extensions(Frozen):
    """All extensions that are active."""

    hooks: tuple[HookList, ...] = ()
    skills: tuple[Skill, ...] = ()
    commands: tuple[CustomCommand, ...] = ()
    agents: tuple[CustomAgent, ...] = ()
    plugins: tuple[PluginFacts, ...] = ()
