"""Prompt for small models: a short text, a narrow schema, and a separate question for each file's content.

Small models choose badly among many operations and write worse code inside JSON. So the schema offers only
the operations that make sense now, and each file's content is a plain completion that continues the prompt.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Literal

from duckflow.domain.decision import Action
from duckflow.domain.frozen import Frozen
from duckflow.domain.model import ChatMessage, JsonSchema, ModelRequest, ModelTraits
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.state import AgentState
from duckflow.domain.wishes import PlainWish
from duckflow.i18n.catalogue import Language
from duckflow.llm.tokens import TokenCounter
from duckflow.prompts.conversation.history import PromptHistory
from duckflow.prompts.sections import RenderedPrompt, SectionName, object_schema
from duckflow.prompts.templates import fill, template

Wish = Literal["answer", "change"]
"""The user's wish: an answer, or a change to files."""

LONG_MESSAGE = 300
"""Least length in characters of a message that may tell a story before it states the task."""

_TEXT: JsonSchema = {"type": "string"}
_ENDING = "Output: Decision"
_QUESTION: dict[Language, str] = {"en": "The question", "ja": "質問"}
_ANSWER_IN: dict[Language, str] = {"en": "", "ja": "日本語で答えてください。\n"}
_DECISION_TOKENS = 512
_REPEATED = 300
_LONG_REQUEST, _ITS_END = 800, 240
_MOST_FILES = 8
_BEGINNING = lazy_regex(
    r'(?i)(?:#.*\n)*"""(?:[^"\\]|"(?!""))*"""\n+|(?:#.*\n)+\n*|(?://.*\n)+\n*|<!doctype[^>]*>\n'
)
_ABOUT_BEGINNING = lazy_regex(
    "docstring|comment|header|licen[sc]e|top of|first line|beginning|translat|rewrite|english|japanese"
    "|コメント|先頭|冒頭|ドックストリング|翻訳|英語|日本語|書き直"
)
_LANGUAGES = {".py": "python", ".md": "markdown", ".js": "javascript", ".ts": "typescript", ".rs": "rust"}


class Choices(Frozen):
    """Operations and files that make sense at the moment.

    `files` are all files, `unseen` those that the model may still read, and `hidden` those that the
    conversation never showed whole. `wish` is the user's wish, if it is known; it stays the same for the
    whole request. `told` is the one file that a long message asks for, `writes` the one that a short
    message tells to write. `plain` is what the user's words plainly ask for, and `command` the
    command they want to run.
    """

    wish: Wish | None = None
    plain: PlainWish | None = None
    told: str = ""
    writes: str = ""
    command: str = ""
    changed: tuple[str, ...] = ()
    """Files that this session has changed, where the user asks about them."""
    exit_code: int | None = None
    """Exit code of `command` after it has run for this message."""
    talk: Literal["hello", "welcome", "bye", "next"] = "next"
    """Kind of small talk, where `plain` is talk: greeting, thanks, farewell, or another short word."""
    own_runs: tuple[str, ...] = ()
    """Lines about the tests that Duckflow ran itself, because their program is missing."""
    action: Action | None = None
    """The renaming or deletion that the message spells out."""
    shows: str = ""
    content: str = ""
    """The file that the message wants to see, and what it holds; empty if it can't be shown."""
    missing: str = ""
    """The file that the message wants to see, rename or delete, if it does not exist."""
    lists: bool = False
    """True if the message asks which files there are."""
    starts: bool = False
    """True if `command` is a program that ends without input, so that it can be run."""
    untested: bool = False
    """True if the work is written, and its tests could not start: a small model would write on."""
    files: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    may_search: bool = False
    may_move: bool = True
    """False after the user refused a change: then they want it made in another way."""
    may_delete: bool = True
    """False once this request has written or moved a file, because deleting would not repair it."""

    @property
    def answers_now(self) -> bool:
        """True if an answer is wanted and there is nothing to look into before."""
        return self.wish == "answer" and not self.unseen and not self.may_search


class CompactPrompt:
    """Prompts that ask one small model for the decisions of a session."""

    def __init__(self, traits: ModelTraits, rules: str, counter: TokenCounter) -> None:
        self._traits = traits
        self._counter = counter
        self._conversation = PromptHistory(counter)
        self._parts = fixed_parts(rules)
        self._system = compact_system(rules)
        self._fixed: dict[SectionName, int] = {}

    async def assemble(self, state: AgentState, choices: Choices) -> RenderedPrompt:
        """Build the prompt for this state."""
        if not self._fixed:
            self._fixed = {name: await self._counter.count(text) for name, text in self._parts.items()}
        room = self._traits.window // 2 - sum(self._fixed.values())
        await self._conversation.read(state)
        await self._conversation.trim(room)
        request = ModelRequest(
            output="Decision",
            messages=(self._system, *self._conversation.with_ending(_ending(state, choices))),
            answer_schema=compact_schema(choices),
            max_tokens=_DECISION_TOKENS,
            temperature=0.0,
        )
        return RenderedPrompt(
            model=self._traits.name,
            window=self._traits.window,
            window_from=self._traits.window_from,
            request=request,
            tokens={**self._fixed, **self._conversation.tokens},
        )


def _ending(state: AgentState, choices: Choices) -> str:
    """Return the prompt's last lines. They repeat the question: a small model answers what it read last."""
    asked = state.request.text if state.request else ""
    looked_up = bool(state.transcript) and not state.transcript[-1].said
    if choices.wish == "answer" and looked_up and 0 < len(asked) <= _REPEATED:
        return f"The question: {asked}\n{_ENDING}"
    if choices.wish or len(asked) < _LONG_REQUEST:
        return _ENDING
    return f"The message ends: …{asked[-_ITS_END:].strip()}\n{_ENDING}"


def answer_ending(asked: str, language: Language) -> str:
    """Return the last lines of a prompt for an answer. A small model answers what it read last."""
    question = f"{_QUESTION[language]}: {asked}\n" if 0 < len(asked) <= _REPEATED else ""
    return f"{question}{_ANSWER_IN[language]}Output: Answer"


def fixed_parts(rules: str) -> dict[SectionName, str]:
    """Return the parts of the system message, which never changes within a session."""
    return {"base": template("compact"), "rules": f"\nRules of this project:\n{rules}\n" if rules else ""}


def compact_system(rules: str) -> ChatMessage:
    """Return the system message, which never changes within a session."""
    return ChatMessage(role="system", text="".join(fixed_parts(rules).values()), stable=True)


def compact_schema(choices: Choices) -> JsonSchema:
    """Return a schema with one alternative for each operation that makes sense now."""
    known, unseen = {"enum": [*choices.files]}, {"enum": [*choices.unseen]}
    there, may_read = bool(choices.files), bool(choices.unseen)
    table: tuple[tuple[Wish, str, bool, dict[str, JsonSchema]], ...] = (
        ("answer", "reply", True, {}),
        ("answer", "read", may_read, {"paths": _several(unseen)}),
        ("answer", "search", choices.may_search, {"pattern": _TEXT}),
        ("change", "write", True, {"paths": _several(_TEXT)}),
        ("change", "read", may_read, {"paths": _several(unseen)}),
        ("change", "move", there and choices.may_move, {"path": known, "to": _TEXT}),
        ("change", "delete", there and choices.may_delete, {"paths": _several(known)}),
    )
    alternatives = [
        object_schema(wants={"const": wish}, operation={"const": operation}, **arguments)
        for wish, operation, is_offered, arguments in table
        if is_offered and choices.wish in (None, wish)
    ]
    return {"anyOf": alternatives}


def _several(item: JsonSchema) -> JsonSchema:
    return {"type": "array", "items": item, "minItems": 1, "maxItems": _MOST_FILES}


class ContentPrompt(Frozen):
    """Question for one file's content, with the opening of its answer and the text that ends it."""

    question: str
    opening: str
    closing: str
    beginning: str = ""
    """First lines of the file, which stay: a small model leaves out docstrings and notices."""


def content_prompt(
    request: str, path: str, *, exists: bool, unseen: str | None, beginning: str = ""
) -> ContentPrompt:
    """Ask for a whole file. `unseen` is its content if the conversation has not shown it.

    An earlier `request` is repeated only if it is short, because the model would read a long one twice.
    """
    suffix = PurePosixPath(path).suffix
    fence = "````" if suffix == ".md" else "```"
    repeated = f"The request: {request}\n" if 0 < len(request) <= _REPEATED else ""
    if exists:
        held = "" if unseen is None else f"{path} holds now:\n{fence}\n{unseen}\n{fence}\n"
        question = fill("replace", request=repeated, path=path, held=held)
    else:
        question = fill("content", request=repeated, path=path)
    return ContentPrompt(
        question=question,
        opening=f"{fence}{_LANGUAGES.get(suffix, '')}\n",
        closing=f"\n{fence}",
        beginning=beginning,
    )


def lasting_beginning(request: str, current: str | None) -> str:
    """Return the docstring or the comments with which a file begins; empty if the request is about them."""
    begins = _BEGINNING.match(current or "")
    return "" if begins is None or _ABOUT_BEGINNING.search(request.casefold()) else begins[0]


def with_blank_lines(current: str | None, content: str) -> str:
    """Return the content with the blank lines of the current file that a small model has left out."""
    if current is None:
        return content
    old, new = current.split("\n"), content.split("\n")
    kept: list[str] = []
    for tag, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        written = new[start:end]
        if tag in ("delete", "replace"):
            blank = _blank_at_end(old[first:last])
            only_blank = len(blank) == last - first
            written += blank[len(_blank_at_end(written)) :] if written or only_blank else []
        kept += written
    return "\n".join(kept)


def _blank_at_end(lines: Sequence[str]) -> list[str]:
    return list(takewhile(lambda line: not line.strip(), reversed(lines)))


def plain_prompt(request: str, path: str, current: str | None) -> str:
    """Ask for a whole file in a prompt that does not mention Duckflow."""
    held = "" if current is None else f"{path} holds now:\n```\n{current.rstrip()}\n```\n\n"
    return fill("plain", request=request, held=held, path=path)
