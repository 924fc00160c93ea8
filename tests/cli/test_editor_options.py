"""M6: options, pictures, usage, stop reasons and sessions in an editor."""

import asyncio
import base64
from pathlib import Path
from typing import Any

import acp
import pytest
from acp import schema

from duckflow.cli.editors.message import read_message
from duckflow.cli.editors.outcomes import stop_after_error, stop_at_question, usage_update
from duckflow.domain.errors import UsageError
from duckflow.domain.frozen import replace
from duckflow.domain.model import Usage
from duckflow.domain.questions.consultation import ConsultationKind
from duckflow.domain.state import Request, TierUsage, new_state
from duckflow.loops.judging.consultation import consult
from fakes.editor import Editor, delete, says, served, until
from fakes.engine import decision
from fakes.gate import Gate
from fakes.model_server import Answer, Fault, ModelServer
from fakes.plays import asked_for, play
from fakes.rows import every_row

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
SEEING = "openai:gpt-4o"
EMBEDDED = "embedded:qwen2.5-coder-1.5b"


def picture(data: bytes = PNG) -> Any:
    return acp.image_block(base64.b64encode(data).decode(), "image/png")


def environment(server: ModelServer) -> dict[str, str]:
    return {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}


def values(options: list[Any]) -> dict[str, str]:
    return {option.id: option.current_value for option in options}


async def test_model_mode_and_effort_are_options(folder: Path):
    """M6: in the order of their importance; a wrong value is refused with the right ones."""
    editor = Editor()
    with ModelServer(play(decision("Hello."), decision("Again."))) as server:
        server.pages["/v1/models"] = {"data": [{"id": "gpt-4o"}, {"id": "gpt-5-mini"}]}
        async with served(editor, folder, model=SEEING, env=environment(server)) as (agent, _):
            session = await agent.new_session(cwd=str(folder))
            assert [(one.id, one.category) for one in session.config_options] == [
                ("model", "model"),
                ("mode", "mode"),
                ("effort", "thought_level"),
            ]
            models, modes, efforts = session.config_options
            assert [one.value for one in models.options] == [SEEING, "openai:gpt-5-mini", EMBEDDED]
            assert [one.value for one in modes.options] == ["plan", "ask", "edits", "auto"]
            assert [one.value for one in efforts.options] == ["auto", "low", "medium", "high"]
            assert values(session.config_options) == {"model": SEEING, "mode": "ask", "effort": "auto"}
            await agent.prompt(session_id=session.session_id, prompt=says("Hi"))
            chosen = {"model": "openai:gpt-5-mini", "mode": "edits", "effort": "high"}
            for option, value in chosen.items():
                changed = await agent.set_config_option(option, session.session_id, value)
            assert values(changed.config_options) == chosen
            await agent.prompt(session_id=session.session_id, prompt=says("Hi"))
            asked = [one.body["model"] for one in server.requests if asked_for(one.body) == "Decision"]
            assert asked == ["gpt-4o", "gpt-5-mini"]
            for option, value, said in (
                ("mode", "yolo", "plan, ask, edits, auto"),
                ("effort", "most", "auto, low, medium, high"),
                ("model", "opnai:x", "openai"),
                ("taste", "x", "model, mode, effort"),
            ):
                with pytest.raises(acp.RequestError, match=said):
                    await agent.set_config_option(option, session.session_id, value)
        async with served(Editor(), folder, model=SEEING, env=environment(server)) as (agent, _):
            resumed = await agent.resume_session(session.session_id, cwd=str(folder))
            assert values(resumed.config_options)["model"] == "openai:gpt-5-mini"


async def test_the_editor_learns_of_options_changed_elsewhere(folder: Path):
    """M6: by a command, and by the mode that older editors set."""
    editor = Editor()
    async with served(editor, folder) as (agent, _):
        session = (await agent.new_session(cwd=str(folder))).session_id
        await agent.prompt(session_id=session, prompt=says("/effort low"))
        await agent.set_session_mode(session_id=session, mode_id="plan")
        await agent.prompt(session_id=session, prompt=says("/mode auto"))
    told = [values(one.config_options) for one in editor.of(schema.ConfigOptionUpdate)]
    assert [(one["mode"], one["effort"]) for one in told] == [
        ("ask", "low"),
        ("plan", "low"),
        ("auto", "low"),
    ]
    assert [one.current_mode_id for one in editor.of(schema.CurrentModeUpdate)] == ["auto"]


async def test_a_model_chosen_during_work_is_used_after_it(folder: Path, tmp_path: Path):
    """M6: the answer comes at once; the change, or the reason against it, follows after the work."""
    gate, editor = Gate(tmp_path / "gate"), Editor()
    async with served(editor, folder, gate.hold(decision("Done."))) as (agent, _):
        opened = await agent.new_session(cwd=str(folder))
        session = opened.session_id
        work = asyncio.ensure_future(agent.prompt(session_id=session, prompt=says("Work")))
        await gate.wait_until_asked()
        changed = await agent.set_config_option("model", session, "nonsense:x")
        assert changed.config_options == opened.config_options
        gate.open()
        assert (await work).stop_reason == "end_turn"
        await until(lambda: "nonsense" in editor.said)


async def test_pictures_in_a_message_are_shown_to_the_model(folder: Path):
    """M6: also a picture without text; pictures return when the session is loaded."""
    editor = Editor()
    with ModelServer(play(decision("A duck."), decision("Still a duck."))) as server:
        async with served(editor, folder, model=SEEING, env=environment(server)) as (agent, greeted):
            assert greeted.agent_capabilities.prompt_capabilities.image
            session = (await agent.new_session(cwd=str(folder))).session_id
            await agent.prompt(session_id=session, prompt=[picture()])
            await agent.prompt(session_id=session, prompt=[*says("Sure?"), picture(PNG + b"2")])
            with pytest.raises(acp.RequestError, match="neither PNG nor JPEG"):
                await agent.prompt(session_id=session, prompt=[*says("This?"), picture(b"none")])
            with pytest.raises(acp.RequestError, match="empty"):
                await agent.prompt(session_id=session, prompt=says(" \n"))
            await agent.load_session(cwd=str(folder), session_id=session)
        asked = [str(one.body["messages"]) for one in server.requests if asked_for(one.body) == "Decision"]
    assert [one.count("data:image/png;base64,") for one in asked] == [1, 2]
    loaded = [one.content for one in editor.of(schema.UserMessageChunk)]
    shown = [base64.b64decode(one.data) for one in loaded if isinstance(one, schema.ImageContentBlock)]
    assert shown == [PNG, PNG + b"2"]


async def test_a_deleted_session_is_gone(folder: Path):
    """M6: its kept files go with it; deleting an unknown id succeeds, and part of an id deletes nothing."""
    async with served(Editor(), folder, decision("Hello.")) as (agent, greeted):
        assert greeted.agent_capabilities.session_capabilities.delete is not None
        session = (await agent.new_session(cwd=str(folder))).session_id
        await agent.prompt(session_id=session, prompt=says("Hi"))
        await delete(agent, session[:4])
        assert [one.session_id for one in (await agent.list_sessions()).sessions] == [session]
        await delete(agent, session)
        await delete(agent, session)
        assert (await agent.list_sessions()).sessions == []
        with pytest.raises(acp.RequestError, match="no session"):
            await agent.load_session(cwd=str(folder), session_id=session)


async def test_deleting_a_session_stops_its_work(folder: Path, tmp_path: Path):
    """M6: the running prompt ends as cancelled."""
    gate = Gate(tmp_path / "gate")
    async with served(Editor(), folder, gate.hold(decision("never"))) as (agent, _):
        session = (await agent.new_session(cwd=str(folder))).session_id
        work = asyncio.ensure_future(agent.prompt(session_id=session, prompt=says("Work")))
        await gate.wait_until_asked()
        await delete(agent, session)
        assert (await work).stop_reason == "cancelled"
        assert (await agent.list_sessions()).sessions == []


async def test_the_editor_learns_what_a_turn_used(folder: Path):
    """M6: the context after each call, and the tokens of the turn."""
    editor = Editor()
    with ModelServer(play(Answer("Hello.", tokens=(1000, 400, 20)), decision("Again."))) as server:
        async with served(editor, folder, model=SEEING, env=environment(server)) as (agent, _):
            session = (await agent.new_session(cwd=str(folder))).session_id
            done = await agent.prompt(session_id=session, prompt=says("Hi"))
            assert done.usage.total_tokens == done.usage.input_tokens + done.usage.output_tokens
            assert done.usage.input_tokens >= 1000
            assert done.usage.cached_read_tokens == 400
            (told,) = editor.of(schema.UsageUpdate)
            assert (told.used, told.size) == (1000, 128_000)
            editor.updates.clear()
            await agent.load_session(cwd=str(folder), session_id=session)
            assert editor.of(schema.UsageUpdate) == [told]


@pytest.mark.parametrize(
    ("answer", "stop"),
    [
        (Answer("No.", stop="refusal"), "refusal"),
        (Answer("endless", stop="length"), "max_tokens"),
        (Fault(401, "wrong"), None),
    ],
)
async def test_a_turn_says_why_it_stopped(folder: Path, answer: Answer | Fault, stop: str | None):
    """M6: a failed model is an error of the protocol, which is not shown a second time as a message."""
    editor = Editor()
    with ModelServer(play(*[answer] * 9)) as server:
        async with served(editor, folder, model=SEEING, env=environment(server)) as (agent, _):
            session = (await agent.new_session(cwd=str(folder))).session_id
            if stop is None:
                with pytest.raises(acp.RequestError, match="OPENAI_API_KEY"):
                    await agent.prompt(session_id=session, prompt=says("Hi"))
                assert "OPENAI_API_KEY" not in editor.said
            else:
                assert (await agent.prompt(session_id=session, prompt=says("Hi"))).stop_reason == stop
                assert "Error:" in editor.said


async def test_a_cancelled_reply_does_not_begin_the_next_one(folder: Path):
    """M6: its result is shown, and a command without output sends no empty message."""
    editor = Editor()
    with ModelServer(play(Answer("Half a", fault="stall"), decision("Another."))) as server:
        async with served(editor, folder, model=SEEING, env=environment(server)) as (agent, _):
            session = (await agent.new_session(cwd=str(folder))).session_id
            work = asyncio.ensure_future(agent.prompt(session_id=session, prompt=says("Hi")))
            await until(lambda: "Half" in editor.said)
            await agent.cancel(session_id=session)
            assert (await work).stop_reason == "cancelled"
            assert "Stopped." in "".join(one.content.text for one in editor.of(schema.AgentThoughtChunk))
            await agent.prompt(session_id=session, prompt=says("/mode edits"))
            await agent.prompt(session_id=session, prompt=says("Again"))
    assert editor.said == "Half a\n\nAnother.\n\n"
    assert all(one.content.text for one in editor.of(schema.AgentMessageChunk))


@every_row(
    ("kind", "cause", "stop"),
    [
        ("over_exertion", "budget", "max_tokens"),
        ("over_exertion", "limit", "max_turn_requests"),
        ("stagnation", "limit", "max_turn_requests"),
        ("stagnation", "focus", "end_turn"),
        ("oracle", "vitals", "end_turn"),
    ],
)
def test_a_question_about_a_used_up_limit_is_a_stop_reason(kind: ConsultationKind, cause: str, stop: str):
    """M6: for editors in which the question stays open."""
    state = replace(new_state("s"), request=Request(request_id="r", text="x"))
    assert stop_at_question(consult(state, kind, cause).consultation) == stop


def test_other_ends_have_the_reasons_that_the_protocol_knows():
    assert stop_at_question(None) == "end_turn"
    assert stop_after_error("llm.wrong_key") is None


@every_row(("costs", "cost"), [((0.25, 0.5), 0.75), ((0.25, None), None), ((), None)])
def test_the_cost_is_told_if_all_prices_are_known(costs: tuple[float | None, ...], cost: float | None):
    tiers = dict(zip(("creative", "fast"), costs, strict=False))
    used = {tier: TierUsage(calls=1, tokens=Usage(), cost_usd=price) for tier, price in tiers.items()}
    told = usage_update(replace(new_state("s"), usage=used), 1000)
    assert (told.cost.amount if told.cost else None) == cost


def link(path: str) -> Any:
    return acp.resource_link_block("name", path)


def resource(text: str, uri: str) -> Any:
    return acp.resource_block(schema.TextResourceContents(text=text, uri=uri))


def blob(data: str, uri: str, media: str) -> Any:
    return acp.resource_block(schema.BlobResourceContents(blob=data, uri=uri, mime_type=media))


@every_row(
    ("blocks", "text"),
    [
        ([acp.text_block("run ls"), link("file:///var/log")], "run ls @/var/log"),
        ([link("file:///w/a.py"), acp.text_block("and"), link("file:///w/b.py")], "@a.py and @b.py"),
        ([acp.text_block("see "), link("file:///w/a.py"), acp.text_block(", please")], "see @a.py, please"),
        ([link("file:///w/a.py"), acp.text_block("を読んで")], "@a.py を読んで"),
        ([link("file:///w/my%20notes.md")], '@"my notes.md"'),
        ([link("file:///w")], "@/w"),
        ([link("https://example.org/x")], "@https://example.org/x"),
        ([acp.text_block("Why?"), resource("x = 1", "file:///w/a.py")], "Why?\n\na.py:\n```\nx = 1\n```"),
        ([resource("a\n```\nb", "file:///w/a.md")], "a.md:\n````\na\n```\nb\n````"),
        ([acp.text_block("see"), blob("AAAA", "file:///w/a.zip", "application/zip")], "see @a.zip"),
        ([acp.text_block(""), acp.text_block("  two "), acp.text_block("words")], "two words"),
    ],
)
def test_the_blocks_of_a_message_stay_apart(blocks: list[Any], text: str):
    """M6: a file is mentioned by its path in the folder."""
    assert read_message(blocks, Path("/w")).text == text


def test_pictures_come_as_blocks_or_as_resources():
    """M6: content that is not Base64 is refused."""
    data = base64.b64encode(PNG).decode()
    read = read_message([picture(), blob(data, "file:///w/a.png", "image/png")], Path("/w"))
    assert read == ("", (PNG, PNG))
    with pytest.raises(UsageError, check=lambda error: error.key == "editors.no_audio"):
        read_message([acp.text_block("Listen:"), acp.audio_block("AAAA", "audio/wav")], Path("/w"))
    with pytest.raises(UsageError, check=lambda error: error.key == "editors.not_base64"):
        read_message([acp.image_block("?", "image/png")], Path("/w"))
