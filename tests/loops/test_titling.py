"""A session gets its title from the fast tier, once there is work to name (L1)."""

from pathlib import Path

from duckflow.domain.events import SessionTitled
from duckflow.loops.thinking.titles import TitleWriter
from duckflow.store.sessions import Sessions
from fakes.engine import Watched, action, decision, engine
from fakes.model_server import ModelServer
from fakes.plays import asked_for, play

WRITE = decision("", action("write_file", path="a.py", content="x = 1\n"))


def title(duck: Watched) -> TitleWriter:
    return TitleWriter(duck.app.session, duck.app.advisor)


async def test_L1_work_is_named_once_and_a_question_costs_nothing(folder: Path):
    script = play(
        decision("Hello.", task_profile="general_chat"),
        WRITE,
        decision("There."),
        decision("Bye."),
        SessionTitle=[{"title": "A file with a number"}],
    )
    with ModelServer(script) as server:
        async with engine(folder, server=server) as duck:
            naming = title(duck)
            for said in ("hi", "Create a.py", "bye"):
                await duck.app.chat.say(said)
                await naming.give()
            assert [one.title for one in duck.of(SessionTitled)] == ["A file with a number"]
            shown = Sessions(duck.app.log.database).show(duck.state.session_id)
            assert shown.title == "A file with a number"
        asked = [asked_for(request.body) for request in server.requests]
        assert asked.count("SessionTitle") == 1
        assert asked[:2] == ["Decision", "Decision"]


async def test_L1_without_a_title_the_first_request_stands_for_the_session(folder: Path):
    with ModelServer(play(WRITE, decision("There."), SessionTitle=["no title at all"] * 9)) as server:
        async with engine(folder, server=server) as duck:
            await duck.app.chat.say("Create a.py")
            await title(duck).give()
            assert duck.of(SessionTitled) == []
            assert Sessions(duck.app.log.database).show(duck.state.session_id).title == "Create a.py"
