"""What users and trusted projects bring along: hooks, skills, commands, plugins, servers (SPEC L5-L7)."""

import re
from typing import Literal

from duckflow.domain.frozen import Frozen
from duckflow.domain.patterns import late

_PLACE = late(r"\$(?:ARGUMENTS\b|\{ARGUMENTS\}|([1-9])\b)")

HookEvent = Literal[
    "PreToolUse",
    "PostToolUse",
    "UserPromptSubmit",
    "Stop",
    "Notification",
    "SessionStart",
    "SessionEnd",
]
"""When hooks run, by the names that users of other agents know."""

HookOutcome = Literal["ok", "asks", "blocked", "failed"]

HOOK_SECONDS = 60.0
"""How long a hook may take if its file says nothing."""


class Hook(Frozen):
    """One command, when it runs, and the file it is from."""

    event: HookEvent
    matcher: str = ""
    """The tools (or kinds of notification, or of start) it is for; empty for all."""
    condition: str = ""
    """A narrower rule, as `Bash(git push *)`."""
    command: str
    seconds: float = HOOK_SECONDS
    blocks_on_failure: bool = False
    """Whether what it was to watch is refused if it can't say anything."""
    origin: str


class HookList(Frozen):
    """The hooks of one file, and what stands in it that is not used here."""

    hooks: tuple[Hook, ...] = ()
    unused: tuple[str, ...] = ()


class Skill(Frozen):
    """Instructions for a kind of work, which the model reads when it needs them."""

    name: str
    description: str
    place: str
    """The folder it is in, under its root."""
    own: bool = False
    """Whether it is the project's own, and not the user's."""


class CustomCommand(Frozen):
    """A slash command from a Markdown file: what is said in its place."""

    name: str
    body: str
    description: str = ""
    takes: str = ""
    """What may follow, as the help shows it."""
    own: bool = False
    """Whether it is the project's own."""

    def expand(self, argument: str) -> str:
        """The message it stands for. Where it has no place for what was typed, that comes at its end."""
        words = argument.split()

        def fill(place: re.Match[str]) -> str:
            number = int(place[1] or 0)
            return argument if not number else words[number - 1] if number <= len(words) else ""

        filled, places = _PLACE.subn(fill, self.body)
        return filled if places or not argument else f"{filled}\n\n{argument}"


class PluginFacts(Frozen):
    """A plugin that is installed, and what it brings; with an error, nothing."""

    name: str
    version: str = ""
    brings: tuple[str, ...] = ()
    error: str = ""


ServerStatus = Literal["waiting", "ready", "down", "off"]


class ServerReport(Frozen):
    """One server."""

    name: str
    status: ServerStatus
    what: str
    """The command, or the address."""
    problem: str = ""
    version: str = ""
    """Of the protocol."""
    tools: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Tools whose description is not the one that was accepted."""
    prompts: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()


class Extensions(Frozen):
    """All of it, as it is in use."""

    hooks: tuple[HookList, ...] = ()
    skills: tuple[Skill, ...] = ()
    commands: tuple[CustomCommand, ...] = ()
    plugins: tuple[PluginFacts, ...] = ()
