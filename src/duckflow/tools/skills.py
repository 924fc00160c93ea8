"""Tool skill.read: instructions for a kind of work, read when needed. The prompt has only names (L6)."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import Field

from duckflow.config.files.markdown import SKILL_FILE, SKILL_FOLDERS, describe_skill, skill_folders
from duckflow.domain.errors import ToolError, UserError
from duckflow.domain.extensions import Skill
from duckflow.domain.frozen import Frozen
from duckflow.domain.text import cut, some_of
from duckflow.llm.tokens import estimate_tokens
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import Workspace
from duckflow.tools.catalogue import Tool, ToolResult

SKILL = "skill.read"
_MOST_BYTES = 200_000
_MOST_FILES = 50
_LENGTHS = (400, 300, 200, 150, 100, 70, 40)
"""Lengths of descriptions in the prompt, in characters. The first with which all skills fit is used."""


class ReadSkill(Frozen):
    """Arguments of skill.read."""

    name: str = Field(default="", description="the skill; left out, all are listed")
    file: str = Field(default=SKILL_FILE, description="another file of the skill")


def find_skills(workspace: Workspace, home: Path) -> tuple[Skill, ...]:
    """Return the skills of the user and of the project. If two have the same name, the user's is used."""
    found: dict[str, Skill] = {}
    for users, folder in ((users, folder) for users in (None, home) for folder in SKILL_FOLDERS):
        for name in skill_folders((users or workspace.root) / folder):
            with suppress(ToolError, UserError):  # skips a skill that can't be read
                content = _read(f"{folder}/{name}", SKILL_FILE, workspace, users)
                skill = describe_skill(f"{folder}/{name}", content, own=users is None)
                found[skill.name] = skill
    return tuple(found.values())


def user_skills(home: Path) -> Iterator[str]:
    """Yield the user's folders with skills, which commands may read: skills can contain scripts."""
    for root in (home / folder for folder in SKILL_FOLDERS):
        yield from (
            str(path) for name in skill_folders(root) for path in {root / name, (root / name).resolve()}
        )


def skill_tools(
    skills: Sequence[Skill], workspace: Workspace, home: Path, budget: int
) -> tuple[Tool[Any], ...]:
    """Return skill.read, if there are skills. `budget` is the number of tokens for them in every prompt."""
    known = {skill.name: skill for skill in skills}

    async def run(args: ReadSkill, _access: Access) -> ToolResult:
        if not args.name:
            return ToolResult(text="\n".join(f"{skill.name}: {skill.description}" for skill in skills))
        skill = known.get(args.name)
        if skill is None:
            raise ToolError(f"There is no skill {args.name[:100]}. There are: {', '.join(known)}.")
        users, where = (None, "") if skill.own else (home, f" in {home / skill.place}")
        content = await asyncio.to_thread(_read, skill.place, args.file, workspace, users)
        path = next(iter(targets(args)), None)
        return ToolResult(text=f"[skill {skill.name}{where}]\n{content}", path=path)

    def targets(args: ReadSkill) -> tuple[str, ...]:
        skill = known.get(args.name)
        return (f"{skill.place}/{args.file}",) if skill is not None and skill.own else ()

    if not skills:
        return ()
    about = _summary(skills, budget)
    return (Tool(operation=SKILL, args=ReadSkill, summary=about, effect="read", run=run, targets=targets),)


def _read(place: str, file: str, workspace: Workspace, home: Path | None) -> str:
    """Read a file of a skill: the project's, or the user's below `home`, never outside the skill's folder."""
    if ".." in PurePosixPath(file).parts or file.startswith("/"):
        raise ToolError(f"{file[:100]} is not a file of this skill.")
    if home is None:
        # The description in the main file is sent to the model without asking, like rules.
        read = workspace.read_rules if file == SKILL_FILE else workspace.read_text
        content = read(f"{place}/{file}", cap=_MOST_BYTES)
        return content + _other_files(workspace, place, file, place)
    with closing(Workspace(home / place)) as only:
        return _read_below(only, file, str(home / place))


def _read_below(workspace: Workspace, file: str, shown: str) -> str:
    """Read a file of a skill of the user, whose folder is the workspace."""
    return workspace.read_text(file, cap=_MOST_BYTES) + _other_files(workspace, ".", file, shown)


def _other_files(workspace: Workspace, folder: str, file: str, shown: str) -> str:
    """Return what to append to the main file: the names of the others, and their folder."""
    if file != SKILL_FILE:
        return ""
    listing = workspace.list(folder, depth=3, limit=_MOST_FILES)
    names = [
        str(PurePosixPath(one.path).relative_to(folder)) for one in listing.entries if one.kind == "file"
    ]
    others = [name for name in names if name != SKILL_FILE]
    return f"\n\nOther files of this skill, in {shown}: {', '.join(others)}" if others else ""


def _summary(skills: Sequence[Skill], budget: int) -> str:
    """Return the prompt's text about skills: with descriptions if all fit, else as many names as fit."""
    about = "instructions for a kind of work; read them before such work."
    for length in _LENGTHS:
        lines = [f"\n  {skill.name}: {cut(skill.description, length)}" for skill in skills]
        if estimate_tokens("".join(lines)) <= budget:
            return about + "".join(lines)
    names = [skill.name for skill in skills]
    counts = range(1, len(names) + 1)
    fitting = takewhile(lambda most: estimate_tokens(", ".join(names[:most])) <= budget, counts)
    return f"{about} Without a name it lists them. There are {some_of(names, max(fitting, default=0))}"
