"""Collects evidence for a verdict: diffs, last commands, checks, and the sources of a reply (J2)."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import NamedTuple

from duckflow.domain.errors import ToolError
from duckflow.domain.files.caches import is_cache
from duckflow.domain.files.changes import ChangeSet
from duckflow.domain.frozen import replace
from duckflow.domain.state import AgentState, CommandRun, Request
from duckflow.domain.text import cut, head_and_tail
from duckflow.domain.work.checks import CheckResult
from duckflow.domain.work.objective import Evidence
from duckflow.evaluation.checks import Checks
from duckflow.evaluation.facts import Fact, as_evidence, check_files, claimed_files
from duckflow.evaluation.known_tests import KnownRun
from duckflow.evaluation.related_tests import is_test
from duckflow.loops.judging.closing import how_to_try
from duckflow.loops.judging.targets import missed_files
from duckflow.loops.session import SessionPart
from duckflow.loops.undo.differences import Differences, first_changes
from duckflow.prompts.evidence import evidence_in
from duckflow.prompts.shortening import fair_shares, fold_removed, narrow, shorten
from duckflow.safety.files.listing import SKIPPED
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.policy.protected import is_secret
from duckflow.safety.sandbox.view.git_settings import ignored_paths
from duckflow.tools.code.intelligence import CodeIntelligence
from duckflow.tools.effects_text import as_kept
from duckflow.tools.shell import RUN, TAKE_OVER

_BEFORE = 2
"""Number of commands from before the last change to show if none ran after it."""

_MOST = 120_000
"""Largest number of characters of diffs to keep with a verdict."""

_MUCH, _TESTS = 10_000, 3_000
"""If all diffs together exceed the first number of characters, each diff of a test is cut to the second."""

_REMOVED = 2_000

_OUTPUT = 3_000

_DEPTH, _LISTED = 6, 2_000

_OWN = ("file_ops.", "shell.")
"""Operations whose results are shown as diffs and command output instead."""


class CaseEvidence(NamedTuple):
    """Evidence for one verdict. `checks` holds the facts and results as evidence with new ids."""

    changed: tuple[str, ...]
    facts: tuple[Fact, ...]
    results: tuple[CheckResult, ...]
    checks: tuple[Evidence, ...]
    found: tuple[Evidence, ...]
    """Results of commands and other actions, under their existing ids."""
    only_comments: bool = False
    missed: tuple[str, ...] = ()


@dataclass(eq=False)
class CaseEvidenceCollector(SessionPart):
    """Collects evidence about the open request of a session."""

    _workspace: Workspace
    _differences: Differences
    _checks: Checks
    _code: CodeIntelligence

    async def collect(self, request: Request) -> CaseEvidence:
        """Examine the changed files, run the checks, and number both as evidence."""
        state = self._state
        changed = await asyncio.to_thread(self._visible, request)
        facts = await asyncio.to_thread(check_files, self._workspace, changed, request.removed)
        made = self._made(request)
        differences = await self._differences.since(made)
        facts = [one for one in facts if one.state != "gone" or differences.get(one.path, "gone")]
        facts = _with_differences(facts, differences)
        there = [path for path in changed if path not in request.removed]
        before = await self._differences.before(made, there)
        seen = {one.evidence_id: one for one in evidence_in(state)}
        results = await self._checks.before_verdict(
            request.objective.request,
            there,
            known=[
                KnownRun(run.command, seen[run.evidence_id].text, run.evidence_id)
                for run in request.commands
                if run.good and run.revision == request.objective.revision and run.evidence_id in seen
            ],
            before=before,
            commands=[run.command for run in request.commands],
        )
        results = (*results, *await self._code.left())
        checks = as_evidence((*facts, *results), self._state.evidence_count + 1)
        ids = (one.evidence_id for one in checks[len(facts) :])
        return CaseEvidence(
            changed=changed,
            facts=facts,
            results=tuple(replace(one, evidence_id=of) for one, of in zip(results, ids, strict=True)),
            checks=checks,
            found=_found_by(state, request, seen, informs=not changed),
            only_comments=await asyncio.to_thread(self._only_comments, request, changed, before),
            missed=await asyncio.to_thread(self._missed, request, made),
        )

    def _only_comments(self, request: Request, changed: Sequence[str], before: Mapping[str, str]) -> bool:
        """Return whether the changed files differ only in comments, for which the user did not ask."""
        from duckflow.domain.files.effective_code import same_code, wants_text_only  # noqa: PLC0415 - imports ast

        if not changed or wants_text_only(request.objective.request) or not before.keys() >= {*changed}:
            return False
        try:
            return all(same_code(path, before[path], self._workspace.read_text(path)) for path in changed)
        except ToolError:
            return False

    def _missed(self, request: Request, made: Sequence[ChangeSet]) -> tuple[str, ...]:
        """Return the file that the user named if another one was changed, or created under the same name."""
        listing = self._workspace.list(".", depth=_DEPTH, limit=_LISTED, skip=SKIPPED)
        files = [entry.path for entry in listing.entries if entry.kind == "file"]
        return missed_files(request.objective.request, first_changes(made), files)

    async def compare(self, request: Request, failed: CheckResult, command: str) -> CheckResult:
        """Mark a failed test command that failed in the same way before the request's first change (J3)."""
        made = self._made(request)
        # A commit must not prevent the comparison: tests depend neither on git's own files nor on caches.
        first = {path: one for path, one in first_changes(made).items() if not _is_own(path)}
        before = await self._differences.before(made, first)
        if not first or any(one.before is not None and path not in before for path, one in first.items()):
            return replace(failed, compared=False)
        created = [path for path in first if path not in before]
        return await self._checks.compare_command(failed, command, before, created)

    async def how_to_try(self, changed: Sequence[str]) -> str:
        """Return a sentence about how the user can try the changed files."""
        own = [path for path in changed if not _is_own(path)]
        return await asyncio.to_thread(how_to_try, self._workspace, own)

    async def missing_claims(self, request: Request, reply: str) -> bool:
        """Return whether a reply without any action names a file as written that is not there (J3)."""
        objective = request.objective
        claimed = claimed_files(reply)
        if not claimed or any(one.tried for one in (*objective.attempts, objective.current)):
            return False
        listed = partial(self._workspace.list, ".", depth=_DEPTH, limit=_LISTED, skip=SKIPPED)
        listing = await asyncio.to_thread(listed)
        there = {PurePosixPath(entry.path).name for entry in listing.entries}
        return listing.complete and not claimed & there

    def _made(self, request: Request) -> list[ChangeSet]:
        made = (one for one in self._state.change_sets if one.request_id == request.request_id)
        return [one for one in made if not one.by_undo and not one.undone]

    def _visible(self, request: Request) -> tuple[str, ...]:
        """Return the changed files without caches. Leave out ignored files, unless there are no others."""
        own = [path for path in request.changed if not _is_own(path)]
        ignored = ignored_paths(str(self._workspace.root), own)
        return tuple(path for path in own if path not in ignored) or tuple(own)


def written_files(state: AgentState, workspace: Workspace) -> tuple[Evidence, ...]:
    """Return the content of files that the session wrote, if no result shows it (B3). Blocking."""
    changes = (change for one in state.change_sets if not one.undone for change in one.changes)
    written = dict.fromkeys(one.path for one in changes if one.after is not None and not one.ignored)
    unseen = [one for one in written if one not in state.shown_files and not _is_own(one)]
    facts = (fact for fact in check_files(workspace, unseen) if fact.content)
    return as_evidence(facts, state.evidence_count + 1)


def _is_own(path: str) -> bool:
    """Return whether a path belongs to a tool, such as a cache or git."""
    return is_cache(path) or ".git" in path.split("/")


def _found_by(
    state: AgentState, request: Request, seen: Mapping[str, Evidence], *, informs: bool
) -> tuple[Evidence, ...]:
    """Return results of actions as evidence. If the reply `informs`, include what it may be based on."""
    asked = any(one.asks_for == "information" for one in request.objective.requirements)
    found: dict[str, Evidence] = {}
    for entry in state.transcript:
        one = seen.get(entry.evidence_id or "")
        other_work = entry.supports == "change" and not (entry.operation or "").startswith(_OWN)
        if one is not None and entry.path in request.changed:
            found[one.evidence_id] = replace(one, current=False)  # citable, but its difference shows all
        elif one is not None and (informs or (asked and entry.supports == "reading") or other_work):
            found[one.evidence_id] = one
    kept = set(_kept_runs(state))
    for run, note in _last_runs(request):
        if run.evidence_id in seen:
            said = seen[run.evidence_id].text
            output = head_and_tail(as_kept(said) if run.evidence_id in kept else said, _OUTPUT)
            found[run.evidence_id] = Evidence(
                evidence_id=run.evidence_id,
                text=f"$ {cut(run.command, _OUTPUT)}\n{note}{output}",
                supports="change" if run.good else "nothing",
            )
    return tuple(found.values())


def _kept_runs(state: AgentState) -> Iterator[str]:
    """Yield the evidence ids of commands whose changes the user was asked about and has kept."""
    last = ""
    for entry in state.transcript:
        if entry.operation == RUN:
            last = entry.evidence_id or ""
        elif entry.operation == TAKE_OVER and not entry.failed:
            yield last


def _last_runs(request: Request) -> Iterable[tuple[CommandRun, str]]:
    """Return each command's last run since the last change, or if none ran since, the last runs before it."""
    last = list({run.command.strip(): run for run in request.commands}.values())
    objective = request.objective
    current = [run for run in last if run.revision >= objective.changed_at]
    if current or not request.changed:
        said = "(before the user's last message)\n"
        return [(run, said if run.revision < objective.revision else "") for run in current or last]
    return [(run, "(before the last change of a file)\n") for run in last[-_BEFORE:]]


def _with_differences(facts: Sequence[Fact], differences: Mapping[str, str]) -> tuple[Fact, ...]:
    known = [differences.get(one.path, "") if not is_secret(one.path) else "" for one in facts]
    known = [cut(of, _REMOVED) if one.state == "gone" else of for one, of in zip(facts, known, strict=True)]
    texts = [narrow(found.rstrip("\n")) or one.content for one, found in zip(facts, known, strict=True)]
    if sum(map(len, texts)) > _MUCH:  # shorten removals and tests to leave room for additions
        pairs = zip(facts, map(fold_removed, texts), strict=True)
        texts = [shorten(text, _TESTS) if is_test(one.path) else text for one, text in pairs]
    shares = fair_shares([len(text) for text in texts], _MOST)
    return tuple(
        replace(one, content=shorten(text, share))
        for one, text, share in zip(facts, texts, shares, strict=True)
    )
