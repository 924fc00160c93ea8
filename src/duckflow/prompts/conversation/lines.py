"""Lines of a conversation as a model sees it. The tokens of each line are counted once."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from duckflow.domain.frozen import replace
from duckflow.domain.model import PICTURE_TOKENS, ChatMessage
from duckflow.llm.tokens import TokenCounter

LineKind = Literal["said", "words", "evidence", "stub"]
"""Kinds of lines: words of the user, words of the model or program, results, stubs of removed results."""

_SEALED = 8
"""Characters of a thought's encrypted data that count as one token."""


@dataclass(slots=True)
class PromptLine:
    """One message. `at` is the index of its entry in the transcript, or -1 if it has none."""

    at: int
    kind: LineKind
    message: ChatMessage
    tokens: int


class PromptLines:
    """Lines in order, with their token counts."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self.shown: list[PromptLine] = []
        self.said: list[PromptLine] = []
        """Lines that hold the user's own words."""
        self.words = 0
        self.evidence = 0

    @property
    def tokens(self) -> int:
        """Tokens of all lines."""
        return self.words + self.evidence

    async def add(self, at: int, kind: LineKind, message: ChatMessage, tokens: int | None = None) -> None:
        """Append a line. Pass `tokens` if they have been counted already."""
        if tokens is None:
            tokens = await self._count(message)
        line = PromptLine(at, kind, message, tokens)
        self.shown.append(line)
        self._account(line, line.tokens)
        if kind == "said":
            self.said.append(line)

    async def open_with(self, kind: LineKind, text: str) -> None:
        """Insert a line without a transcript entry at the start."""
        await self.add(-1, kind, ChatMessage(role="user", text=text))
        self.shown.insert(0, self.shown.pop())

    async def replace(self, line: PromptLine, text: str, kind: LineKind) -> None:
        """Replace the text of a line. Its calls and its link to a call stay."""
        self._account(line, -line.tokens)
        line.message = replace(line.message, text=text)
        line.kind, line.tokens = kind, await self._count(line.message)
        self._account(line, line.tokens)

    def remove(self, lines: Iterable[PromptLine]) -> None:
        """Remove lines."""
        gone = {id(line): line for line in lines}
        for line in gone.values():
            self._account(line, -line.tokens)
        self.shown = [line for line in self.shown if id(line) not in gone]
        self.said = [line for line in self.said if id(line) not in gone]

    def found(self) -> list[PromptLine]:
        """Return the lines that hold evidence."""
        return [line for line in self.shown if line.kind == "evidence"]

    def newest(self) -> list[PromptLine]:
        """Return the lines after the model's last message."""
        start = len(self.shown)
        while start > 0 and self.shown[start - 1].message.role == "user":
            start -= 1
        return self.shown[start:]

    def recent_results(self, loops: int) -> list[PromptLine]:
        """Return the results of the last `loops` loops that had results, newest first."""
        results: list[PromptLine] = []
        found = False
        for line in reversed(self.shown):
            if line.kind == "evidence":
                results.append(line)
                found = True
            elif found and line.message.role == "assistant":
                loops, found = loops - 1, False
            if loops == 0:
                break
        return results

    def exchanges(self) -> list[list[PromptLine]]:
        """Return groups that must stay together: an answer with its calls' results, or one line."""
        parts: list[list[PromptLine]] = []
        part_of: dict[str, list[PromptLine]] = {}
        for line in self.shown:
            part = part_of.get(line.message.result_of) if line.message.result_of else None
            if part is None:
                parts.append(part := [])
                part_of |= {call.id: part for call in line.message.calls if call.id}
            part.append(line)
        return parts

    def pinned(self, request: str) -> list[PromptLine]:
        """Return the user's request and their last message, which are never left out."""
        asked = [line for line in self.said if request and line.message.text.startswith(request)]
        return [*asked[-1:], *self.said[-1:]]

    async def _count(self, message: ChatMessage) -> int:
        thoughts = (thought.text for thought in message.thoughts)
        calls = (part for call in message.calls for part in (call.name, call.arguments))
        text = "\n".join((message.text, *calls, *thoughts))
        sealed = sum(len(json.dumps(thought.data)) for thought in message.thoughts if thought.data)
        pictures = PICTURE_TOKENS * len(message.pictures)
        return await self._counter.count(text) + sealed // _SEALED + pictures

    def _account(self, line: PromptLine, tokens: int) -> None:
        if line.kind == "evidence":
            self.evidence += tokens
        else:
            self.words += tokens
