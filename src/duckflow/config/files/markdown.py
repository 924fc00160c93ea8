"""Markdown files for commands, agents and skills: fields between `---` lines at the top, then text."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from duckflow.config.toml_file import read_text
from duckflow.config.trust import PROJECT_AGENTS, PROJECT_COMMANDS, files_below
from duckflow.domain.extensions import CustomAgent, CustomCommand, Skill
from duckflow.domain.patterns import lazy_regex

COMMANDS_FOLDER, AGENTS_FOLDER = "commands", "agents"
SKILL_FOLDERS = (".claude/skills", ".agents/skills")
"""Folders with skills, in a project and in the user's home. Of equal names, the last one is used."""
SKILL_FILE = "SKILL.md"
_KEY = lazy_regex(r"([\w-]+):\s*(.*)")
_ESCAPED = lazy_regex(r'\\(["\\/])')
_NAME = lazy_regex(r"\w[\w:.-]{0,63}")
_MOST_SKILLS = 200
_READING = {"Read", "Grep", "Glob", "LS", "WebFetch", "WebSearch"}
"""Names of tools in agents' files with which nothing can be changed."""
_DESCRIPTION = 1_000


def split_front(content: str) -> tuple[dict[str, str], str]:
    """Return the fields at the top of a file, and the text below them. Only plain values are supported."""
    lines = content.replace("\r\n", "\n").split("\n")
    if lines[0].strip() != "---" or "---" not in (line.rstrip() for line in lines[1:]):
        return {}, content
    end = next(at for at, line in enumerate(lines) if at and line.rstrip() == "---")
    said: dict[str, str] = {}
    name = ""
    for line in lines[1:end]:
        found = _KEY.fullmatch(line)
        if found:
            name = found[1]
            said[name] = "" if found[2] in ("|", ">", "|-", ">-") else _unquoted(found[2])
        elif name and line.startswith((" ", "\t")):
            said[name] = f"{said[name]} {line.strip()}".strip()
    return said, "\n".join(lines[end + 1 :]).strip("\n")


def _unquoted(value: str) -> str:
    value = value.strip()
    quote = value[:1]
    if len(value) < 2 or value[-1] != quote or quote not in "'\"":
        return value
    return _ESCAPED.sub(r"\1", value[1:-1]) if quote == '"' else value[1:-1].replace("''", "'")


def read_commands(folders: Iterable[Path], project: Mapping[str, str]) -> tuple[CustomCommand, ...]:
    """Return the commands of the user and of a trusted project. Of equal names, the user's is used."""
    found = [
        one for files, own in _files(folders, project, PROJECT_COMMANDS) for one in _commands(files, own=own)
    ]
    return tuple({command.name: command for command in found}.values())


def read_agents(folders: Iterable[Path], project: Mapping[str, str]) -> tuple[CustomAgent, ...]:
    """Return the agents of the user and of a trusted project. Of equal names, the user's is used."""
    found = [
        one for files, own in _files(folders, project, PROJECT_AGENTS) for one in _agents(files, own=own)
    ]
    return tuple({agent.name: agent for agent in found}.values())


def _files(
    folders: Iterable[Path], project: Mapping[str, str], places: Sequence[str]
) -> Iterator[tuple[Mapping[str, str], bool]]:
    """Yield the Markdown files of the project and those of the user, by path below their folder."""
    theirs = {
        str(PurePosixPath(path).relative_to(below)): content
        for below in reversed(places)
        for path, content in project.items()
        if path.startswith(f"{below}/")
    }
    yield theirs, True
    mine = {
        name: read_text(folder / name) or ""
        for folder in folders
        for name in sorted(files_below(folder, "."))
        if name.endswith(".md")
    }
    yield mine, False


def _agents(files: Mapping[str, str], *, own: bool) -> Iterator[CustomAgent]:
    for path, content in files.items():
        said, body = split_front(content)
        name = (said.get("name") or path.removesuffix(".md").replace("/", ":")).casefold()
        if not path.endswith(".md") or not _NAME.fullmatch(name):
            continue
        tools = {one.strip() for one in said.get("tools", "").split(",") if one.strip()}
        model = said.get("model", "").strip()
        yield CustomAgent(
            name=name,
            instructions=body,
            description=" ".join(said.get("description", "").split())[:_DESCRIPTION],
            model=model if ":" in model else "",  # names such as "inherit" or "sonnet" name no provider
            only_reads=bool(tools) and tools <= _READING,
            own=own,
        )


def _commands(files: Mapping[str, str], *, own: bool) -> Iterator[CustomCommand]:
    for path, content in files.items():
        name = path.removesuffix(".md").replace("/", ":").casefold()
        if not path.endswith(".md") or not _NAME.fullmatch(name):
            continue
        said, body = split_front(content)
        if not body.strip():
            continue  # its message would be empty
        first = next((line.strip("# ") for line in body.split("\n") if line.strip()), "")
        yield CustomCommand(
            name=name,
            body=body,
            description=" ".join(said.get("description", first).split())[:_DESCRIPTION],
            takes=" ".join(said.get("argument-hint", "").split()),
            allows="allowed-tools" in said,
            own=own,
        )


def skill_folders(root: Path) -> list[str]:
    """Return the folders below a root that contain a skill."""
    try:
        names = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    except OSError:
        return []
    return [name for name in names if _NAME.fullmatch(name) and (root / name / SKILL_FILE).is_file()][
        :_MOST_SKILLS
    ]


def describe_skill(place: str, content: str, *, own: bool) -> Skill:
    """Return a skill, with the name and description in its file."""
    said, body = split_front(content)
    name = said.get("name", "")
    about = said.get("description") or next((line.strip("# ") for line in body.split("\n") if line), "")
    return Skill(
        name=name if _NAME.fullmatch(name) else PurePosixPath(place).name,
        description=" ".join(about.split())[:_DESCRIPTION],
        place=place,
        own=own,
    )
