"""Drives `duckflow acp` with the official TypeScript client and acpx, both from npm, and with the Python SDK.

    python bench/acp_clients.py [--npm FOLDER] [--node PROGRAM]

Needs npm, and Node.js 22 for acpx. The model is a server on this machine that plays a fixed conversation. The
schemas of the TypeScript client validate every message. The model is switched by an option, a picture is
sent, a turn is cancelled, and the session is loaded, listed and deleted.
"""

import argparse
import asyncio
import base64
import io
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import acp
from acp import schema

from fakes.editor import Editor, delete, says
from fakes.engine import action, decision
from fakes.model_server import ModelServer
from fakes.plays import asked_for, play

PACKAGES = ("@agentclientprotocol/sdk@2.4.0", "acpx@0.19.1")
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
DUCKFLOW = (sys.executable, "-m", "duckflow", "acp", "--model", "openai:gpt-4o", "--mode", "ask")


def main() -> None:
    """Install the clients, run them, and print what they found. Exit with code 1 if something was wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--npm", type=Path, help="a folder where the packages are or will be installed")
    parser.add_argument("--node", default="node", help="the program for acpx, of version 22 or later")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        base = Path(made).resolve()
        npm = (given.npm or base / "npm").resolve()
        if not (npm / "node_modules").exists():
            npm.mkdir(parents=True, exist_ok=True)
            words = ("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *PACKAGES)
            subprocess.run(words, cwd=npm, check=True, stdout=subprocess.DEVNULL)
        failed = typescript(base / "typescript", npm) + acpx(base / "acpx", npm, given.node)
        failed += asyncio.run(python(base / "python"))
    sys.exit(1 if failed else 0)


def environment(base: Path, server: ModelServer) -> dict[str, str]:
    """Return an environment with separate folders and a model on this machine."""
    places = {f"DUCKFLOW_{part}_DIR": str(base / part.lower()) for part in ("STATE", "CACHE", "CONFIG")}
    server.pages["/v1/models"] = {"data": [{"id": "gpt-4o"}, {"id": "gpt-5-mini"}]}
    model = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k", "HOME": str(base / "home")}
    return {**os.environ, **places, **model, "DUCKFLOW_LANGUAGE": "en"}


def workspace(base: Path) -> Path:
    """Make a folder with a picture."""
    folder = base / "project"
    folder.mkdir(parents=True)
    (base / "home").mkdir()
    (folder / "picture.png").write_bytes(base64.b64decode(PNG))
    return folder


def answers() -> list[Any]:
    """Return what the model says to the TypeScript client."""
    write = decision("", action("write_file", path="hello.py", content="print('hello')\n"))
    wait = decision("Waiting.", {"operation": "shell.run", "args": {"command": "sleep 60"}})
    return [write, decision("Written."), decision("A picture."), wait]


def typescript(base: Path, npm: Path) -> bool:
    """Run the official TypeScript client; return True if something was wrong."""
    folder = workspace(base)
    with ModelServer(play(*answers())) as server:
        program = str(Path(__file__).with_name("acp_client.mjs"))
        sdk = str(npm / "node_modules/@agentclientprotocol/sdk")
        done = subprocess.run(
            ["node", program, sdk, str(folder), *DUCKFLOW],
            env=environment(base, server),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        models = [one.body["model"] for one in server.requests if asked_for(one.body) == "Decision"]
        pictures = sum("data:image/png" in json.dumps(one.body) for one in server.requests)
    print("TypeScript client:", done.stdout.strip() or done.stderr.strip()[-2_000:])
    print(f"  the model was asked as {dict.fromkeys(models)}, {pictures} prompts had a picture")
    return done.returncode != 0 or len(set(models)) != 2 or not pictures


def acpx(base: Path, npm: Path, node: str) -> bool:
    """Run acpx; return True if something was wrong."""
    folder = workspace(base)
    write = decision("", action("write_file", path="hello.py", content="print('hello')\n"))
    with ModelServer(play(write, decision("Written."), decision("Again."))) as server:
        program = [node, str(npm / "node_modules/acpx/dist/cli.js"), "--cwd", str(folder), "--approve-all"]
        program += ["--agent", " ".join(DUCKFLOW), "--ttl", "1"]

        def run(*words: str) -> "subprocess.CompletedProcess[str]":
            env = environment(base, server)
            time.sleep(5)  # until the agent of the last command has ended, which acpx would still ask
            began = time.monotonic()
            done = subprocess.run(
                [*program, *words], env=env, capture_output=True, text=True, timeout=300, check=False
            )
            shown = " ".join(words)
            print(f"acpx {shown}: exit code {done.returncode}, {time.monotonic() - began:.1f} s")
            return done

        new = run("sessions", "new")
        first = run("prompt", "Write hello.py")
        chosen = run("set", "model", "openai:gpt-5-mini")
        second = run("prompt", "Again")
        models = [one.body["model"] for one in server.requests if asked_for(one.body) == "Decision"]
    written = (folder / "hello.py").exists()
    good = all(one.returncode == 0 for one in (new, first, chosen, second)) and written
    good &= "Written." in first.stdout and "Again." in second.stdout and models[-1] == "gpt-5-mini"
    if not good:
        for one in (new, first, chosen, second):
            print(one.stdout[-1_500:], one.stderr[-1_500:])
    print(f"  hello.py was written: {written}; the model was asked as {models}")
    return not good


async def python(base: Path) -> bool:
    """Run the client of the Python SDK, which validates each answer; return True if something was wrong."""
    folder, editor, wrong = workspace(base), Editor("yes"), list[str]()
    logged = io.StringIO()
    logging.getLogger().addHandler(logging.StreamHandler(logged))  # the SDK logs messages that do not fit
    with ModelServer(play(*answers()[:3])) as server:
        program, *words = DUCKFLOW
        around = environment(base, server)
        async with acp.spawn_agent_process(editor, program, *words, env=around, cwd=folder) as (agent, _):
            await agent.initialize(acp.PROTOCOL_VERSION, client_capabilities=schema.ClientCapabilities())
            session = await agent.new_session(str(folder), mcp_servers=[])
            model = next(one for one in session.config_options or () if one.category == "model")
            other = next(one.value for one in model.options if "gpt-5-mini" in one.value)
            first = await agent.prompt(session.session_id, says("Write hello.py"))
            await agent.set_config_option(model.id, session.session_id, other)
            picture = acp.image_block(PNG, "image/png")
            second = await agent.prompt(session.session_id, [*says("What is this?"), picture])
            wrong += [
                f"stop reason {one.stop_reason}" for one in (first, second) if one.stop_reason != "end_turn"
            ]
            await delete(agent, session.session_id)
        models = [one.body["model"] for one in server.requests if asked_for(one.body) == "Decision"]
        pictures = sum("data:image/png" in json.dumps(one.body) for one in server.requests)
    if not (folder / "hello.py").exists() or len(set(models)) != 2 or not pictures or not editor.asked:
        wrong.append("a file, a permission, a model or a picture is missing")
    wrong += logged.getvalue().splitlines()
    kinds = sorted({type(one).__name__ for one in editor.updates})
    print(f"Python SDK: {len(editor.updates)} updates ({', '.join(kinds)}); wrong: {wrong}")
    print(f"  the model was asked as {models}, {pictures} prompts had a picture")
    return bool(wrong)


if __name__ == "__main__":
    main()
