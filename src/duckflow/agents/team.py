"""Team: starts agents on copies of the folder, and brings what they did together in one copy (O1, O2)."""

import asyncio
import os
import secrets
import shutil
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Literal, NamedTuple

from duckflow.agents.joining import MOST_MERGED, Conflict, CopyToJoin
from duckflow.agents.process import CopyProcess
from duckflow.agents.report import AgentReport, read_event
from duckflow.config.keys import variable_for
from duckflow.config.places import OUTER_STATE, STATE, state_dir
from duckflow.domain.errors import ToolError
from duckflow.domain.events import AgentEnded, AgentStarted, Event
from duckflow.domain.files.effects import Effects
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.text import one_line
from duckflow.domain.work.agents import AgentKind
from duckflow.domain.work.review import ReviewFinding
from duckflow.pacemaker.shares import Share
from duckflow.safety.descriptors import closing_fd
from duckflow.safety.sandbox.copy.copies import PlacedFile, WorkspaceCopy
from duckflow.safety.sandbox.shell import Shell

Keep = Literal["all", "best"]

ROLE = "DUCKFLOW_AGENT_ROLE"
"""Variable that names a file with rules for an agent."""

REVIEW_PLACE = "DUCKFLOW_AGENT_REVIEW"
"""Variable that names the folder with the facts about changes that an agent reviews."""

CHECK_FOUND = "DUCKFLOW_AGENT_CHECK_FOUND"
"""Variable that is set if an agent's check was found in the project: its older failures do not count (J3)."""

_TASK_SHOWN = 200
_REVIEW = "review"
_ROLES: Mapping[AgentKind, str] = {
    "explores": (
        "You explore for another agent, which reads only your final reply. Change nothing. Answer with "
        "findings, at most twenty lines, each with the file and line that shows it (src/app.py:12), and say "
        "what you could not find."
    ),
    "works": (
        "You do one part of a larger request. Others do other parts at the same time, each on its own copy "
        "of this folder; the copies are joined afterwards. Keep to your part, change no file that it does "
        "not need, and do not commit. Nobody can answer questions: decide yourself, and say what you decided "
        "in your reply."
    ),
    "reviews": (
        "You review changes for another person, who reads your findings. Your task says how. Nobody can "
        "answer questions."
    ),
    "joins": (
        "Several agents changed this folder at the same time, and their changes did not fit together in some "
        "places. Join them there so that the purpose of each is kept, and change nothing else. Do not commit."
    ),
}


class Assignment(NamedTuple):
    """A task for one agent, with what a custom agent adds."""

    name: str
    task: str
    kind: AgentKind
    instructions: str = ""
    model: str = ""
    check: str = ""
    """Command that must succeed before the task is done."""
    check_found: bool = False
    """True if Duckflow found this check, the project's tests, without being asked for it."""


class AgentSetup(Frozen):
    """Settings that all agents of a session share. `model` is used for work, `fast` for exploring."""

    model: str
    fast: str
    trusted: bool = False
    parallel: int = 4


class TeamOutcome(NamedTuple):
    """The reports of agents that worked, and the copy with what is left of their changes, if anything."""

    reports: tuple[AgentReport, ...]
    copy_id: str = ""
    conflicts: tuple[Conflict, ...] = ()
    """Paths with conflicting changes that no agent could join: the first version is kept."""
    joined: tuple[Conflict, ...] = ()
    """Paths with conflicting changes that an agent joined."""
    chosen: str = ""
    """Name of the attempt that was chosen."""


class _Worked(NamedTuple):
    report: AgentReport
    copy: WorkspaceCopy
    effects: Effects


class Team:
    """Starts and ends the agents of a session. `record` gets their events."""

    def __init__(
        self,
        shell: Shell,
        record: Callable[..., None],
        env: Mapping[str, str],
        setup: Callable[[], AgentSetup],
        choose: Callable[[Sequence[tuple[AgentReport, Effects, WorkspaceCopy]]], Awaitable[int]],
    ) -> None:
        self._shell = shell
        self._record = record
        self._env = env
        self._setup = setup
        self._choose = choose

    async def explore(self, assignments: Sequence[Assignment], share: Share) -> tuple[AgentReport, ...]:
        """Let agents answer questions about the folder. They change nothing."""
        return tuple(one.report for one in await self._run(assignments, share, keeps=False))

    async def work(self, assignments: Sequence[Assignment], share: Share, keep: Keep) -> TeamOutcome:
        """Let agents do tasks. Keep all of their changes, or those of the best attempt at one task."""
        worked = await self._run(assignments, share, keeps=True)
        kept: WorkspaceCopy | None = None
        try:
            reports = tuple(one.report for one in worked)
            useful = [one for one in worked if not one.effects.nothing]
            if not useful:
                return TeamOutcome(reports)
            if keep == "best":
                useful = [await self._best(useful)]
            if len(useful) == 1:
                kept = useful[0].copy
                chosen = useful[0].report.name if keep == "best" else ""
                return TeamOutcome(reports, self._shell.offer(kept), chosen=chosen)
            kept, conflicts, joined = await self._joined(useful, assignments, share)
            return TeamOutcome(reports, self._shell.offer(kept), conflicts, joined)
        finally:
            for one in worked:
                if one.copy is not kept:
                    await asyncio.shield(asyncio.to_thread(one.copy.discard))

    async def has_copies(self) -> bool:
        """Return whether agents work on copies here."""
        return (await self._shell.sandbox()).copies

    async def review(
        self,
        task: str,
        share: Share,
        files: Mapping[str, PlacedFile],
        prepare: Callable[[Path], None],
        read: Callable[[Path], tuple[ReviewFinding, ...]],
    ) -> tuple[AgentReport, tuple[ReviewFinding, ...]]:
        """Let an agent review changes on a copy with these files. It changes nothing.

        `prepare` and `read` write and read files in the folder that the agent's session uses for the review.
        """
        copy = await self._shell.new_copy("review") if await self.has_copies() else None
        if copy is None and files:
            raise ToolError("There are no copies here, so check the changes out first.", "review.check_out")
        place = Path(tempfile.mkdtemp(prefix="review-", dir=state_dir())) if copy is None else copy.folder
        try:
            if copy is not None:
                await asyncio.to_thread(copy.put, files)
            await asyncio.to_thread(prepare, place / _REVIEW)
            report = await self._follow(
                Assignment("review", task, "reviews"), copy or self._shell.workspace, place, share
            )
            self._record(_ended(report))
            return report, await asyncio.to_thread(read, place / _REVIEW)
        finally:
            if copy is None:
                await asyncio.shield(asyncio.to_thread(shutil.rmtree, place, ignore_errors=True))
            else:
                await asyncio.shield(asyncio.to_thread(copy.discard))

    async def _best(self, worked: Sequence[_Worked]) -> _Worked:
        ranks = [one.report.rank for one in worked]
        best = [one for one, rank in zip(worked, ranks, strict=True) if rank == max(ranks)]
        distinct = {one.effects.model_copy(update={"touched": ()}).model_dump_json(): one for one in best}
        best = list(distinct.values())
        if len(best) == 1:
            return best[0]
        return best[await self._choose([(one.report, one.effects, one.copy) for one in best])]

    async def _run(self, assignments: Sequence[Assignment], share: Share, *, keeps: bool) -> list[_Worked]:
        """Run agents side by side. If cancelled, or if one can't start, none of their copies is left."""
        slots = asyncio.Semaphore(self._setup().parallel)
        copies: list[WorkspaceCopy] = []
        done: list[_Worked] = []
        try:
            for one in assignments:  # all copies show the folder at the same moment
                copies += [await self._shell.new_copy(f"agent {one.name}")]
            async with asyncio.TaskGroup() as group:
                running = [
                    group.create_task(self._run_one(one, copy, share, slots, keeps=keeps))
                    for one, copy in zip(assignments, copies, strict=True)
                ]
            done = [task.result() for task in running]
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None
        finally:
            if not done or not keeps:
                for copy in copies:
                    await asyncio.shield(asyncio.to_thread(copy.discard))
        return done

    async def _run_one(
        self, one: Assignment, copy: WorkspaceCopy, share: Share, slots: asyncio.Semaphore, *, keeps: bool
    ) -> _Worked:
        async with slots:
            report = await self._follow(one, copy, copy.folder, share)
        effects = (await asyncio.to_thread(copy.read)).effects if keeps else Effects()
        files = {effect.path for effect in effects.effects}
        self._record(_ended(report, len(files)))
        return _Worked(report, copy, effects)

    async def _follow(
        self, one: Assignment, where: WorkspaceCopy | Path, place: Path, share: Share
    ) -> AgentReport:
        """Start an agent, record its news, and return its report. `place` is the folder for its files."""
        report = AgentReport(agent_id=secrets.token_hex(4), name=one.name)
        task = one_line(one.task.strip().partition("\n")[0], _TASK_SHOWN)
        self._record(AgentStarted(agent_id=report.agent_id, name=one.name, kind=one.kind, task=task))
        setup = self._setup()
        process = CopyProcess(where, await asyncio.to_thread(self._environment, one, place, share))
        model = one.model or (setup.fast if one.kind == "explores" else setup.model)
        flags = ["--json", "--model", model, *(["--trust"] if setup.trusted else [])]
        command, task = ["-m", "duckflow", "run", *flags, "-"], one.task.encode("utf-8", "replace")
        try:
            async with aclosing(process.lines(command, task)) as said:
                async for event in said:
                    report, news = read_event(report, event)
                    self._note(news)
        except BaseException:
            self._record(_ended(replace(report, outcome="interrupted")))
            raise
        if report.outcome == "failed" and not report.problem:
            report = replace(report, problem=process.last_words)
        return report

    def _note(self, news: Sequence[Event]) -> None:
        if news:
            self._record(*news)

    def _environment(self, one: Assignment, place: Path, share: Share) -> dict[str, str]:
        """Return the environment of an agent: its own state, its share, and no questions."""
        state, role = place / "state", place / "role.md"
        state.mkdir(mode=0o700)
        role.write_text("\n\n".join(part for part in (_ROLES[one.kind], one.instructions) if part), "utf-8")
        settings = {
            "mode": "plan" if one.kind in ("explores", "reviews") else "auto",
            "duck_pacemaker.dynamic_limits.hard_max_loops": share.most_loops,
            "duck_pacemaker.dynamic_limits.max_loops": share.loops,
            "duck_pacemaker.budget.max_tokens": share.tokens,
            "duck_pacemaker.budget.max_cost_usd": share.cost_usd,
            "evaluation.verify": one.check or None,
            "agents.enabled": "false",
            "memory.enabled": "false",
            "ui.titles": "false",
        }
        given = {variable_for(key): str(value) for key, value in settings.items() if value is not None}
        own = {STATE: str(state), OUTER_STATE: str(state_dir()), ROLE: str(role)}
        own |= {REVIEW_PLACE: str(place / _REVIEW)} if one.kind == "reviews" else {}
        found = {CHECK_FOUND: "1"} if one.check_found else {}
        return {**self._env, **given, **own, **found}

    async def _joined(
        self, worked: Sequence[_Worked], assignments: Sequence[Assignment], share: Share
    ) -> tuple[WorkspaceCopy, tuple[Conflict, ...], tuple[Conflict, ...]]:
        """Join the copies in a new one; an agent joins what does not fit together."""
        joint = await self._shell.new_copy("agents")
        ready = False
        try:
            orders = await asyncio.to_thread(_orders, joint, worked)
            process = CopyProcess(joint, {**self._env, OUTER_STATE: str(state_dir())})
            async with aclosing(process.lines(["-m", "duckflow.agents.joining"], orders)) as said:
                conflicts = [Conflict.model_validate(one) async for one in said]
            if process.exit_code != 0:
                raise ToolError(f"What the agents did could not be joined: {process.last_words}")
            await asyncio.to_thread(joint.mount_again)
            left, joined = await self._resolve(joint, conflicts, assignments, share)
            ready = True
            return joint, left, joined
        finally:
            if not ready:
                await asyncio.shield(asyncio.to_thread(joint.discard))

    async def _resolve(
        self,
        joint: WorkspaceCopy,
        conflicts: Sequence[Conflict],
        assignments: Sequence[Assignment],
        share: Share,
    ) -> tuple[tuple[Conflict, ...], tuple[Conflict, ...]]:
        """Let an agent join conflicts. Return those that are left, and those that it joined."""
        if not conflicts:
            return (), ()
        paths = {one.path for one in conflicts}
        before = {path: await asyncio.to_thread(joint.content, path, MOST_MERGED) for path in paths}
        task = _joining_task(conflicts, assignments)
        await self._run_one(task, joint, share, asyncio.Semaphore(1), keeps=False)
        after = {path: await asyncio.to_thread(joint.content, path, MOST_MERGED) for path in paths}
        left = tuple(one for one in conflicts if before[one.path] == after[one.path])
        return left, tuple(one for one in conflicts if one not in left)


def _ended(report: AgentReport, files: int = 0) -> AgentEnded:
    return AgentEnded(
        agent_id=report.agent_id,
        name=report.name,
        outcome=report.outcome,
        loops=report.loops,
        vitals=report.vitals,
        satisfaction=report.satisfaction,
        files=files,
        problem=report.problem,
    )


def _joining_task(conflicts: Sequence[Conflict], assignments: Sequence[Assignment]) -> Assignment:
    parts = ["Join the work of several agents in these files. Everything else is joined already."]
    for one in conflicts:
        if one.hunks:
            said = (
                f"It has the first version in these places. Here are both, {one.name}'s second:\n{one.hunks}"
            )
        else:
            said = f"The file is as another agent left it; {one.name} {one.did}"
        parts.append(f"{one.path}: {said}")
    tasks = "\n".join(f"- {one.name}: {one.task}" for one in assignments)
    return Assignment("join", "\n\n".join([*parts, f"What the agents were to do:\n{tasks}"]), "joins")


def _orders(joint: WorkspaceCopy, worked: Sequence[_Worked]) -> bytes:
    """Return the input of the joining program, and store what shared paths were before."""
    changed = Counter(
        path
        for one in worked
        for effect in one.effects.effects
        for path in {effect.path, effect.moved_from or effect.path}
    )
    bases: dict[str, str] = {}
    place = joint.folder / "bases"
    place.mkdir(mode=0o700)
    for number, path in enumerate(path for path, count in changed.items() if count > 1):
        content = _lower(worked[0].copy, path)
        if content is not None:
            (place / str(number)).write_bytes(content)
            bases[path] = str(place / str(number))
    orders = (
        CopyToJoin(
            name=one.report.name,
            folder=str(one.copy.folder),
            about=one.copy.about,
            effects=without_git(one.effects),
            bases=bases,
        )
        for one in worked
    )
    return "".join(f"{order.model_dump_json()}\n" for order in orders).encode()


def without_git(effects: Effects) -> Effects:
    """Return the effects outside git's own files: of several repositories' states only one could be kept."""
    kept = tuple(one for one in effects.effects if ".git" not in one.path.split("/"))
    return replace(effects, effects=kept)


def _lower(copy: WorkspaceCopy, path: str) -> bytes | None:
    """Return the content of a file of the folder itself; None if it is missing or no file that is merged."""
    try:
        with closing_fd(copy.open_lower(path)) as opened:
            content = os.read(opened, MOST_MERGED + 1)
    except OSError:
        return None
    return content if len(content) <= MOST_MERGED else None
