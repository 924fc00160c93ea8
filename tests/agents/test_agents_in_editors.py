"""Agents at work, as an editor shows them (O3, M6)."""

from pathlib import Path

from acp import schema

from fakes.agents_at_work import agents, casting, environment, writes
from fakes.editor import Editor, says, served
from fakes.engine import decision
from fakes.model_server import ModelServer
from fakes.plays import play


async def test_O3_the_call_shows_what_each_agent_is_doing(folder: Path):
    tasks = [{"task": "PARTA", "name": "first"}, {"task": "PARTB", "name": "second"}]
    lead = play(decision("Two agents.", agents("work", tasks=tasks)), decision("Both are there."))
    parts = {"PARTA": writes("a.txt", "a\n"), "PARTB": writes("b.txt", "b\n")}
    editor = Editor()
    with ModelServer(casting(lead, parts)) as server:
        own = environment(server)
        async with served(editor, folder, model="openai:any", mode="auto", env=own) as (agent, _):
            session = (await agent.new_session(cwd=str(folder))).session_id
            await agent.prompt(session_id=session, prompt=says("Write both"))
    contents = [part for one in editor.of(schema.ToolCallProgress) for part in one.content or ()]
    shown = [part.content.text for part in contents if part.type == "content"]
    assert any("first" in text and "second" in text for text in shown)
    assert any("a.txt" in text or "b.txt" in text for text in shown)
    assert (folder / "b.txt").exists()
