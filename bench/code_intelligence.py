"""Measures code intelligence in a folder: a language server's start, its answers once warm, its memory, and
the time until an edit's findings are there.

    python bench/code_intelligence.py FOLDER FILE NAME [NAME …]

FOLDER is copied; FILE, relative to it, defines the first NAME as a function `def NAME(…)`. Needs a language
server for its files on the PATH. Each question is asked as the model asks it: the name is searched in the
folder, and the server sees all changes first. Bound: 300 ms for a warm answer. Behind it, the part of it that
the server itself took, and the time that Duckflow's process computed: on a busy machine only these compare.
"""

import asyncio
import hashlib
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from duckflow.config.settings import CodeSettings, ShellSettings
from duckflow.domain.files.changes import change_of
from duckflow.safety.files.workspace import Workspace
from duckflow.tools.code import servers as server_module
from duckflow.tools.code.arguments import FindName
from duckflow.tools.code.findings import NewFindings
from duckflow.tools.code.questions import CodeQuestions
from duckflow.tools.code.rows import FoundServer, find_servers
from duckflow.tools.code.servers import CodeServers
from duckflow.tools.code.wire import LspConnection
from duckflow.tools.searching.ripgrep import find_ripgrep

BOUND_MS, ROUNDS = 300, 7


class TimedConnection(LspConnection):
    """Adds up the time that servers take for their answers."""

    spent_ms = 0.0

    async def request(self, method: str, params: object, seconds: float) -> object:
        begun = time.perf_counter()
        try:
            return await super().request(method, params, seconds)
        finally:
            TimedConnection.spent_ms += (time.perf_counter() - begun) * 1000


async def timed(ask: Callable[[], Awaitable[object]]) -> tuple[float, object]:
    begun = time.perf_counter()
    answer = await ask()
    return (time.perf_counter() - begun) * 1000, answer


def memory_mb(found: FoundServer) -> float:
    """Return the memory of the processes that run what is installed with a server."""
    place, total = str(Path(os.path.realpath(found.program)).parents[1]), 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if place in (folder / "cmdline").read_text("utf-8", "replace"):
                rows = (folder / "smaps_rollup").read_text("ascii").splitlines()
                total += sum(int(row.split()[1]) for row in rows if row.startswith("Pss:"))
        except OSError:
            continue
    return total / 1000


async def measure(folder: Path, file: str, names: list[str]) -> None:
    server_module.LspConnection = TimedConnection
    workspace = Workspace(folder)
    found = find_servers(CodeSettings(), workspace.root, os.environ)
    servers = CodeServers(workspace, found, 600.0, ShellSettings(), (), os.environ)
    ask = CodeQuestions(servers, find_ripgrep(workspace.root))
    server = servers.for_path(file)
    assert server is not None, f"no language server for {file} is installed"
    print(f"server: {server.name}")

    async def definition(name: str) -> object:
        return await ask.definition(FindName(symbol=name), None)

    async def references(name: str) -> object:
        return await ask.references(FindName(symbol=name, path=file if name == names[0] else None), None)

    cold, _ = await timed(lambda: definition(names[0]))
    print(f"start to first definition        {cold:8.0f} ms")
    first, _ = await timed(lambda: references(names[0]))
    print(f"first references                 {first:8.0f} ms")
    for kind, question in (("definition", definition), ("references", references)):
        for name in names:
            await question(name)
            rows: list[tuple[float, float, float]] = []
            for _ in range(ROUNDS):
                before, computed = TimedConnection.spent_ms, time.process_time()
                whole, _ = await timed(lambda: question(name))  # noqa: B023
                own = (time.process_time() - computed) * 1000
                rows.append((whole, TimedConnection.spent_ms - before, own))
            whole, server_ms, own = (statistics.median(column) for column in zip(*rows, strict=True))
            parts = f"the server {server_ms:.0f} ms, computed here {own:.0f} ms"
            print(f"{kind:11} {name:20} {whole:8.0f} ms (bound {BOUND_MS}): {parts}")
    print(f"memory of the server             {memory_mb(found[0]):8.0f} MB")
    await edit(folder, file, names[0], servers)
    await servers.aclose()


async def edit(folder: Path, file: str, name: str, servers: CodeServers) -> None:
    """Add a parameter to a function, and measure how long the edit waits and when the findings are there."""
    old = (folder / file).read_bytes()
    new = old.replace(f"def {name}(".encode(), f"def {name}(added_parameter, ".encode(), 1)
    (folder / file).write_bytes(new)
    findings = NewFindings(servers, {hashlib.sha256(old).hexdigest(): old}.get)
    digests = [hashlib.sha256(data).hexdigest() for data in (old, new)]
    change = change_of(file, (digests[0], 0o644), (digests[1], 0o644))
    waited, said = await timed(lambda: findings.after([change]))
    print(f"an edit waits                    {waited:8.0f} ms")
    begun = time.perf_counter()
    left = await findings.left()
    more = (time.perf_counter() - begun) * 1000 + waited
    print(f"until all findings are there     {more:8.0f} ms: {len(left)} files with new errors")
    print(f"told with the edit: {str(said).count(chr(10))} findings")
    await findings.aclose()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="duckflow-bench-") as place:
        copy = Path(place, "folder")
        shutil.copytree(sys.argv[1], copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        asyncio.run(measure(copy, sys.argv[2], sys.argv[3:]))
