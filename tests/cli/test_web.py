"""M7: `duckflow web` over real HTTP: a whole request, several owners, and everybody who must stay outside."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from duckflow.domain.modes import MODES
from fakes import warm
from fakes.engine import action, decision, write_script
from fakes.rows import Failures
from fakes.web_server import WebClient, web_server

EVIL = "<img src=x onerror=alert(1)>"


def write(name: str, content: str = "neu\n") -> str:
    why = f"you asked for it {EVIL}"
    return decision("I will.", {**action("write_file", path=name, content=content), "reasoning": why})


def test_M7_a_whole_request_in_the_browser(folder: Path, tmp_path: Path):
    script = write_script(
        tmp_path / "s.jsonl",
        (write("a.txt"), decision(f"Written. {EVIL}"), write("b.txt"), decision("Then not.")),
    )
    with web_server(folder, script) as client:
        assert client.enter().status_code == 200
        page = client.get("api/texts").json()
        assert page["folders"] == [str(folder)]
        assert page["modes"] == list(MODES)
        wish = {"folder": str(folder), "text": "Write a.txt", "mode": "ask"}
        assert client.post("api/sessions", {**wish, "folder": "/etc"}).status_code == 409
        session = client.post("api/sessions", wish).json()["session"]
        asked = client.question(session)
        assert asked["kind"] == "approval"
        assert EVIL in asked["intent"], "as it was said: the page makes text of it"
        assert ["changed", 0, None, 1, "neu"] in asked["difference"]
        assert not (folder / "a.txt").exists()
        stale = client.send(session, kind="answer", question_hash="0" * 64, answer={"yes": True})
        assert stale.status_code == 409
        assert "no longer open" in stale.json()["message"]
        edited = {"yes": True, "edited": "rm -rf"}
        assert (
            client.send(
                session, kind="answer", question_hash=asked["question_hash"], answer=edited
            ).status_code
            == 409
        )
        answer = {"kind": "answer", "question_hash": asked["question_hash"], "answer": {"yes": True}}
        assert client.send(session, **answer).json() == {"waiting": False}
        shown = client.reply(session, "Written.")
        assert (folder / "a.txt").read_text() == "neu\n"
        assert client.send(session, **answer).status_code == 409, "used once"

        now = shown[-1][1]
        assert [one["name"] for one in now["vitals"]] == ["mood", "focus", "stamina"]
        assert any("limit set" in why for point in now["points"] for why in point["why"])
        assert now["cost"][0]["calls"] > 0
        requirement = now["goal"]["requirements"][0]
        assert requirement["score"] == 1.0
        evidence = client.get(f"api/sessions/{session}/evidence/e1").json()
        assert evidence["text"].startswith("created a.txt")
        assert client.get(f"api/sessions/{session}/evidence/e99").status_code == 404
        assert ["title", "+++ b/a.txt"] in client.get(f"api/sessions/{session}/difference").json()[
            "difference"
        ]
        again = client.follow(session, lambda event, found: event == "now", after=9999)
        assert not [event for event, _ in again if event == "entry"], (
            "a reader who comes back gets what is new"
        )

        assert client.send(session, kind="say", text="And b.txt").json() == {"waiting": False}
        second = client.question(session)
        refusal = {"yes": False, "reason": "not this one"}
        assert (
            client.send(
                session, kind="answer", question_hash=second["question_hash"], answer=refusal
            ).status_code
            == 200
        )
        client.reply(session, "Then not.")
        assert not (folder / "b.txt").exists()
        assert client.send(session, kind="undo").json() == {"waiting": False}
        seen = client.follow(session, lambda event, found: event == "entry" and found["kind"] == "undo")
        assert not (folder / "a.txt").exists()

        said = [found["seq"] for event, found in seen if event == "entry" and found["kind"] == "message"]
        assert client.post(f"api/sessions/{session}/fork", {"before": 1}).status_code == 409, "no message"
        fork = client.post(f"api/sessions/{session}/fork", {"before": said[1]}).json()["session"]
        back = {"kind": "rewind", "before": said[1], "part": "conversation"}
        assert client.send(session, **back).json() == {"waiting": False}
        went = client.follow(session, lambda event, found: event == "entry" and found["back"] == said[1])
        assert went[-1][1]["text"].startswith("↶")
        assert (
            "Write a.txt"
            in client.follow(session, lambda event, found: event == "now")[-1][1]["goal"]["text"]
        )
        assert client.send(fork, kind="say", text="On from here").status_code == 200, (
            "the folder is free for it"
        )
        assert "a.txt" in client.question(fork)["question"]


def test_M7_what_another_process_stopped_at_is_answered_in_the_browser(folder: Path, tmp_path: Path):
    """The run has ended at its question; no process has the session open, so the web view takes it up."""
    first = write_script(tmp_path / "first.jsonl", (write("a.txt"),))
    run = [sys.executable, "-m", "duckflow", "run", "Write a.txt", "--json", "--workspace", str(folder)]
    done = warm.run([*run, "--model", f"scripted:{first}"], capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    session = json.loads(done.stdout.splitlines()[0])["session_id"]
    after = write_script(tmp_path / "after.jsonl", (decision("書きました。"),))
    with web_server(folder, after, language="ja") as client:
        client.enter()
        listed = client.follow("", lambda event, found: event == "sessions")[-1][1]
        assert [(one["id"], one["status"]) for one in listed] == [(session, "asks")]
        asked = client.question(session)
        assert "a.txt" in asked["question"]
        assert client.send(session, kind="cancel").json()["message"] == "実行中の作業はありません。"
        assert (
            client.send(
                session, kind="answer", question_hash=asked["question_hash"], answer={"yes": True}
            ).status_code
            == 200
        )
        client.reply(session, "書きました。")
    assert (folder / "a.txt").read_text() == "neu\n"


def test_M7_nobody_else_is_let_in_and_nothing_is_answered(folder: Path, tmp_path: Path):
    """Other origins, wrong and used tokens, other names for this machine, missing cookies, odd bodies."""
    script = write_script(tmp_path / "s.jsonl", (write("a.txt"),))
    with web_server(folder, script) as client:
        port = client.origin.rpartition(":")[2]
        stranger, evil = WebClient(client.address), f"evil.example:{port}"
        refused = Failures()
        before = [
            ("no token", lambda: stranger.get("")),
            ("wrong token", lambda: stranger.get("?token=guess")),
            ("no place", lambda: stranger.http.get(client.origin + "/")),
            ("a static file", lambda: stranger.get("app.js")),
            ("rebound name and token", lambda: stranger.http.get(client.address, headers={"host": evil})),
        ]  # fmt: skip
        for name, ask in before:
            with refused.of(name):
                assert ask().status_code == 403
        entered = client.enter()
        cookie = entered.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "'unsafe" not in entered.headers["content-security-policy"]
        assert entered.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        wish = {"folder": str(folder), "text": "Write a.txt", "mode": "ask"}
        session = client.post("api/sessions", wish).json()["session"]
        asked = client.question(session)
        yes = {"kind": "answer", "question_hash": asked["question_hash"], "answer": {"yes": True}}
        path = f"api/sessions/{session}/commands"
        bare = {"content-type": "application/json"}
        here, where = {"origin": client.origin}, client.base + path
        named = f"127.0.0.1.{evil}"
        foreign = {"origin": "http://evil.example"}
        socket = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}

        def pieces() -> Iterator[bytes]:
            yield from [b" " * 65_536] * 8

        after = [
            ("used token", lambda: stranger.enter(), 403),
            ("no cookie", lambda: stranger.post(path, yes), 403),
            ("wrong cookie", lambda: stranger.post(path, yes, cookie="duckflow=guess"), 403),
            ("other origin", lambda: client.post(path, yes, origin="http://evil.example"), 403),
            ("other port", lambda: client.post(path, yes, origin="http://127.0.0.1:1"), 403),
            ("null origin", lambda: client.post(path, yes, origin="null"), 403),
            ("no origin", lambda: client.http.post(where, content=json.dumps(yes), headers=bare), 403),
            ("rebound name", lambda: client.post(path, yes, host=evil, origin=f"http://{evil}"), 403),
            ("name that begins so", lambda: client.post(path, yes, host=named), 403),
            ("another site reads", lambda: client.get("api/texts", **{"sec-fetch-site": "cross-site"}), 403),
            ("another port reads", lambda: client.get("api/texts", **{"sec-fetch-site": "same-site"}), 403),
            ("as a form", lambda: client.post(path, yes, **{"content-type": "text/plain"}), 400),
            ("not a command", lambda: client.post(path, {"kind": "shell", "text": "x"}), 400),
            ("not JSON at all", lambda: client.http.post(where, content=b"{", headers=bare | here), 400),
            ("far too long", lambda: client.post(path, {"kind": "say", "text": "x" * 300_000}), 400),
            ("no such session", lambda: client.send("nobody", kind="cancel"), 409),
            ("another method", lambda: client.http.request("DELETE", where, headers=here), 403),
            ("a form of another site", lambda: client.http.post(where, data=yes, headers=foreign), 403),
            ("its own form", lambda: client.http.post(where, data=yes, headers=here), 400),
            ("foreign stream", lambda: client.get(f"api/stream?session={session}", **foreign), 403),
            ("foreign websocket", lambda: client.get("api/stream", **foreign, **socket), 403),
            ("answer without its hash", lambda: client.post(path, {**yes, "question_hash": ""}), 409),
            ("choice for an approval", lambda: client.post(path, {**yes, "kind": "choose"}), 400),
            ("far too deep", lambda: client.http.post(where, content=b"[" * 9_999, headers=bare | here), 400),
            ("too many pieces", lambda: client.http.post(where, content=pieces(), headers=bare | here), 400),
            ("a path as session", lambda: client.get("api/stream?session=../../../etc/passwd"), 400),
            ("a path as evidence", lambda: client.get(f"api/sessions/{session}/evidence/..%2f..%2fx"), 404),
            ("a path in its place", lambda: client.get("api/sessions/..%2f..%2fetc/difference"), 404),
            ("dots in its place", lambda: client.get("api/sessions/%2e%2e./patch"), 400),
            ("a file beside the page", lambda: client.get("..%2fguard.py"), 404),
            ("absurd place to read from", lambda: client.get("api/stream?after=" + "9" * 5000), 400),
            ("rewind to nowhere", lambda: client.post(path, {"kind": "rewind", "before": "x"}), 400),
            ("fork at nowhere", lambda: client.post(f"api/sessions/{session}/fork", {}), 400),
            ("retry of no run", lambda: client.post(f"api/sessions/{session}/retry", {}), 409),
            ("folder nobody named", lambda: client.post("api/sessions", {**wish, "folder": "/"}), 409),
        ]  # fmt: skip
        for name, ask, status in after:
            with refused.of(name):
                answer = ask()
                assert answer.status_code == status
                assert answer.headers["x-frame-options"] == "DENY"
                assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
                assert "text/html" not in answer.headers["content-type"]
        refused.report()
        stranger.http.close()
        assert client.question(session)["question_hash"] == asked["question_hash"], (
            "the question is still open"
        )
        assert not (folder / "a.txt").exists()


def test_without_its_packages_the_web_view_says_what_to_install(tmp_path: Path):
    probe = (
        "import sys; sys.modules['starlette'] = None; sys.modules['uvicorn'] = None; "
        "sys.argv = ['duckflow', 'web']; from duckflow.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "duckflow[web]" in done.stderr
