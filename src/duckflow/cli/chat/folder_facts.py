"""What there is to find in a folder at the start: rules, tests, a file worth asking about."""

import asyncio

from duckflow.app.app import App
from duckflow.domain.errors import ToolError
from duckflow.evaluation.project_tests import ProjectTests
from duckflow.store.sessions import Sessions
from duckflow.ui.views.welcome import FolderFacts

_CODE = (".py", ".ts", ".js", ".go", ".rs", ".java", ".c", ".cpp", ".rb")
_MOST = 200
_RULES = ("AGENTS.md", "DUCKFLOW.md")


async def find_out(app: App) -> FolderFacts:
    """Look once; the sandbox is tried if the user is told of it."""
    try:
        listing = await asyncio.to_thread(app.workspace.list, ".", depth=1, limit=_MOST)
    except ToolError:
        return FolderFacts()
    names = [entry.path for entry in listing.entries]
    tests = await asyncio.to_thread(ProjectTests(app.workspace).find)
    first_time = not Sessions(app.log.database).listed(str(app.workspace.root))
    return FolderFacts(
        first_time=first_time,
        sandbox=(await app.shell.sandbox()).level if first_time else None,
        rules=tuple(name for name in _RULES if name in names),
        tests=tests,
        example=next((name for name in names if name.endswith(_CODE)), ""),
    )
