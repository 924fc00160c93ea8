"""The slash commands as a table: names, arguments, and when they may run."""

import difflib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from duckflow.domain.extensions import CustomCommand
from duckflow.domain.frozen import replace
from duckflow.domain.model import EFFORTS
from duckflow.domain.modes import MODES
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.session_client import SessionClient
from duckflow.domain.text import cut
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import on_one_line


class Command(NamedTuple):
    """A slash command. With `now`, it runs even during work; otherwise it waits until the work has ended."""

    name: str
    aliases: tuple[str, ...] = ()
    """Other names of the command, Japanese ones first."""
    takes: str = ""
    """Arguments, as shown in the help."""
    now: bool = True
    reading: str = ""
    """First Japanese name in hiragana, for input that is not converted yet."""

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the command."""
        return (self.name, *self.aliases, *((self.reading,) if self.reading else ()))


GROUPS: Mapping[str, tuple[Command, ...]] = {
    "work": (
        Command("goal", ("目標",), reading="もくひょう"),
        Command("plan", ("計画",), reading="けいかく"),
        Command("tasks", ("タスク",)),
        Command("agents", ("エージェント",)),
        Command("cancel", ("中止",), reading="ちゅうし"),
        Command("later", ("後で",), "TEXT", reading="あとで"),
        Command("diff", ("差分",), "[session]", now=False, reading="さぶん"),
        Command("review", ("レビュー",), "[RANGE|--staged|PATCH|N]", now=False),
        Command("undo", ("取り消し", "元に戻す"), "[N|redo]", now=False, reading="とりけし"),
        Command("rate", ("評価",), "1-10", now=False, reading="ひょうか"),
    ),
    "sessions": (
        Command("rewind", ("巻き戻し",), "[N [files|conversation]]", now=False, reading="まきもどし"),
        Command("fork", ("分岐",), "[N]", now=False, reading="ぶんき"),
        Command("history", ("履歴",), "[WORDS]", reading="りれき"),
        Command("resume", ("再開",), "[ID]", now=False, reading="さいかい"),
        Command("new", ("新規", "clear"), now=False, reading="しんき"),
    ),
    "model": (
        Command("mode", ("モード",), f"[{'|'.join(MODES)}]"),
        Command("permissions", ("許可", "権限"), "[keep N [everywhere]|revoke N]", reading="きょか"),
        Command("model", ("モデル",), "[NAME]", now=False),
        Command("effort", ("思考量",), f"[{'|'.join(EFFORTS)}]", reading="しこうりょう"),
        Command("cost", ("費用", "コスト"), reading="ひよう"),
        Command("context", ("コンテキスト",), now=False),
        Command("compact", ("圧縮",), now=False, reading="あっしゅく"),
    ),
    "setup": (
        Command("memory", ("記憶", "メモリ", "メモリー"), "[delete ID]", now=False, reading="きおく"),
        Command("config", ("設定",), "[NAME]", reading="せってい"),
        Command("init", ("初期化",), now=False, reading="しょきか"),
        Command("skills", ("スキル",)),
        Command("hooks", ("フック",)),
        Command("plugins", ("プラグイン",)),
        Command("mcp", ()),
    ),
    "duckflow": (
        Command("help", ("ヘルプ", "?")),
        Command("status", ("状態",), reading="じょうたい"),
        Command("expand", ("展開",), reading="てんかい"),
        Command("quit", ("終了", "exit", "q"), reading="しゅうりょう"),
    ),
}
"""The commands by subject, as the help shows them. The catalogue describes each under `commands.NAME`."""
COMMANDS: Mapping[str, Command] = {one.name: one for group in GROUPS.values() for one in group}

IN_SECOND_WINDOW = frozenset(
    "status goal plan tasks agents cancel later undo rewind mode effort cost expand quit".split()  # noqa: SIM905
)
"""Commands that also work in a second window of a session."""
_MAX_HELP_CHARS = 200
_ALIASES = {alias: command.name for command in COMMANDS.values() for alias in command.names[1:]}
_MEANT_FOR = {
    "quit": "exit bye logout leave close end やめる 終わり",
    "new": "reset restart fresh",
    "help": "commands man usage keys shortcuts hotkeys docs 使い方",
    "config": "settings options preferences theme setup 環境設定",
    "undo": "revert rollback restore discard 戻す",
    "rewind": "back checkpoint checkpoints",
    "fork": "branch copy duplicate",
    "resume": "continue session sessions load open chats",
    "cancel": "stop abort kill halt 停止",
    "later": "queue afterwards あとで",
    "mode": "auto yolo",
    "model": "models provider llm",
    "permissions": "permission approvals approval sandbox allowed-tools allow",
    "effort": "think thinking reasoning",
    "cost": "tokens price billing spend",
    "status": "health vitals info",
    "agents": "subagents team workers",
    "tasks": "todo todos jobs bashes",
    "diff": "changes",
    "history": "log requests",
    "memory": "remember memories lessons",
    "context": "window prompt",
    "mcp": "servers tools",
    "skills": "skill",
    "goal": "requirements objective",
    "rate": "rating feedback",
    "expand": "verbose details",
    "review": "code-review inspect audit",
}
"""Names that people know from other programs, by the command that they stand for here."""
_MEANT = {word: name for name, words in _MEANT_FOR.items() for word in words.split()}
_BARE = frozenset(name for one in COMMANDS.values() for name in (one.name, *one.aliases)) - {
    *("cancel", "中止", "plan", "計画", "goal", "目標", "q", "評価")
}
"""Commands whose bare name is hardly a request; the others may be the answer to something."""
_REDO = ("redo", "やり直し", "やり直す")
_CLOSE_MATCH = 0.75
"""Similarity to a command that a first word needs if more words follow and it could be a path."""
_NAME = lazy_regex(r"[\w-]+\s")
_TOP_FOLDERS = frozenset(
    (
        *("bin", "boot", "dev", "etc", "home", "lib", "lib64", "media", "mnt", "nix", "opt", "proc", "root"),
        *("run", "sbin", "srv", "sys", "tmp", "usr", "var", "workspace"),
        *("applications", "library", "private", "system", "users", "volumes"),
    )
)
"""Names behind a slash that are paths and no commands."""
_MAY_BE_OWN = ("review", "init")
"""Commands that only let the model work. People bring their own of these names, which then count."""
SLASHES = ("/", "／")
"""First characters of a command: a plain slash, or a full-width slash from Japanese input."""

SHELL_SIGNS = ("!", "！")
"""First characters of a shell command of the user's own, also from Japanese input."""

_PROMPT = lazy_regex(r"[/／]mcp\.([a-z0-9_-]+\.\S+)(\s.*)?$", re.DOTALL)


class TypedCommand(NamedTuple):
    """A command as the user typed it."""

    name: str
    argument: str = ""


def read_command(line: str) -> TypedCommand | None:
    """Read a line as a slash command, known or not. None for a message, a path, or an MCP server's prompt."""
    if not line.startswith(SLASHES) or "\n" in line or read_prompt(line) is not None:
        return None
    word, *rest = re.split(r"\s+", unicodedata.normalize("NFKC", line[1:]).strip(), maxsplit=1)
    name = word.casefold()
    redoes = name in COMMANDS["undo"].names and rest[:1] in ([one] for one in _REDO)
    if redoes or (name in _REDO and not rest):
        return TypedCommand("undo", "redo")
    known = name in COMMANDS or name in _ALIASES or not rest or meant_command(name, _CLOSE_MATCH)
    known = known or (_NAME.match(line[1:]) and name not in _TOP_FOLDERS)
    commands = all(one in COMMANDS or one in _ALIASES for one in name.split("/"))  # two commands in one line
    if ("/" in name and not commands) or not known:
        return None
    return TypedCommand(name, *rest)


def find_custom(line: str, commands: Iterable[CustomCommand]) -> CustomCommand | None:
    """Return the custom command in a line, with its arguments filled in. None for all other lines."""
    if not line.startswith(SLASHES):
        return None
    word, *rest = re.split(r"\s+", line[1:].strip(), maxsplit=1)
    name = unicodedata.normalize("NFKC", word).casefold()
    if name not in _MAY_BE_OWN and (name in COMMANDS or name in _ALIASES):
        return None
    found = next((one for one in commands if one.name == name), None)
    return replace(found, body=found.expand(*rest or [""])) if found else None


def read_prompt(line: str) -> TypedCommand | None:
    """Read a line as a prompt of an MCP server, `/mcp.server.name ARGUMENT`. None for other lines."""
    found = _PROMPT.match(line)
    return TypedCommand(found[1], (found[2] or "").strip()) if found else None


def listed_commands(client: SessionClient) -> list[tuple[str, str, str]]:
    """Return name, arguments and description of all commands: built-in, custom, and MCP prompts."""
    ours = [(one.name, one.takes, text(f"commands.{one.name}")) for one in COMMANDS.values()]
    own = [(one.name, one.takes, one.description) for one in client.extensions.commands]
    prompts = [
        (f"mcp.{server.name}.{prompt}", "", f"MCP: {server.name}")
        for server in client.servers()
        for prompt in server.prompts
    ]
    return ours + [
        (name, takes, cut(on_one_line(does), _MAX_HELP_CHARS))
        for name, takes, does in (*own, *prompts)
        if name not in COMMANDS
    ]


def find_command(name: str) -> Command | None:
    """Return a command by its name, an alias, or the beginning of its name if no other begins alike."""
    if name in _ALIASES:
        return COMMANDS[_ALIASES[name]]
    begun = [command for command in COMMANDS.values() if name and command.name.startswith(name)]
    return COMMANDS.get(name) or (begun[0] if len(begun) == 1 else None)


def meant_command(name: str, alike: float = 0.7) -> str | None:
    """Return the command that a mistyped or foreign name stands for. None if there is no good guess."""
    known = {**dict.fromkeys(COMMANDS, ""), **_ALIASES, **_MEANT}
    near = difflib.get_close_matches(name, known, n=1, cutoff=alike)
    return known[near[0]] or near[0] if near else None


def is_bare_command(line: str) -> bool:
    """Return whether a line is only the name of a command, without the slash."""
    name = unicodedata.normalize("NFKC", line).strip().casefold()
    return name in _BARE or name in _REDO
