"""Help for small models, which read files without end, or guess, if they may choose freely.

A small model is offered only files that it has not seen, and only a few times. If a long message names a
file that does not exist, that counts as a request to write it.
"""

import asyncio
from collections.abc import Sequence

from duckflow.dialects.compact import LOOKING, MAKING, PROFILES
from duckflow.dialects.compact_prompt import LONG_MESSAGE, Choices, Wish
from duckflow.dialects.drafts import DraftCheck
from duckflow.domain.errors import ToolError
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.state import AgentState, TranscriptEntry
from duckflow.evaluation.checks import Checks
from duckflow.evaluation.facts import FILE_NAME, look_at
from duckflow.evaluation.related_tests import is_test
from duckflow.safety.files.listing import SKIPPED
from duckflow.safety.files.workspace import Workspace

WISHES: dict[str, Wish] = {profile: wish for wish, profile in PROFILES.items()}
_MOST_LOOKS = 3
_MOST_FILES = 200
_DEPTH = 4
_CONTENT_LIMIT = 12_000

_HOW_TO = lazy_regex(r"(?:には|とは|方法は)[?？。\s]*\Z")
"""Ending of a Japanese sentence that asks how something is done."""


class WorkspaceLook:
    """Provides data about the workspace for the compact prompt of small models."""

    def __init__(self, workspace: Workspace, checks: Checks) -> None:
        self._workspace = workspace
        self._checks = checks

    async def files(self) -> tuple[str, ...]:
        """Return the paths of files from which a model can choose."""
        listing = await asyncio.to_thread(
            self._workspace.list, ".", depth=_DEPTH, limit=_MOST_FILES, skip=SKIPPED
        )
        return tuple(entry.path for entry in listing.entries if entry.kind == "file")

    async def choices(self, state: AgentState) -> Choices:
        """Return the choices that make sense for the model in this state."""
        files = await self.files()
        shown = {entry.path for entry in state.transcript if entry.path}
        unseen = tuple(path for path in files if path not in shown)
        looks = sum(entry.operation in LOOKING for entry in _since_asked(state.transcript))
        may_look = not _looked_first(state.transcript) and looks < _MOST_LOOKS
        wish, told = _wish(state), _told_files(state, files)
        return Choices(
            wish=wish or ("change" if told else None),
            told=told[0] if len(told) == 1 and not wish else "",
            files=files,
            unseen=unseen if may_look else (),
            hidden=unseen,
            may_search=may_look and looks == 0 and bool(files),
            may_delete=not any(entry.operation in MAKING for entry in _since_asked(state.transcript)),
        )

    async def check(self, state: AgentState, path: str, content: str) -> DraftCheck:
        """Check a file that a model has drafted, without writing it to the workspace."""
        fact = await asyncio.to_thread(look_at, path, content.encode("utf-8", "replace"))
        if not fact.good:
            return DraftCheck(failed=1)
        asked = state.request.objective.request if state.request else ""
        results = await self._checks.of_draft(asked, {path: content}, state.verify or "")
        failed = [one for one in results if one.state == "failed"]
        binding = sum(one.binding for one in failed)
        passed = sum(one.state == "passed" for one in results)
        return DraftCheck(failed=binding, passed=passed, doubts=len(failed) - binding)

    async def failing_tests(self, paths: Sequence[str]) -> frozenset[str]:
        """Return failing tests for the code files among `paths`; none if `paths` has no tests or no code."""
        code = [path for path in paths if not is_test(path)]
        if not code or len(code) == len(paths):
            return frozenset()
        results = await self._checks.before_verdict("", code)
        return frozenset(one.name for one in results if one.kind == "test" and one.state == "failed")

    async def content(self, path: str) -> str | None:
        """Return a file's content; None if it can't be shown."""
        try:
            return await asyncio.to_thread(self._workspace.read_text, path, cap=_CONTENT_LIMIT)
        except ToolError:
            return None


def _wish(state: AgentState) -> Wish | None:
    """Return the kind of request that the model named. Before that, only how-to questions are recognized."""
    request = state.request
    if request is None or request.profile is None:
        return "answer" if request and _HOW_TO.search(request.text) else None
    return WISHES.get(request.profile)


def _told_files(state: AgentState, files: Sequence[str]) -> tuple[str, ...]:
    asked = state.request.text.strip() if state.request else ""
    if len(asked) < LONG_MESSAGE or asked.endswith(("?", "？")):
        return ()
    there = {path.rpartition("/")[2] for path in files}
    return tuple(dict.fromkeys(name for name in FILE_NAME.findall(asked) if name not in there))


def _since_asked(transcript: Sequence[TranscriptEntry]) -> Sequence[TranscriptEntry]:
    for back, entry in enumerate(reversed(transcript)):
        if entry.said:
            return transcript[len(transcript) - back :]
    return transcript


def _looked_first(transcript: Sequence[TranscriptEntry]) -> bool:
    """Return whether files that the user named were read before the model was asked."""
    since = _since_asked(transcript)
    return bool(since) and since[0].evidence_id is not None
