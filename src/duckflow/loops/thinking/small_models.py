"""Help for small models, which read files without end, or guess, if they may choose freely.

A small model is offered only files that it has not seen, and only a few times. If a long message names a
file that does not exist, that counts as a request to write it.
"""

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from shlex import quote, split
from typing import Literal

from pydantic import JsonValue

from duckflow.dialects.compact import LOOKING, MAKING
from duckflow.dialects.compact_program import NOT_FOUND, PROFILES
from duckflow.dialects.compact_prompt import LONG_MESSAGE, Choices, Wish
from duckflow.dialects.drafts import DraftCheck
from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.state import AgentState, TranscriptEntry
from duckflow.domain.wishes import PlainWish, is_farewell, is_greeting, is_thanks, leaves_it, plain_wish
from duckflow.evaluation.checks import Checks
from duckflow.evaluation.facts import FILE_NAME, look_at, runner_is_missing
from duckflow.evaluation.project_tests import ProjectTests
from duckflow.evaluation.related_tests import is_test
from duckflow.loops.thinking.spelled_out import (
    file_to_show,
    missing_file,
    spelled_out,
    waits_for_input,
    wants_list,
)
from duckflow.loops.undo.operation import UNDO
from duckflow.prompts.shortening import lines_within
from duckflow.safety.files.listing import SKIPPED
from duckflow.safety.files.workspace import Workspace
from duckflow.tools.files.reading import is_pdf
from duckflow.tools.shell import RUN

WISHES: dict[str, Wish] = {profile: wish for wish, profile in PROFILES.items()}
_MOST_LOOKS = 3
_MOST_FILES = 200
_DEPTH = 4
_CONTENT_LIMIT = 10_000

_READ_AT_ONCE, _READ_LEAST, _MOST_READ = 8_000, 1_500, 3
"""Characters of the files that are read together, the least of each, and the number of files."""
_PAGES = 2
"""Number of pages of a PDF that a small model reads."""
_SEARCHED, _AROUND = 200_000, 50
"""Size of a file in which definitions are looked for, and the number of lines read after one."""
_HEADING = 300
_LINES_OF = lazy_regex(r"\(lines (?P<first>\d+)-(?P<last>\d+) of (?P<all>\d+)")
_CODE_NAME = lazy_regex(
    r"(?<![\w./])(?:[A-Za-z]\w*_\w+|[A-Za-z]+\d\w+|[a-z]+[A-Z]\w+|[A-Za-z]\w+(?=\())(?![\w./])", re.ASCII
)
"""A word that can only be a name in code."""
_ABOUT_ALL = lazy_regex(
    r"\b(?:this|the|my) (?:project|code|folder|repo|repository|program|app|library|package|directory)\b"
    r"|(?:この|これは|ここ).{0,3}(?:プロジェクト|コード|フォルダ|リポジトリ|プログラム|アプリ|ライブラリ|パッケージ|ディレクトリ|何)"
)
"""A question about everything in the folder."""
_DEFINES = (
    r"^[ \t]*(?:export |default |async |pub |static )*(?:def|class|function|const|let|var|fn|func|struct)"
    r"[ \t]+{name}\b|^{name}[ \t]*[:=]"
)
_NOT_WRITING = lazy_regex(
    r"\b(?:rename|move|delete|remove the file|call it)\b|改名|名前を|移動|移し|消し|消去|削除|リネーム"
)
_TESTS_WANTED = lazy_regex(r"\b(?:write|add|create|make)\b.{0,20}\btests?\b|テスト.{0,25}(?:書|追加|作)")

_HOW_TO = lazy_regex(r"(?:には|とは|方法は)[?？。\s]*\Z")
"""Ending of a Japanese sentence that asks how something is done."""


class WorkspaceLook:
    """Provides data about the workspace for the compact prompt of small models."""

    def __init__(self, workspace: Workspace, checks: Checks) -> None:
        self._workspace = workspace
        self._checks = checks
        self._tests = ProjectTests(workspace)

    async def files(self) -> tuple[str, ...]:
        """Return the paths of files from which a model can choose."""
        listing = await asyncio.to_thread(
            self._workspace.list, ".", depth=_DEPTH, limit=_MOST_FILES, skip=SKIPPED
        )
        return tuple(entry.path for entry in listing.entries if entry.kind == "file")

    async def choices(self, state: AgentState) -> Choices:
        """Return the choices that make sense for the model in this state."""
        files = await self.files()
        shown = {entry.path for entry in state.transcript if entry.path and _shows_all(entry)}
        seen = {entry.path for entry in state.transcript if entry.path}
        unseen = tuple(path for path in files if path not in seen)
        looks = sum(entry.operation in LOOKING for entry in _since_asked(state.transcript))
        plain, refused = _plain_wish(state), _refused_now(state)
        may_look = looks < _MOST_LOOKS and plain != "talk" and not refused and not _looked_first(state, files)
        wish, told = _wish(state, plain), _told_files(state, files)
        command, exit_code = await self._command(state, plain, files)
        said, begun = _last_said(state), _begun(state)
        path = file_to_show(said, files) if begun else ""
        return Choices(
            action=_spelled_out(state, said, files) if begun and not refused else None,
            shows=path,
            content=(await self.content(path) or "") if path else "",
            lists=begun and wants_list(said),
            missing=missing_file(said, files) if begun else "",
            starts=bool(command) and plain == "run" and await asyncio.to_thread(self._ends_alone, command),
            wish=wish or ("change" if told else None),
            plain=plain,
            talk=_kind_of_talk(said),
            told=told[0] if len(told) == 1 and not wish else "",
            writes=_to_write(state, files) if wish == "change" and not refused else "",
            command=command,
            exit_code=exit_code,
            own_runs=await self._own_runs(files) if exit_code == NOT_FOUND and plain == "tests" else (),
            untested=_could_not_test(state),
            changed=_changed(state) if plain == "changes" else (),
            files=files,
            unseen=unseen if may_look else (),
            hidden=tuple(path for path in files if path not in shown),
            may_search=may_look and looks == 0 and bool(files),
            may_move=not refused,
            may_delete=not refused
            and not any(entry.operation in MAKING for entry in _since_asked(state.transcript)),
        )

    async def reads(self, paths: Sequence[str]) -> tuple[Action, ...]:
        """Return actions to read the files, as much of them as a small model can read in good time."""
        return await asyncio.to_thread(self._reads, paths)

    def _reads(self, paths: Sequence[str]) -> tuple[Action, ...]:
        room, actions = _READ_AT_ONCE, list[Action]()
        for path in paths[:_MOST_READ]:
            args: dict[str, JsonValue] = {"path": path}
            if is_pdf(path):
                args["end"], room = _PAGES, 0
            with suppress(ToolError):
                lines = self._workspace.read_text(path).split("\n")
                fitting = lines_within(lines, max(room, _READ_LEAST))
                if fitting < len(lines):
                    args["end"] = max(fitting, 1)
                room -= sum(len(line) + 1 for line in lines[:fitting])
            actions.append(Action(operation=LOOKING[0], args=args, reasoning="the user asked about it"))
            if room <= 0:
                break
        return tuple(actions)

    async def look_first(self, state: AgentState, said: str) -> tuple[Action, ...]:
        """Return actions to read what a message names: files, or the place where a name is defined."""
        if plain_wish(said) in ("talk", "about", "changes", "tests", "run", "undo", "large"):
            return ()
        files = await self.files()
        if spelled_out(said, files) or file_to_show(said, files) or wants_list(said):
            return ()
        known = {one.path for one in state.transcript if one.digest and not one.stale}
        named = [path for path in files if names_file(said, path)]
        if named:
            return await self.reads([path for path in named if path not in known])
        if plain_wish(said) != "answer":
            return ()
        if not known and _ABOUT_ALL.search(said.casefold()):
            return await self.reads(sorted(files, key=_telling)[:_MOST_READ])
        shown = "\n".join(one.text for one in state.transcript if one.evidence_id)
        names = [name for name in dict.fromkeys(_CODE_NAME.findall(said)) if name not in shown]
        return await asyncio.to_thread(self._definitions, names, files)

    def _definitions(self, names: Sequence[str], files: Sequence[str]) -> tuple[Action, ...]:
        """Return actions to read the lines in which the names are defined."""
        patterns = {name: re.compile(_DEFINES.format(name=re.escape(name)), re.MULTILINE) for name in names}
        found: dict[str, Action] = {}
        for path in files:
            left = [name for name in names if name not in found]
            if not left:
                break
            with suppress(ToolError):
                text = self._workspace.read_text(path, cap=_SEARCHED)
                for name in left:
                    if match := patterns[name].search(text):
                        first = text.count("\n", 0, match.start()) + 1
                        args: dict[str, JsonValue] = {"path": path, "start": first, "end": first + _AROUND}
                        found[name] = Action(operation=LOOKING[0], args=args, reasoning=f"it defines {name}")
        return tuple(found.values())[:_MOST_READ]

    async def _command(
        self, state: AgentState, plain: PlainWish | None, files: Sequence[str]
    ) -> tuple[str, int | None]:
        """Return the command that the user's words ask for, and its exit code if it has run."""
        if plain == "run":
            changed = [change.path for one in reversed(state.change_sets) for change in one.changes]
            programs = [path for path in (*changed, *files) if path.endswith(".py") and not is_test(path)]
            known = [path for path in programs if path in files]
            named = [path for path in known if names_file(_last_said(state), path)]
            sure = named[:1] or (known[:1] if changed or len(set(known)) == 1 else [])
            command = f"python3 {quote(sure[0])}" if sure else ""
        elif plain == "tests":
            command = state.verify or await asyncio.to_thread(self._tests.find)
        else:
            return "", None
        ran = [entry for entry in _since_asked(state.transcript) if entry.operation == RUN]
        runs = state.request.commands if state.request else ()
        if not ran:
            return command, None
        code = runs[-1].exit_code if runs else NOT_FOUND
        return command, NOT_FOUND if runner_is_missing(code, ran[-1].text) else code

    async def _own_runs(self, files: Sequence[str]) -> tuple[str, ...]:
        """Run the tests without their program, as before a verdict, and return a line for each file."""
        results = await self._checks.before_verdict("", [path for path in files if is_test(path)])
        marks = {"passed": "✓", "failed": "✗"}
        return tuple(
            f"- {marks[one.state]} {one.name}" + (f": {one.detail}" if one.state == "failed" else "")
            for one in results
            if one.kind == "test" and one.state in marks
        )

    def _ends_alone(self, command: str) -> bool:
        """Return whether a Python program ends without input, so that it can be run to see what it does."""
        try:
            text = self._workspace.read_text(split(command)[-1], cap=_SEARCHED)
        except ToolError:
            return False
        return not waits_for_input(text)

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


def names_file(text: str, path: str) -> bool:
    """Return whether a message names a file, by its path or its name."""
    forms = {path, path.rpartition("/")[2]}
    return any(re.search(rf"(?<![\w./-]){re.escape(one)}(?![A-Za-z0-9_/-]|\.\w)", text) for one in forms)


def _telling(path: str) -> tuple[bool, bool, int, str]:
    """Return a sort key: the README first, then code near the top, tests last."""
    return not path.casefold().startswith("readme"), is_test(path), path.count("/"), path


def _last_said(state: AgentState) -> str:
    """Return the user's last words: a message, the reason of a no, or an answer to a question."""
    added = state.request.objective.added.rpartition("\n\n")[2] if state.request else ""
    said = next((entry.text for entry in reversed(state.transcript) if entry.said), "")
    return added or said.partition("\n\n")[0]


def _refused_now(state: AgentState) -> bool:
    """Return whether the last thing that happened is that the user refused an action and gave a reason."""
    request, last = state.request, state.transcript[-1] if state.transcript else None
    if request is None or last is None or last.evidence_id is None:
        return False
    declined = request.objective.current.declined
    return (
        bool(request.objective.added) and bool(declined) and declined[-1].startswith(f"{last.evidence_id} ")
    )


def _plain_wish(state: AgentState) -> PlainWish | None:
    """Return what the user's last words plainly ask for."""
    if state.request is None:
        return None
    said = _last_said(state)
    if _refused_now(state):
        return "leave" if leaves_it(said) else "change"
    return plain_wish(said)


def _wish(state: AgentState, plain: PlainWish | None) -> Wish | None:
    """Return whether an answer or a change is wanted: as the user's words say, else as the model said."""
    if plain in ("answer", "change"):
        return plain
    if plain == "talk":
        return "answer"
    request = state.request
    if request is None or request.profile is None:
        return "answer" if request and _HOW_TO.search(request.text) else None
    return WISHES.get(request.profile)


def _changed(state: AgentState) -> tuple[str, ...]:
    """Return the files that the session changed and that no undo has restored."""
    made = (one for one in state.change_sets if not one.undone and not one.by_undo)
    return tuple(dict.fromkeys(change.path for one in made for change in one.changes if not change.ignored))


def _spelled_out(state: AgentState, said: str, files: Sequence[str]) -> Action | None:
    """Return what a message spells out: an undo of what this session changed, a renaming or a deletion."""
    if plain_wish(said) == "undo" and _changed(state):
        return Action(operation=UNDO, args={})
    return spelled_out(said, files)


def _kind_of_talk(said: str) -> Literal["hello", "welcome", "bye", "next"]:
    if is_farewell(said):
        return "bye"
    return "hello" if is_greeting(said) else "welcome" if is_thanks(said) else "next"


def _could_not_test(state: AgentState) -> bool:
    """Return whether this request has changed files, after which its tests could not start."""
    request, last = state.request, state.transcript[-1] if state.transcript else None
    if request is None or not (request.changed and request.commands) or last is None:
        return False
    ran = request.commands[-1]
    same = last.operation == RUN and last.evidence_id == ran.evidence_id
    return same and runner_is_missing(ran.exit_code, last.text)


def _to_write(state: AgentState, files: Sequence[str]) -> str:
    """Return the one file that a short message tells to write; empty if only the model can tell."""
    said = _last_said(state)
    if len(said) >= LONG_MESSAGE or _NOT_WRITING.search(said.casefold()) or not _begun(state):
        return ""
    there = [path for path in files if names_file(said, path)]
    new = [name for name in FILE_NAME.findall(said) if not any(path.endswith(name) for path in files)]
    named = list(dict.fromkeys((*there, *new)))
    if _TESTS_WANTED.search(said.casefold()):
        tests = [path for path in named if is_test(path)]
        return tests[0] if tests else _test_file(state, [path for path in named if path in files], files)
    return named[0] if len(named) == 1 else ""


def _test_file(state: AgentState, named: Sequence[str], files: Sequence[str]) -> str:
    """Return the file for tests of the named or last changed Python file, or of the only one."""
    tests = [path for path in files if is_test(path)]
    changed = [change.path for one in reversed(state.change_sets) for change in one.changes]
    code = [
        path for path in (*named, *changed) if path in files and path.endswith(".py") and not is_test(path)
    ]
    code = code or [path for path in files if path.endswith(".py") and not is_test(path)]
    if not code or (not named and not changed and len(code) > 1):
        return tests[0] if len(tests) == 1 else ""
    name = f"test_{code[0].rpartition('/')[2]}"
    known = [path for path in tests if path.rpartition("/")[2] == name]
    return known[0] if known else tests[0] if len(tests) == 1 and len(code) > 1 else name


def _begun(state: AgentState) -> bool:
    """Return whether the request has only read so far, so that its first decision is still to come."""
    return all(entry.operation in (None, LOOKING[0]) for entry in _since_asked(state.transcript))


def _shows_all(entry: TranscriptEntry) -> bool:
    """Return whether an entry about a file shows all of its lines."""
    part = _LINES_OF.search(entry.text[:_HEADING])
    return part is None or (part["first"], part["last"]) == ("1", part["all"])


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


def _looked_first(state: AgentState, files: Sequence[str]) -> bool:
    """Return whether what the user named has been read: just now, or earlier in the conversation."""
    since = _since_asked(state.transcript)
    if since and since[0].evidence_id is not None:
        return True
    said = _last_said(state)
    known = {one.path for one in state.transcript if one.path and not one.stale}
    named = [path for path in files if names_file(said, path)]
    return bool(named) and known.issuperset(named)
