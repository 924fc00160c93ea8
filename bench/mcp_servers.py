"""Uses real MCP servers in a conversation: three from PyPI and one from npm, one of which is killed
meanwhile.

    python bench/mcp_servers.py [FOLDER]

Installs the servers in FOLDER (by default a temporary one; needs pip and npm), lets a scripted model call a
tool of each through the gate, kills one server and calls it again, and prints a line for each call.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from duckflow.app.app import App
from duckflow.app.opening import Opening
from duckflow.config.loading import LoadedSettings
from duckflow.config.settings import Settings
from duckflow.domain.events import ActionFinished, StoredEvent
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.llm.default_model import ModelChoice

PYTHON = ("mcp-server-time", "mcp-server-git", "mcp-server-fetch")
NODE = "@modelcontextprotocol/server-everything"


def install(folder: Path) -> None:
    if not (folder / "v/bin" / PYTHON[-1]).exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "v"], check=True)
        subprocess.run([folder / "v/bin/pip", "install", "-q", *PYTHON], check=True)
    if not (folder / "node_modules" / NODE).exists():
        subprocess.run(
            ["npm", "install", "--silent", "--no-audit", "--no-fund", NODE], cwd=folder, check=True
        )


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"<html><body><article><h1>Ducks</h1><p>Ducks swim on loopback.</p></article></body></html>"
        self.send_response(200 if self.path == "/" else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


def servers(folder: Path) -> dict[str, dict[str, object]]:
    programs = folder / "v/bin"
    script = folder / "node_modules" / NODE / "dist/index.js"
    return {
        "time": {"command": [str(programs / "mcp-server-time"), "--local-timezone", "UTC"]},
        "git": {"command": [str(programs / "mcp-server-git")]},
        "fetch": {
            "command": [str(programs / "mcp-server-fetch"), "--ignore-robots-txt", "--allow-private-ips"],
            "network": True,
        },
        "everything": {"command": ["node", str(script), "stdio"], "read": [str(folder / "node_modules")]},
    }


def kill(word: str) -> int:
    """Kill the processes whose program or first argument is this word, and return their number."""
    ended = 0
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().decode(errors="replace") if entry.name.isdigit() else ""
        except OSError:
            continue
        if word in line.split("\0")[1:2] or word == line.split("\0")[0]:
            os.kill(int(entry.name), signal.SIGKILL)
            ended += 1
    return ended


async def converse(folder: Path, workspace: Path, address: str) -> None:
    zone = {"timezone": "Asia/Tokyo"}
    calls = [
        ("mcp.describe", {"tool": "time.get_current_time"}),
        ("mcp.time.get_current_time", zone),
        ("mcp.git.git_log", {"repo_path": str(workspace), "max_count": 1}),
        ("mcp.fetch.fetch", {"url": address, "raw": True}),
        ("mcp.everything.echo", {"message": "quack"}),
        ("mcp.time.get_current_time", zone),
    ]
    script = folder / "script.jsonl"
    made = [{"next_step": "continue", "actions": [{"operation": one, "args": args}]} for one, args in calls]
    made.append({"next_step": "done", "reply": "All called."})
    script.write_text(
        "".join(json.dumps({"for": "Decision", "text": json.dumps(one)}) + "\n" for one in made)
    )
    name = f"scripted:{script}"
    settings = Settings.model_validate({"llm": {"model": name}, "mcp": {"servers": servers(folder)}})
    choice = ModelChoice(name=name, reason_key="llm.chosen_by_setting")
    app = App(Opening(LoadedSettings(settings=settings, sources={}), workspace), choice, os.environ)
    begun = time.monotonic()

    def show(what: object) -> None:
        nonlocal begun
        if isinstance(what, StoredEvent) and isinstance(what.event, ActionFinished):
            end = what.event
            said = " ".join(end.text.split())[-100:]
            print(f"{time.monotonic() - begun:6.2f} s  {end.outcome:6} {end.operation:28} {said}", flush=True)
            begun = time.monotonic()

    app.session.subscribe(show)
    try:
        app.begin()
        await app.mcp.ready()
        for one in app.mcp.reports():
            print(
                f"{one.name}: {one.status}, protocol {one.version}, {len(one.tools)} tools {one.problem}",
                flush=True,
            )
        begun = time.monotonic()
        await app.chat.say("call them all")
        asked = 0
        while app.session.state.approval is not None:
            asked += 1
            if asked == len(calls) - 1:
                print("killed:", kill(str(folder / "v/bin/mcp-server-time")), "processes of time", flush=True)
                while app.mcp.connections["time"].status == "ready":  # noqa: ASYNC110 - no event
                    await asyncio.sleep(0.05)
            await app.chat.answer(AnswerApproval(yes=True))
        print("questions asked:", asked)
    finally:
        await app.aclose()


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="mcp-servers-")).resolve()
    install(folder)
    with tempfile.TemporaryDirectory() as place, ThreadingHTTPServer(("127.0.0.1", 0), Site) as site:
        for part in ("STATE", "CONFIG", "CACHE"):
            os.environ[f"DUCKFLOW_{part}_DIR"] = f"{place}/{part}"
        workspace = Path(place, "project")
        workspace.mkdir()
        git = ["git", "-C", str(workspace), "-c", "user.name=d", "-c", "user.email=d@d"]
        subprocess.run([*git, "init", "-q"], check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "the first duck"], check=True)
        threading.Thread(target=site.serve_forever, daemon=True).start()
        asyncio.run(converse(folder, workspace, f"http://127.0.0.1:{site.server_address[1]}/"))
        site.shutdown()


if __name__ == "__main__":
    main()
