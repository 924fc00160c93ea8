"""Raw blocks: file content that travels behind the JSON object, untouched by escaping (SPEC A7).

    {"next_step": "continue", "actions": [{"operation": "…", "args": {"content": {"block": "main"}}}]}
    <<<block main
    print("hello")
    >>>block main

The content is the text between the two marker lines as it is, line endings included: each of its lines is
ended by its line break, and an empty block is empty. A marker line begins at the first column. Only
the end line with the block's own name ends it; whatever else looks like a marker is content.
"""

import re
from typing import cast

from pydantic import JsonValue

from duckflow.domain.patterns import late
from duckflow.llm.answers.json_object import after_thoughts, find_object, refuse_more
from duckflow.llm.answers.strict_json import MAX_BYTES, JsonObject, UnusableAnswer, check_size

MAX_FILLED = 8_000_000
"""Characters that all places filled from blocks may have together."""

_BEGIN = late(r"^<<<block[ \t]++(\S{1,100}+)[ \t]*+\r?(?:\n|\Z)", re.MULTILINE)
_STRAY = late(r"^>>>block\b.*$", re.MULTILINE)
_FOREIGN = late("[\x00\ud800-\udfff]")
_LISTS = ("actions", "tasks")

Blocks = dict[str, str]


def read_answer(text: str) -> JsonObject:
    """The one JSON object of a model's answer, with its raw blocks filled in."""
    answer, blocks = read_parts(after_thoughts(text))
    return fill(answer, blocks)


def read_parts(text: str) -> tuple[JsonObject, Blocks]:
    """The one JSON object of a text and the raw blocks that follow it."""
    marker = _BEGIN.search(text)
    check_size(text[: marker.start()] if marker else text)
    if not text.strip():
        raise UnusableAnswer("the answer is empty")
    found = find_object(text)
    if marker and marker.start() < found.start:
        raise UnusableAnswer(
            f"the block {marker.group(1)} stands before the JSON object: blocks come after it"
        )
    if found.end - found.start > MAX_BYTES:
        raise UnusableAnswer(f"the JSON object is too large: at most {MAX_BYTES:,} bytes are read")
    plain, blocks = split_blocks(text[found.end :])
    refuse_more(plain)
    return found.value, blocks


def split_blocks(text: str) -> tuple[str, Blocks]:
    """A text without its raw blocks, and the blocks."""
    plain: list[str] = []
    blocks: Blocks = {}
    at = 0
    while begin := _BEGIN.search(text, at):
        name = begin.group(1)
        end = re.compile(rf"^>>>block[ \t]++{re.escape(name)}[ \t]*+\r?$", re.MULTILINE).search(
            text, begin.end()
        )
        if not end:
            raise UnusableAnswer(f"the block {name} has no end: a line `>>>block {name}` is missing")
        if name in blocks:
            raise UnusableAnswer(f"there are two blocks with the name {name}: each needs its own")
        plain.append(text[at : begin.start()])
        blocks[name] = text[begin.end() : end.start()]
        if foreign := _FOREIGN.search(blocks[name]):
            raise UnusableAnswer(
                f"the block {name} has the character U+{ord(foreign.group()):04X}, which no text file has"
            )
        at = end.end()
    plain.append(text[at:])
    outside = "\n".join(plain)
    stray = _STRAY.search(outside)
    if stray:
        raise UnusableAnswer(
            f"the line `{stray.group()[:60]}` ends no block: choose a name whose end line is not content"
        )
    return outside, blocks


def fill(answer: JsonObject, blocks: Blocks) -> JsonObject:
    """The answer with each `{"block": NAME}` in the args of its actions or tasks replaced by that block."""
    filling = _Filling(blocks)
    filled = {key: filling.fill_list(key, value) if key in _LISTS else value for key, value in answer.items()}
    unused = [name for name in blocks if name not in filling.used]
    if unused:
        # An unused block is content that would be lost without anyone noticing.
        raise UnusableAnswer(
            f'no argument names the block {unused[0]}: use it as {{"block": "{unused[0]}"}} or leave it out'
        )
    return filled


class _Filling:
    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._filled = 0
        self.used: set[str] = set()

    def fill_list(self, key: str, entries: JsonValue) -> JsonValue:
        if not isinstance(entries, list):
            return entries
        return [self._entry(f"{key}[{place}]", entry) for place, entry in enumerate(entries)]

    def _entry(self, path: str, entry: JsonValue) -> JsonValue:
        if not isinstance(entry, dict) or not isinstance(entry.get("args"), dict):
            return entry
        args = cast("JsonObject", entry["args"])
        return {
            **entry,
            "args": {key: self._value(f"{path}.args.{key}", value) for key, value in args.items()},
        }

    def _value(self, path: str, value: JsonValue) -> JsonValue:
        """Recursion is safe here: the reader has limited the depth."""
        if isinstance(value, list):
            return [self._value(f"{path}[{place}]", inner) for place, inner in enumerate(value)]
        if not isinstance(value, dict):
            return value
        name = value.get("block")
        if len(value) == 1 and isinstance(name, str):
            return self._content(path, name)
        return {key: self._value(f"{path}.{key}", inner) for key, inner in value.items()}

    def _content(self, path: str, name: str) -> str:
        if name not in self._blocks:
            raise UnusableAnswer(
                f"{path} names the block {name!r}, but no line `<<<block {name}` follows the JSON object"
            )
        content = self._blocks[name]
        self._filled += len(content)
        if self._filled > MAX_FILLED:
            raise UnusableAnswer(f"the blocks fill in more than {MAX_FILLED:,} characters")
        self.used.add(name)
        return content
