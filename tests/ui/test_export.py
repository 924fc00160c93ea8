"""L1: sessions exported as documents, replayed, and given a title."""

import json
from pathlib import Path

import pytest

from duckflow.domain.events import ConsultationAnswered, ConsultationRequested, SessionTitled, StoredEvent
from duckflow.domain.questions.consultation import ChooseWay
from duckflow.loops.thinking.titles import TitleWriter
from duckflow.store.sessions import Sessions
from duckflow.ui.screen import replay
from duckflow.ui.transcript import as_json, as_markdown
from fakes.consulted import consulted
from fakes.engine import Watched, action, decision, engine

TITLE = {"for": "SessionTitle", "text": '{"title": "猫の名前"}'}


def title(duck: Watched) -> TitleWriter:
    return TitleWriter(duck.app.session, duck.app.advisor)


async def test_a_session_is_exported_replayed_and_titled(folder: Path, capsys: pytest.CaptureFixture[str]):
    write = decision("", action("write_file", path="a.txt", content="```\nneu\n"))
    async with engine(
        folder, decision("It is **Tama**.", task_profile="general_chat"), write, decision("Done."), TITLE
    ) as duck:
        await duck.app.chat.say("What is the cat called?\nReally?")
        await title(duck).give()
        assert not duck.of(SessionTitled), "a question costs no second call"
        await duck.app.chat.say("write it")
        await title(duck).give()
        events = duck.app.log.load(duck.state.session_id)
        listed = Sessions(duck.app.log.database).listed()
        titles = duck.of(SessionTitled)
    assert [one.title for one in titles] == ["猫の名前"]
    assert listed[0].title == "猫の名前"
    page = as_markdown(listed[0].title, events)
    assert page.startswith("# 猫の名前\n")
    assert "> What is the cat called?\n> Really?\n\nIt is **Tama**." in page
    assert "- ✓ wrote a.txt" in page
    body = json.loads(as_json("t", events))
    assert [one["seq"] for one in body["events"]] == [one.seq for one in events]
    replay(events, speed=0)
    shown = capsys.readouterr().out
    assert "> What is the cat called?" in shown
    assert "It is Tama." in shown


async def test_without_a_title_from_the_model_the_first_request_stands_for_it(folder: Path):
    async with engine(folder, decision("Yes.", task_profile="general_chat")) as duck:
        await duck.app.chat.say("A question")
        await title(duck).give()
        assert Sessions(duck.app.log.database).listed()[0].title == "A question"
        assert not duck.of(SessionTitled)


async def test_an_export_has_the_questions_and_what_was_chosen(tmp_path: Path):
    async with consulted(tmp_path, "stagnation") as (duck, _):
        (asked,) = duck.of(ConsultationRequested)
        answered = ConsultationAnswered(
            consultation_id=asked.consultation.consultation_id,
            answer=ChooseWay(choice="go_on", text="quickly"),
        )
        events = [*duck.app.log.load(duck.state.session_id)]
        events.append(StoredEvent(seq=len(events) + 1, at=events[-1].at, event=answered))
    page = as_markdown("t", events)
    assert "I keep repeating the same steps" in page
    assert "  3. Continue like this" in page
    assert "- → Continue like this quickly" in page
