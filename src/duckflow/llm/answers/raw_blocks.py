"""Raw blocks: texts that travel outside the JSON object, untouched by escaping (A7).

    {"next_step": "continue", "actions": [{"operation": "…", "args": {"content": {"block": "main"}}}]}
    <<<block main
    print("hello")
    >>>block main

The content is the exact text between the two marker lines, including the last line break. Only an end line
with the block's name ends the block; any other text that looks like a marker is content. The last block needs
no end line if the model stopped without hitting a limit.
"""

import re

from pydantic import JsonValue

from duckflow.domain.patterns import lazy_regex
from duckflow.llm.answers.json_object import QUOTED_KEY, find_object, refuse_more
from duckflow.llm.answers.strict_json import MAX_BYTES, FoundObject, JsonObject, UnusableAnswer, check_size

MAX_FILLED = 8_000_000
"""Most characters in total that blocks may insert into an answer."""

_BEGIN = lazy_regex(r"^([ \t]*+)<<<block[ \t]++(\S{1,100}+)[ \t]*+\r?(?:\n|\Z)", re.MULTILINE)
_STRAY = lazy_regex(r"^>>>block\b.*$", re.MULTILINE)
_MARKER = lazy_regex(r"^[ \t]*+(?:<<<|>>>)block\b", re.MULTILINE)
_FENCE = lazy_regex(r"^[ \t]*+```.*$", re.MULTILINE)
_LAST_FENCE = lazy_regex(r"^[ \t]*+```\s*+\Z", re.MULTILINE)
_NEARLY_END = lazy_regex(
    r"^(?:<<<|>>>)[ \t/]*+(?:end)?+[ \t_]*+(?:block)?+(?:[ \t]++[A-Z]\S{0,99}+)?+\s*+\Z", re.M
)
"""Pattern for a malformed final line that was meant to end the last block."""

_FOREIGN = lazy_regex("[\x00\ud800-\udfff]")
_ONE_LINE = lazy_regex(r"[^\n]*+\n\Z")
_IN_ONE_LINE = frozenset({"path", "to", "pattern", "glob", "symbol", "url", "id"})
"""Arguments that are a single line, so the line break at the end of their block is removed."""
_LONGEST_NAME = 100

Blocks = dict[str, str]


def find_parts(text: str, *, ended: bool = False) -> tuple[FoundObject, Blocks]:
    """Return an answer's JSON object or list, and its raw blocks. `ended`: no limit cut the answer."""
    marker = _BEGIN.search(text)
    check_size(text[: marker.start()] if marker else text)
    if not text.strip():
        raise UnusableAnswer("the answer is empty")
    if marker and not QUOTED_KEY.search(text[: marker.start()]):
        text, blocks = split_blocks(text)
        check_size(text)
        found = find_object(text)
        plain = text[found.end :]
    else:
        found = find_object(text)
        plain, blocks = split_blocks(text[found.end :], before=text[: found.start], ended=ended)
    try:
        refuse_more(text, found, plain)
    except UnusableAnswer as more:
        raise UnusableAnswer(*found.faults, *more.faults) from more
    if found.end - found.start > MAX_BYTES:
        raise UnusableAnswer(f"the JSON object is too large: at most {MAX_BYTES:,} bytes are read")
    return found, blocks


def split_blocks(text: str, *, before: str = "", ended: bool = False) -> tuple[str, Blocks]:
    """Return a text without its raw blocks, and the blocks. `before` precedes it and may open a fence."""
    plain: list[str] = []
    blocks: Blocks = {}
    at = 0
    while begin := _BEGIN.search(text, at):
        indent, name = begin.groups()
        plain.append(text[at : begin.start()])
        end = _end_line(text, begin.end(), name)
        if end:
            content, at = text[begin.end() : end.start()], end.end()
        elif ended:
            fences = len(_FENCE.findall("\n".join([before, *plain])))
            content, at = _last_content(name, text[begin.end() :], fenced=fences % 2 == 1), len(text)
        else:
            raise _endless(name)
        _check(name, content, indent)
        if blocks.get(name, content) != content:
            raise UnusableAnswer(f"there are two blocks with the name {name}: each needs its own")
        blocks[name] = content
    plain.append(text[at:])
    outside = "\n".join(plain)
    stray = _STRAY.search(outside)
    if stray:
        raise UnusableAnswer(
            f"the line `{stray.group()[:60]}` ends no block: choose a name whose end line is not content"
        )
    return outside, blocks


def _end_line(text: str, at: int, name: str) -> re.Match[str] | None:
    """Return the exact end line of a block, else the only inexact one before the next block, else None."""
    exact = re.compile(rf"^>>>block[ \t]++{re.escape(name)}[ \t]*+\r?$", re.MULTILINE).search(text, at)
    if exact:
        return exact
    following = _BEGIN.search(text, at)
    meant = re.compile(
        rf"^[ \t]*+>>>block(?:[ \t]++{re.escape(name)})?+[ \t]*+\r?$", re.MULTILINE | re.IGNORECASE
    )
    found = list(meant.finditer(text, at, following.start() if following else len(text)))
    return found[0] if len(found) == 1 else None


def _last_content(name: str, content: str, *, fenced: bool) -> str:
    """Return the content of a last block that has no end line, without the code fence around the answer."""
    if _MARKER.search(content):
        raise _endless(name)
    closing = _LAST_FENCE.search(content)
    if fenced and closing and len(_FENCE.findall(content)) % 2 == 1:
        content = content[: closing.start()]
    content = _NEARLY_END.sub("", content)
    return content + "\n" if content and not content.endswith("\n") else content


def _endless(name: str) -> UnusableAnswer:
    return UnusableAnswer(f"the block {name} has no end: a line `>>>block {name}` is missing")


def _check(name: str, content: str, indent: str) -> None:
    """Refuse characters that no text file has, and content that may be indented along with its markers."""
    if foreign := _FOREIGN.search(content):
        raise UnusableAnswer(
            f"the block {name} has the character U+{ord(foreign.group()):04X}, which no text file has"
        )
    filled = [line for line in content.split("\n") if line.strip()]
    if indent and filled and all(line.startswith(indent) for line in filled):
        raise UnusableAnswer(f"the block {name} is indented: begin its marker lines at the first column")


def fill_in(answer: JsonObject, blocks: Blocks) -> tuple[JsonObject, Blocks, list[str]]:
    """Replace each `{"block": NAME}` by its block. Return the answer, the unused blocks and the faults."""
    filling = _Filling(blocks)
    fields = {key: filling.value(key, key, value) for key, value in answer.items()}
    unused = {name: content for name, content in blocks.items() if name not in filling.used}
    named = [
        f'an argument is the text {name!r}: to put the block there, write {{"block": "{name}"}}'
        for name in unused
        if name in filling.arguments
    ]
    return fields, unused, [*filling.faults, *named]


class _Filling:
    """Recursive replacement of block names in an answer, whose depth the parser has limited."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._names = {name.casefold(): name for name in blocks}
        self._filled = 0
        self.used: set[str] = set()
        self.arguments: set[str] = set()
        """Short strings among the arguments; one that equals a block's name may be meant as a reference."""
        self.faults: list[str] = []

    def value(self, path: str, key: str, value: JsonValue, *, argument: bool = False) -> JsonValue:
        if isinstance(value, str) and argument and len(value) <= _LONGEST_NAME:
            self.arguments.add(value)
        if isinstance(value, list):
            return [
                self.value(f"{path}[{place}]", key, inner, argument=argument)
                for place, inner in enumerate(value)
            ]
        if not isinstance(value, dict):
            return value
        name = value.get("block")
        if len(value) == 1 and isinstance(name, str) and key != "args":
            content = self._content(path, name)
            whole = argument and not (key in _IN_ONE_LINE and _ONE_LINE.fullmatch(content))
            return content if whole else content.removesuffix("\n").removesuffix("\r")
        inside = argument or key == "args"
        return {
            inner: self.value(f"{path}.{inner}", inner, given, argument=inside)
            for inner, given in value.items()
        }

    def _content(self, path: str, name: str) -> str:
        meant = name if name in self._blocks else self._names.get(name.casefold())
        if meant is None:
            self.faults.append(
                f"{path} names the block {name!r}, but no line `<<<block {name}` follows the JSON object"
            )
            return ""
        content = self._blocks[meant]
        self._filled += len(content)
        if self._filled > MAX_FILLED:
            raise UnusableAnswer(f"the blocks fill in more than {MAX_FILLED:,} characters")
        self.used.add(meant)
        return content
