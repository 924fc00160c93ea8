"""What the user, or a project they trust, brought along: hooks, skills, commands, plugins (SPEC L5-L7)."""

import re

from duckflow.domain.frozen import Frozen
from duckflow.domain.hooks import HookList

_PLACE = re.compile(r"\$(?:ARGUMENTS\b|\{ARGUMENTS\}|([1-9])\b)")


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


class Extensions(Frozen):
    """All of it, as it is in use."""

    hooks: tuple[HookList, ...] = ()
    skills: tuple[Skill, ...] = ()
    commands: tuple[CustomCommand, ...] = ()
    plugins: tuple[PluginFacts, ...] = ()
