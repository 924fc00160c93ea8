"""Code intelligence of a session, as its other parts see it. Loads nothing before a name is asked about."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckflow.config.settings import Settings
from duckflow.domain.files.changes import FileChange
from duckflow.domain.frozen import Frozen
from duckflow.domain.work.checks import CheckResult
from duckflow.safety.files.access import Access
from duckflow.safety.files.listing import SKIPPED
from duckflow.safety.files.workspace import Workspace
from duckflow.tools.catalogue import Proposal, Tool, ToolResult
from duckflow.tools.code.arguments import APPLY, ApplyRename, CheckFile, FindName, Rename
from duckflow.tools.code.rows import find_servers, suffix_of, suffixes_of

if TYPE_CHECKING:
    from duckflow.tools.code.findings import NewFindings
    from duckflow.tools.code.questions import CodeQuestions
    from duckflow.tools.code.servers import CodeServers

_LOOKS = ((2, 300), (5, 600))
"""Depths and numbers of files of two looks for code. The first is enough for most projects, and quick."""


class CodeIntelligence:
    """The tools for code, and the findings that come with edits. `content` returns kept contents of files."""

    def __init__(
        self,
        workspace: Workspace,
        settings: Settings,
        closed: Sequence[Path],
        env: Mapping[str, str],
        content: Callable[[str], bytes | None],
        ripgrep: Path | None,
    ) -> None:
        self._workspace = workspace
        self._settings = settings
        self._closed = closed
        self._env = env
        self._content = content
        self._ripgrep = ripgrep
        self._found = find_servers(settings.code, workspace.root, env)
        self._suffixes = suffixes_of(self._found)
        self._servers: CodeServers | None = None
        self._questions: CodeQuestions | None = None
        self._findings: NewFindings | None = None
        self._request = ""

    def tools(self) -> tuple[Tool[Any], ...]:
        """Return the tools. No prompt lists them if there is no server for the files of the folder."""
        if not self._settings.code.enabled:
            return ()
        hidden = not self._has_files()
        rows: tuple[tuple[str, type[Frozen], str], ...] = (
            ("definition", FindName, "where symbol is defined, with its code"),
            ("references", FindName, "all uses of symbol"),
            ("rename", Rename, "rename symbol everywhere"),
            ("diagnostics", CheckFile, "errors that the language server finds in path"),
        )
        return (
            *(self._tool(name, args, summary, hidden=hidden) for name, args, summary in rows),
            Tool(
                operation=APPLY,
                args=ApplyRename,
                summary="make a rename real",
                effect="write",
                run=_apply,
                propose=_propose,
                targets=lambda args: tuple(path for one in args.files for path in (one.path, one.to) if path),
                by_program=True,
            ),
        )

    def begin_request(self, request_id: str) -> None:
        """Count findings from here on as new."""
        self._request = request_id
        if self._findings is not None:
            self._findings.begin_request(request_id)

    async def after(self, changes: Sequence[FileChange]) -> str:
        """Take note of changes. Return new findings for the model, of these changes or of earlier ones."""
        if self._findings is None and any(suffix_of(one.path) in self._suffixes for one in changes):
            self._findings = await asyncio.to_thread(self._new_findings)
            self._findings.begin_request(self._request)
        return await self._findings.after(changes) if self._findings is not None else ""

    async def left(self) -> tuple[CheckResult, ...]:
        """Return the new errors that are still there, as checks that failed."""
        return await self._findings.left() if self._findings is not None else ()

    async def aclose(self) -> None:
        """Stop all servers."""
        if self._findings is not None:
            await self._findings.aclose()
        if self._servers is not None:
            await self._servers.aclose()

    def _has_files(self) -> bool:
        """Return whether the first levels of the folder have a file for which there is a server."""
        if not self._suffixes:
            return False
        looks = (self._workspace.list(".", depth=depth, limit=limit, skip=SKIPPED) for depth, limit in _LOOKS)
        return any(
            one.kind == "file" and suffix_of(one.path) in self._suffixes
            for look in looks
            for one in look.entries
        )

    def _tool(self, name: str, args: type[Frozen], summary: str, *, hidden: bool) -> Tool[Any]:
        async def run(given: Any, access: Access) -> ToolResult:  # noqa: ANN401 - one of the arguments above
            questions = await asyncio.to_thread(self._opened)
            ask: Any = getattr(questions, name)
            return await ask(given, access)

        return Tool(
            operation=f"code.{name}",
            args=args,
            summary=summary,
            effect="read",
            run=run,
            targets=_files,
            hidden=hidden,
        )

    def _opened(self) -> "CodeQuestions":
        from duckflow.tools.code.questions import CodeQuestions  # noqa: PLC0415 - only when it is needed

        if self._questions is None:
            self._questions = CodeQuestions(self._open_servers(), self._ripgrep)
        return self._questions

    def _new_findings(self) -> "NewFindings":
        from duckflow.tools.code.findings import NewFindings  # noqa: PLC0415 - only when it is needed

        return NewFindings(self._open_servers(), self._content)

    def _open_servers(self) -> "CodeServers":
        from duckflow.tools.code.servers import CodeServers  # noqa: PLC0415 - only when it is needed

        if self._servers is None:
            settings = self._settings
            place = (self._workspace, self._found, settings.code.idle_s, settings.shell)
            self._servers = CodeServers(*place, self._closed, self._env)
        return self._servers


def _files(args: Any) -> tuple[str, ...]:  # noqa: ANN401 - the arguments of any of the tools
    path = str(args.path or "")
    return (path.partition(":")[0],) if path else ()


async def _propose(args: ApplyRename, workspace: Workspace) -> Proposal:
    from duckflow.tools.code.renaming import propose_rename  # noqa: PLC0415 - only when it is needed

    return await asyncio.to_thread(propose_rename, args, workspace)


async def _apply(args: ApplyRename, access: Access) -> ToolResult:
    from duckflow.safety.uncancelled import run_in_thread  # noqa: PLC0415 - only when it is needed
    from duckflow.tools.code.renaming import apply_rename  # noqa: PLC0415 - as above

    return await run_in_thread(apply_rename, args, access)
