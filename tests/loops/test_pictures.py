"""Pictures as @mentions or pasted: shown to models that see, over both wires, and in no event as bytes."""

import base64
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from duckflow.domain.errors import UsageError
from duckflow.domain.events import ActionFinished, ErrorReported, UserMessage
from duckflow.domain.model import PICTURE_TOKENS
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.i18n.catalogue import text
from duckflow.loops.thinking import pictures
from duckflow.loops.thinking.pictures import find_pictures, media_of
from duckflow.safety.files.workspace import Workspace
from duckflow.store.kept_files import KeptFiles
from fakes import mcp_stdio
from fakes.engine import action, decision, engine
from fakes.model_server import Fault, ModelServer, Reply
from fakes.plays import asked_for, play
from fakes.rows import every_row

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
OTHER = PNG + b"another"
WIRES = ("openai:gpt-4o", "anthropic:claude-sonnet-5-5")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "shot.png").write_bytes(PNG)
    return folder


def decisions(server: ModelServer) -> list[dict[str, Any]]:
    """Return the requests for a decision; side questions have no pictures."""
    return [one.body for one in server.requests if asked_for(one.body) == "Decision"]


def pictures_in(body: dict[str, Any]) -> list[tuple[str, bytes]]:
    """Return the pictures of a request on either wire: kind and content."""
    found: list[tuple[str, bytes]] = []
    for turn in body["messages"]:
        for part in turn["content"] if isinstance(turn["content"], list) else ():
            if part["type"] == "image_url":
                media, _, data = part["image_url"]["url"].removeprefix("data:").partition(";base64,")
                found.append((media, base64.b64decode(data)))
            elif part["type"] == "image":
                assert part["source"]["type"] == "base64"
                found.append((part["source"]["media_type"], base64.b64decode(part["source"]["data"])))
    return found


@every_row("model", WIRES)
async def test_l4_a_picture_from_an_mcp_server_is_shown_to_the_model(folder: Path, model):
    offer = folder.parent / "offer.json"
    offer.write_text(json.dumps({"tools": {"picture": ""}}), "utf-8")
    command = [sys.executable, "-I", "-S", mcp_stdio.__file__, str(offer)]
    mcp = {"servers": {"fake": {"command": command, "sandbox": False}}}
    asked = {"operation": "mcp.fake.picture", "args": {"data": base64.b64encode(PNG).decode()}}
    with ModelServer(play(decision("", asked), decision("A duck."))) as server:
        async with engine(folder, server=server, model=model, mcp=mcp) as duck:
            await duck.app.chat.say("draw it")
            assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "done"
            assert duck.of(ActionFinished)[-1].text.endswith("[image/png]")
        assert [pictures_in(body) for body in decisions(server)] == [[], [("image/png", PNG)]]


@every_row("model", WIRES)
async def test_a_mentioned_picture_is_shown_again_in_each_prompt_until_it_changes(folder: Path, model):
    (folder / "shot.png").write_bytes(PNG)
    with ModelServer(play(decision("A duck."), decision("Still."), decision("Gone."))) as server:
        async with engine(folder, server=server, model=model) as duck:
            assert await duck.app.chat.say("what is on @shot.png?") == "done"
            await duck.app.chat.say("are you sure?")
            assert [pictures_in(body) for body in decisions(server)] == [[("image/png", PNG)]] * 2
            (folder / "shot.png").write_bytes(OTHER)
            await duck.app.chat.say("and now?")
            assert pictures_in(decisions(server)[-1]) == []
            assert "shot.png is not shown: the file has changed since" in str(decisions(server)[-1])
            (said, *_) = duck.of(UserMessage)
            (picture,) = said.pictures
            assert (picture.path, picture.digest) == ("shot.png", hashlib.sha256(PNG).hexdigest())
            assert duck.of(ErrorReported) == []
            kept = "".join(one.model_dump_json() for one in duck.events)
            assert base64.b64encode(PNG).decode()[:40] not in kept


@every_row("model", WIRES)
async def test_a_picture_that_the_provider_refuses_does_not_block_the_session(folder: Path, model):
    (folder / "shot.png").write_bytes(PNG)
    (folder / "bad.png").write_bytes(OTHER)
    playing = play(decision("A duck."), decision("No picture."), decision("Hello."))

    def answer(body: dict[str, Any]) -> Reply:
        refused = ("image/png", OTHER) in pictures_in(body)
        return Fault(400, "Could not process image") if refused else playing(body)

    with ModelServer(answer) as server:
        async with engine(folder, server=server, model=model) as duck:
            for said in ("look at @shot.png", "look at @bad.png", "hello"):
                assert await duck.app.chat.say(said) == "done"
        assert len(decisions(server)) == 4, "it is not tried again"
        assert [data for _, data in pictures_in(decisions(server)[-1])] == [PNG]
        assert "bad.png is not shown: your provider refused it" in str(decisions(server)[-1])


@every_row("model", WIRES)
async def test_a_pasted_picture_is_shown_again_in_each_prompt(folder: Path, model):
    """It is kept beside the session, and forgotten with it; a message may be a picture alone."""
    with ModelServer(play(decision("A duck."), decision("Still."))) as server:
        async with engine(folder, server=server, model=model) as duck:
            session_id, kept = duck.state.session_id, duck.app.kept
            pasted = pictures.keep_pictures([PNG], session_id, kept)
            assert await duck.app.chat.say("", pasted) == "done"
            await duck.app.chat.say("are you sure?")
            assert [pictures_in(body) for body in decisions(server)] == [[("image/png", PNG)]] * 2
            said, _ = duck.of(UserMessage)
            assert (said.text, said.pictures) == (text("pictures.alone"), pasted)
            assert duck.of(ErrorReported) == []
            events = "".join(one.model_dump_json() for one in duck.events)
            assert base64.b64encode(PNG).decode()[:40] not in events
            kept.forget(session_id)
            assert kept.picture(pasted[0].digest) is None


@every_row(
    ("pasted", "key"),
    [
        ([b"GIF8 or not"], "pictures.not_pasted"),
        ([PNG + bytes(pictures.LARGEST)], "pictures.too_large"),
        ([PNG] * 9, "pictures.too_many"),
    ],
)
def test_a_pasted_picture_that_can_not_be_shown_is_refused(tmp_path: Path, pasted, key):
    kept = KeptFiles(tmp_path / "kept.db", 0)
    with pytest.raises(UsageError) as caught:
        pictures.keep_pictures(pasted, "s", kept)
    kept.close()
    assert caught.value.key == key
    assert "picture-" in str(caught.value)


async def test_a_model_that_does_not_see_is_told_so_and_the_user_too(folder: Path):
    with ModelServer(play(decision("I can't."))) as server:
        async with engine(folder, server=server, model="openai:gpt-4") as duck:
            await duck.app.chat.say("look at @shot.png")
            (told,) = duck.of(ErrorReported)
            assert "llm.sees" in text(told.key, **told.values)
    assert pictures_in(decisions(server)[0]) == []
    assert "you can't see pictures" in str(decisions(server)[0])


@every_row(("model", "sees", "shown"), [("openai:any", True, 1), ("openai:gpt-4o", False, 0)])
async def test_the_setting_counts_more_than_the_name(folder: Path, model, sees, shown):
    (folder / "shot.png").write_bytes(PNG)  # each row has an empty folder
    with ModelServer(play(decision("Yes."))) as server:
        async with engine(folder, server=server, model=model, sees=sees) as duck:
            await duck.app.chat.say("look at @shot.png")
    assert len(pictures_in(decisions(server)[0])) == shown


async def test_a_picture_is_counted_and_the_oldest_give_way(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pictures, "ALL_TOGETHER", len(OTHER))
    (folder / "new.png").write_bytes(OTHER)
    with ModelServer(play(decision("One."), decision("Two."))) as server:
        async with engine(folder, server=server, model=WIRES[0]) as duck:
            before = (await duck.app.model.preview(duck.state)).tokens["conversation"]
            await duck.app.chat.say("@shot.png")
            await duck.app.chat.say("@new.png")
            after = (await duck.app.model.preview(duck.state)).tokens["conversation"]
    assert pictures_in(decisions(server)[-1]) == [("image/png", OTHER)]
    assert "newer ones take the room" in str(decisions(server)[-1])
    assert after - before > 2 * PICTURE_TOKENS


@every_row(
    ("said", "paths", "problems"),
    [
        ("@shot.png", ["shot.png"], []),
        ("(see @shot.png), and @shot.png!", ["shot.png"], []),
        ("@shot.pngを見てください。", ["shot.png"], []),
        ('@"my shot.png" please', ["my shot.png"], []),
        ("@photo", ["photo"], []),
        ("@notes.txt @nothing mail@shot.png", [], []),
        ("@fake.png", [], ["pictures.none"]),
        ("@missing.png", [], ["pictures.unreadable"]),
        ("@../outside.png", [], ["pictures.unreadable"]),
        ("@link.png", [], ["pictures.unreadable"]),
        ("@large.png", [], ["pictures.too_large"]),
        (" ".join(f"@{n}.png" for n in range(9)), [f"{n}.png" for n in range(8)], ["pictures.too_many"]),
    ],
)
def test_what_is_mentioned_is_known_by_content_and_read_beneath_the_folder(
    tmp_path: Path, said, paths, problems
):
    folder = tmp_path / "project"
    folder.mkdir(exist_ok=True)
    for name in ("shot.png", "my shot.png", "photo", "../outside.png", *(f"{n}.png" for n in range(9))):
        (folder / name).write_bytes(PNG)
    for name in ("notes.txt", "fake.png"):
        (folder / name).write_text("hello")
    (folder / "large.png").write_bytes(PNG + bytes(pictures.LARGEST))
    if not (folder / "link.png").is_symlink():
        (folder / "link.png").symlink_to(tmp_path / "outside.png")
    workspace = Workspace(folder)
    try:
        found, told = find_pictures(said, workspace)
    finally:
        workspace.close()
    assert [one.path for one in found] == paths
    assert [one.key for one in told] == problems
    assert all(text(one.key, **one.values) for one in told)


@every_row(
    ("data", "media"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"<svg>", None),
        (b"", None),
    ],
)
def test_a_picture_is_known_by_its_first_bytes(data, media):
    assert media_of(data) == media


@every_row("model", WIRES)
async def test_a_verdict_compares_the_users_picture_with_the_one_that_was_made(folder: Path, model):
    """A request such as "make it look like this picture" can be judged only by looking."""
    (folder / "shot.png").write_bytes(PNG)
    (folder / "page.png").write_bytes(OTHER)
    answers = [
        decision("", action("write_file", path="page.html", content="<h1>Duck</h1>\n")),
        decision("", action("read_file", path="page.png")),
        decision("It looks like that."),
    ]
    with ModelServer(play(decision("A duck."), *answers)) as server:
        async with engine(folder, server=server, model=model) as duck:
            await duck.app.chat.say("What is on @page.png?")
            await duck.app.chat.say("Make the page look like @shot.png")
    verdicts = [one.body for one in server.requests if asked_for(one.body) == "SatisfactionEvaluation"]
    assert pictures_in(verdicts[-1]) == [("image/png", PNG), ("image/png", OTHER)]
    assert "1. shot.png, from the user" in str(verdicts[-1])
    assert "2. page.png, shown by [e" in str(verdicts[-1])


async def test_an_evaluator_that_does_not_see_gets_no_pictures(folder: Path):
    write = decision("", action("write_file", path="page.html", content="<h1>Duck</h1>\n"))
    with ModelServer(play(write, decision("Like that."))) as server:
        async with engine(folder, server=server, model=WIRES[0], sees=False) as duck:
            await duck.app.chat.say("Make it look like @shot.png")
    verdicts = [one.body for one in server.requests if asked_for(one.body) == "SatisfactionEvaluation"]
    assert [pictures_in(body) for body in verdicts] == [[]]
    assert "these pictures" not in str(verdicts)
