"""M6: `duckflow acp` as a process, driven by the protocol's own client classes."""

import asyncio
from pathlib import Path

import acp
import pytest
from acp import schema

from duckflow.config.places import config_dir
from duckflow.domain.commands import AnswerShown, hash_of
from duckflow.domain.questions.approval import AnswerApproval
from fakes.editor import Editor, says, served, until
from fakes.engine import action, decision
from fakes.gate import Gate
from fakes.mcp_http import HttpServer
from fakes.second_window import SecondWindow, wait_until

WRITE = decision(
    "I write it.", {**action("write_file", path="a.txt", content="two\n"), "reasoning": "as you asked"}
)
READ = decision("I look.", action("read_file", path="a.txt"))


async def test_an_editor_drives_a_whole_conversation(folder: Path, tmp_path: Path):
    """M6, G1: text, thoughts, a difference that is asked about, modes, commands, cancel."""
    (folder / "a.txt").write_text("one\n")
    editor, gate = Editor("yes", "cancelled", "no"), Gate(tmp_path / "gate")
    thinking = decision("It is there.", rationale="the file says two")
    another = decision("Again.", action("write_file", path="b.txt", content="b\n"))
    plan = decision("All right.", next_step="pending_user")
    answers = (WRITE, thinking, another, gate.hold(decision("never")), another, plan)
    async with served(editor, folder, *answers) as (agent, greeted):
        assert greeted.agent_capabilities.load_session
        session = await agent.new_session(cwd=str(folder))
        assert session.modes.current_mode_id == "ask"
        assert [mode.id for mode in session.modes.available_modes] == ["plan", "ask", "edits", "auto"]
        await until(lambda: editor.of(schema.AvailableCommandsUpdate))
        offered = editor.of(schema.AvailableCommandsUpdate)[0].available_commands
        assert {"status", "undo", "diff"} <= {command.name for command in offered}

        done = await agent.prompt(session_id=session.session_id, prompt=says("Write two into a.txt"))
        assert done.stop_reason == "end_turn"
        assert (folder / "a.txt").read_text() == "two\n"
        assert "I write it." in editor.said
        assert "It is there." in editor.said
        assert any("the file says two" in one.content.text for one in editor.of(schema.AgentThoughtChunk))
        call, options = editor.asked[0]
        assert [option.kind for option in options] == ["allow_once", "allow_always", "reject_once"]
        points, difference = call.content
        for point in ("as you asked", "asking because", "What it does", "Instead, you can"):
            assert point in points.content.text
        assert (difference.path, difference.old_text) == (str(folder / "a.txt"), "one\n")
        assert difference.new_text == "two\n"
        assert [place.path for place in call.locations] == [str(folder / "a.txt")]
        started = next(one for one in editor.of(schema.ToolCallStart) if one.kind == "edit")
        ended = [one for one in editor.of(schema.ToolCallProgress) if one.tool_call_id == call.tool_call_id]
        assert started.tool_call_id == call.tool_call_id
        assert (ended[-1].status, ended[-1].content[0].new_text) == ("completed", "two\n")

        stopped = await agent.prompt(session_id=session.session_id, prompt=says("Write b.txt"))
        assert stopped.stop_reason == "cancelled"
        work = asyncio.ensure_future(
            agent.prompt(session_id=session.session_id, prompt=says("Think forever"))
        )
        await gate.wait_until_asked()
        await agent.cancel(session_id=session.session_id)
        assert (await work).stop_reason == "cancelled"

        await agent.set_session_mode(session_id=session.session_id, mode_id="plan")
        await agent.prompt(session_id=session.session_id, prompt=says("/mode ask"))
        assert [one.current_mode_id for one in editor.of(schema.CurrentModeUpdate)] == ["ask"]
        refused = await agent.prompt(session_id=session.session_id, prompt=says("Write b.txt after all"))
        assert refused.stop_reason == "end_turn"
        assert not (folder / "b.txt").exists()

        editor.updates.clear()
        await agent.prompt(session_id=session.session_id, prompt=says("/undo"))
        assert (folder / "a.txt").read_text() == "one\n"
        assert "a.txt" in editor.said


async def test_C6_a_second_prompt_reaches_the_work_of_the_first(folder: Path, tmp_path: Path):
    editor, gate = Editor(), Gate(tmp_path / "gate")
    async with served(editor, folder, gate.hold(decision("Without.")), decision("With.")) as (agent, _):
        session = (await agent.new_session(cwd=str(folder))).session_id
        first = asyncio.ensure_future(agent.prompt(session_id=session, prompt=says("Do it")))
        await gate.wait_until_asked()
        second = asyncio.ensure_future(agent.prompt(session_id=session, prompt=says("with this")))
        await asyncio.ensure_future(agent.set_session_mode(session_id=session, mode_id="edits"))
        gate.open()
        assert (await first).stop_reason == (await second).stop_reason == "end_turn"
        assert "With." in editor.said


async def test_C6_a_second_prompt_answers_the_question_of_the_first(folder: Path):
    editor = Editor()
    editor.when_asked = asyncio.Event().wait
    async with served(editor, folder, WRITE, decision("Written.")) as (agent, _):
        session = (await agent.new_session(cwd=str(folder))).session_id
        first = asyncio.ensure_future(agent.prompt(session_id=session, prompt=says("Write two into a.txt")))
        await until(lambda: editor.asked)
        second = asyncio.ensure_future(agent.prompt(session_id=session, prompt=says("yes")))
        assert (await first).stop_reason == (await second).stop_reason == "end_turn"
        assert (folder / "a.txt").read_text() == "two\n"


def answer_in_another_window() -> tuple[str, str]:
    """Say yes to the open question twice; what became of either."""
    window = SecondWindow()
    try:
        asked = wait_until(lambda: window.state.approval)
        yes = AnswerShown(question_hash=hash_of(asked), answer=AnswerApproval(yes=True))
        return window.send(yes), window.send(yes)
    finally:
        window.close()


async def test_an_answer_in_another_window_counts_while_the_editor_asks(folder: Path):
    """M6, M7: the first answer counts; the editor's dialog is not waited for."""
    editor = Editor()
    editor.when_asked = asyncio.Event().wait
    async with served(editor, folder, WRITE, decision("It is there.")) as (agent, _):
        session = await agent.new_session(cwd=str(folder))
        work = asyncio.ensure_future(
            agent.prompt(session_id=session.session_id, prompt=says("Write two into a.txt"))
        )
        await until(lambda: editor.asked)
        first, second = await asyncio.to_thread(answer_in_another_window)
        assert (first, second) == ("", "clients.stale")
        assert (await work).stop_reason == "end_turn"
        assert (folder / "a.txt").read_text() == "two\n"


async def test_a_session_is_listed_and_loaded_with_all_that_happened(folder: Path):
    """M6, L1: in another process; its open question is answered in words."""
    editor = Editor("cancelled")
    async with served(editor, folder, WRITE) as (agent, _):
        session = (await agent.new_session(cwd=str(folder))).session_id
        await agent.prompt(session_id=session, prompt=says("Write a.txt"))
    again = Editor()
    async with served(again, folder, decision("It is there.")) as (agent, _):
        listed = (await agent.list_sessions(cwd=str(folder))).sessions
        assert [(one.session_id, one.cwd) for one in listed] == [(session, str(folder))]
        await agent.load_session(cwd=str(folder), session_id=session)
        assert [one.content.text for one in again.of(schema.UserMessageChunk)] == ["Write a.txt"]
        assert "I write it." in again.said
        assert "Write a.txt?" in again.said
        assert "+two" in again.said
        await agent.prompt(session_id=session, prompt=says("yes"))
        assert (folder / "a.txt").read_text() == "two\n"
        # Another session in the same folder is opened; this one is put aside, and opened again when wanted.
        await agent.new_session(cwd=str(folder))
        await agent.prompt(session_id=session, prompt=says("/diff session"))
        assert "+two" in again.said
        with pytest.raises(acp.RequestError, match="no session"):
            await agent.load_session(cwd=str(folder), session_id="none")


async def test_what_the_editor_has_not_saved_is_read_and_not_written_over(folder: Path):
    """M6: files through the editor's buffers, where it offers them."""
    (folder / "a.txt").write_text("one\n")
    editor = Editor()
    editor.buffers[str(folder / "a.txt")] = "typed\n"
    answers = (READ, WRITE, decision("Please save a.txt.", next_step="pending_user"))
    async with served(editor, folder, *answers, reads=True, mode="edits") as (agent, _):
        session = (await agent.new_session(cwd=str(folder))).session_id
        await agent.prompt(session_id=session, prompt=says("Write two into a.txt"))
    results = [one.raw_output for one in editor.of(schema.ToolCallProgress) if one.raw_output]
    assert "typed" in results[0]
    assert "not saved" in results[0]
    assert "unsaved changes" in results[1]
    assert (folder / "a.txt").read_text() == "one\n"


async def test_servers_and_commands_of_ones_own_are_there_in_the_editor(folder: Path):
    """M6, L4, L6: MCP servers of the editor's, asked about as any other; what can't be used is told."""
    review = config_dir() / "commands" / "review.md"
    review.parent.mkdir(parents=True)
    review.write_text("---\ndescription: Look at a file\n---\nRead $1.\n")
    editor = Editor("yes")
    call = {"operation": "mcp.notes.echo", "args": {"word": "hi"}}
    answers = (decision("", call), decision("It says hi."), decision("Nice."), decision("Read."))
    with HttpServer(tools={"echo": "Says it again."}, prompts={"visit": "Plan a visit to {city}."}) as server:
        header = schema.HttpHeader(name="X-Key", value="k")
        servers = [
            schema.HttpMcpServer(type="http", name="Notes", url=server.url, headers=[header]),
            schema.AcpMcpServer(type="acp", name="inside", server_id="1"),
            schema.McpServerStdio(
                name="greedy", command="x", args=[], env=[schema.EnvVariable(name="A", value="${HOME}")]
            ),
        ]
        async with served(editor, folder, *answers) as (agent, greeted):
            assert greeted.agent_capabilities.mcp_capabilities.http
            session = (await agent.new_session(cwd=str(folder), mcp_servers=servers)).session_id
            await until(lambda: len(editor.of(schema.AvailableCommandsUpdate)) == 2)
            offered = editor.of(schema.AvailableCommandsUpdate)[1].available_commands
            assert {"review", "mcp.notes.visit"} <= {one.name for one in offered}
            told = "".join(one.content.text for one in editor.of(schema.AgentThoughtChunk))
            assert "Left out inside" in told
            assert "Left out greedy" in told
            await agent.prompt(session_id=session, prompt=says("say hi"))
            asked, _ = editor.asked[0]
            assert asked.raw_input == {"word": "hi"}
            assert "notes" in asked.content[0].content.text
            assert 'echo {"word": "hi"}' in str(editor.of(schema.ToolCallProgress)[-1].raw_output)
            assert server.headers[-1]["x-key"] == "k"
            await agent.prompt(session_id=session, prompt=says("/mcp.notes.visit Rome"))
            await agent.prompt(session_id=session, prompt=says("/review a.py"))
            await agent.load_session(cwd=str(folder), session_id=session, mcp_servers=[])
            said = [one.content.text for one in editor.of(schema.UserMessageChunk)]
            assert [one.strip() for one in said] == ["say hi", "Plan a visit to Rome.", "Read a.py."]
