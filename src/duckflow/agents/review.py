"""Review of changes: the task of the reviewing agent, and the operation that starts it (O4)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from duckflow.agents.team import Team
from duckflow.domain.errors import ToolError
from duckflow.domain.events import ReviewFinished
from duckflow.domain.frozen import Frozen
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.text import head_and_tail, some_of
from duckflow.domain.work.review import ReviewFinding, ReviewReport, in_order
from duckflow.pacemaker.shares import Share
from duckflow.prompts.templates import fill
from duckflow.safety.files.access import Access
from duckflow.tools.catalogue import Tool, ToolResult

if TYPE_CHECKING:
    from duckflow.agents.changes import Changes

REVIEW = "agent.review"

_MOST_WORDS = 5_000
_REPLY, _OUTPUT = 2_000, 600
_WORD = lazy_regex(r"[A-Za-z_]\w{2,}")

_JAPANESE = "\n- Write the texts of findings and your reply in Japanese."
_LEFT_OUT = (
    "\nNot shown, because they are too large or may hold secrets; read them yourself if you may: {paths}."
)


class AskReview(Frozen):
    """Arguments of agent.review."""

    changes: Annotated[str, Field(max_length=1_000)] = Field(
        default="", description="empty: uncommitted; --staged, a commit, branch, range, or a patch file"
    )


def review_tool(
    team: Team,
    folder: Path,
    share: Callable[[int], Share],
    given: Mapping[str, bytes | None],
    is_small: Callable[[], Awaitable[bool]],
    language: Callable[[], str],
    seconds: float,
) -> Tool[AskReview]:
    """Return the operation that has changes reviewed.

    `given` has the changes that the user asks for, with the content of the patch if they are one.
    """

    async def review(args: AskReview, access: Access) -> ToolResult:
        from duckflow.agents.changes import find_changes, is_patch  # noqa: PLC0415 - only for a review
        from duckflow.agents.proving import read_findings, save_order  # noqa: PLC0415 - as above

        if await is_small():
            raise ToolError("This model is too small to review changes.", "review.small_model")
        if args.changes not in given and not await team.has_copies():
            raise ToolError(
                "Without copies of the folder, only the user can start a review.", "review.by_user"
            )
        patch = given.get(args.changes)
        if patch is None and await asyncio.to_thread(is_patch, folder, args.changes):
            patch = access.workspace.read_bytes(args.changes)
        changes = await asyncio.to_thread(find_changes, folder, args.changes, patch)
        task = task_of(changes, language(), seconds)
        agent, findings = await team.review(
            task,
            share(1),
            changes.reviewed,
            lambda place: save_order(place, changes.base, added_words(changes), seconds),
            read_findings,
        )
        report = ReviewReport(
            changes=changes.name,
            files=len(changes.files),
            added=changes.added,
            removed=changes.removed,
            left_out=tuple(changes.left_out),
            findings=in_order(findings),
            outcome=agent.outcome,
            problem="" if agent.outcome == "done" else agent.problem,
            reply=head_and_tail(agent.reply, _REPLY),
        )
        return ToolResult(text=report_text(report), events=(ReviewFinished(report=report),))

    return Tool(
        operation=REVIEW,
        args=AskReview,
        summary="an agent looks for what changes break, and proves each finding by a command that fails",
        effect="read",
        run=review,
    )


def task_of(changes: "Changes", language: str, seconds: float) -> str:
    """Return the task of the reviewing agent."""
    return fill(
        "reviewing",
        which=f" ({changes.name})" if changes.name else "",
        seconds=str(round(seconds)),
        language=_JAPANESE if language == "ja" else "",
        files=str(len(changes.files)),
        added=str(changes.added),
        removed=str(changes.removed),
        left_out=_LEFT_OUT.format(paths=some_of(changes.left_out)) if changes.left_out else "",
        difference=changes.difference,
    )


def added_words(changes: "Changes") -> tuple[str, ...]:
    """Return the words that only the changes introduce."""
    lines = changes.difference.split("\n")
    new = {word for line in lines if line.startswith("+") for word in _WORD.findall(line)}
    old = {word for line in lines if line.startswith(("-", " ")) for word in _WORD.findall(line)}
    for one in changes.base.values():
        old |= set(_WORD.findall((one.content or b"").decode("utf-8", "replace")))
    return tuple(sorted(new - old))[:_MOST_WORDS]


def report_text(report: ReviewReport) -> str:
    """Return the report for a model."""
    head = (
        f"{len(report.findings)} findings, {report.proven} of them proven, in {report.files} changed files."
    )
    stopped = "" if report.complete else f"The review stopped early ({report.outcome}). {report.problem}"
    return "\n\n".join(
        part for part in (head, stopped, *map(_finding_text, report.findings), report.reply) if part
    )


def _finding_text(one: ReviewFinding) -> str:
    lines = [f"## {one.file}:{one.line} ({one.severity}, {'proven' if one.proven else 'unproven'})", one.text]
    if one.proof is not None:
        lines += [f"$ {one.proof.command}"]
        lines += [f"with {one.proof.test_path}:\n{one.proof.test}"] if one.proof.test else []
        lines += [head_and_tail(one.proof.output, _OUTPUT)]
    return "\n".join(lines)
