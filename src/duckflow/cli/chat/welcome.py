"""The first lines of a session: the findings in its folder, the mode, and a line to try."""

import asyncio
from collections.abc import Sequence

from duckflow.app.app import App
from duckflow.domain.errors import ToolError
from duckflow.domain.modes import Mode
from duckflow.evaluation.project_tests import ProjectTests
from duckflow.i18n.catalogue import text
from duckflow.store.sessions import Sessions

_CODE = (".py", ".ts", ".js", ".go", ".rs", ".java", ".c", ".cpp", ".rb")
_LOOKED_AT = 200


async def welcome(app: App, rules_files: Sequence[str]) -> str:
    """Return a few lines in a new folder, one line in a known folder."""
    known = Sessions(app.log.database).listed(str(app.workspace.root))
    if app.started.resumed or len(known) > 1:
        return text("chat.hint")
    try:
        listing = await asyncio.to_thread(app.workspace.list, ".", depth=1, limit=_LOOKED_AT)
    except ToolError:
        return text("chat.hint")
    names = [entry.path for entry in listing.entries]
    return start_text(
        app.session.state.mode,
        rules=[name for name in rules_files if name in names],
        tests=await asyncio.to_thread(ProjectTests(app.workspace).find),
        sandbox=(await app.shell.sandbox()).level,
        example=next((name for name in names if name.endswith(_CODE)), ""),
    )


def _sandbox_text(sandbox: str) -> str:
    if sandbox == "none":
        return text("start.no_sandbox")
    return text("start.external") if sandbox == "external" else text("start.sandbox", name=sandbox)


def start_text(mode: Mode, rules: Sequence[str], tests: str, sandbox: str, example: str) -> str:
    """Return the lines on rules, tests, sandbox and mode, and a line to try."""
    lines = [
        text("start.rules", files=", ".join(rules)) if rules else text("start.no_rules"),
        text("start.tests", command=tests) if tests else text("start.no_tests"),
        _sandbox_text(sandbox),
        text(f"start.asks.{mode}"),
        text("start.try_file", file=example) if example else text("start.try"),
    ]
    return "\n".join(["", *(f"  {line}" for line in lines), "", text("chat.hint")])
