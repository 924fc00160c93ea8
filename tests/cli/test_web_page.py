"""M7: the page's requests to the server: typed lines, suggestions, pictures, files and lists."""

import base64
from pathlib import Path

from duckflow.ui.web.markup import code_node, markdown_nodes
from fakes.engine import action, decision, write_script
from fakes.web_server import WebClient, web_server

DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8Dwn4EIwDiqEAB6mQkB2pZ5/QAAAABJRU5ErkJggg=="
)


def test_M7_slash_commands_run_as_in_the_terminal_and_never_reach_the_model(folder: Path, tmp_path: Path):
    """The script has two decisions: a third call of the model would fail the request."""
    write = decision("I will.", action("write_file", path="a.txt", content="neu\n"))
    script = write_script(tmp_path / "s.jsonl", (write, decision("Written.")))
    with web_server(folder, script) as client:
        client.enter()
        session = started(client, folder, "Write a.txt", mode="edits")
        client.reply(session, "Written.")
        goal = said(client, session, "/goal")
        assert any("Write a.txt" in line for line in goal["lines"])
        assert ["title", "+++ b/a.txt"] in said(client, session, "/diff session")["difference"]
        assert said(client, session, "/model")["choices"]["choices"][0]["line"].startswith("/model scripted")
        assert "embedded:qwen2.5-coder-1.5b" in [
            one["shown"] for one in said(client, session, "/model")["choices"]["choices"]
        ]
        for refused in ("/nosuch", "!rm a.txt", "ls -l", "undo", "/quit", "exit"):
            assert said(client, session, refused)["warns"], refused
        shown = client.follow(session, lambda event, found: event == "now" and not found["working"], after=0)
        assert shown[-1][1]["goal"]["requirements"][0]["evidence"][0]["words"] == "wrote a.txt"
        assert said(client, session, "/undo")["lines"] == [], "the conversation shows it as an event"
        assert not (folder / "a.txt").exists()
        client.follow("", lambda event, found: event == "sessions" and found[0]["status"] == "open")
        assert said(client, session, "/undo redo")["lines"] == []
        assert (folder / "a.txt").exists()
        fork = said(client, session, "/fork")
        assert fork["goes_to"] not in (None, session)
        assert said(client, session, "/new")["goes_to"] == ""
        shown = client.follow(session, lambda event, found: event == "now", after=0)
        messages = [
            found["text"] for event, found in shown if event == "entry" and found["kind"] == "message"
        ]
        assert messages == ["Write a.txt"]


def test_M7_names_are_completed_and_files_are_shown(folder: Path, tmp_path: Path):
    (folder / "src").mkdir()
    (folder / "src" / "cart.py").write_text("def total():\n    return 1\n")
    (folder / "blob.bin").write_bytes(bytes(range(256)))
    with web_server(folder, write_script(tmp_path / "s.jsonl", (decision("Hi."),))) as client:
        client.enter()
        asked = {"session": "", "folder": str(folder)}
        assert [one["insert"] for one in completed(client, asked, "/go")] == ["/goal"]
        assert [one["insert"] for one in completed(client, asked, "see @cart")] == ["@src/cart.py"]
        assert not [one for one in completed(client, asked, "/") if one["insert"] in ("/quit", "/expand")]
        assert client.http.get(client.base + "api/suggestions?folder=/etc&typed=@p").status_code == 409
        start = client.http.get(client.base + "api/start", params={"folder": str(folder)}).json()
        assert start["model"].startswith("scripted:")
        assert any("cart.py" in one for one in start["requests"])
        session = started(client, folder, "Hi")
        client.reply(session, "Hi.")
        listed = client.get(f"api/sessions/{session}/files?path=src").json()
        assert [(one["path"], one["folder"]) for one in listed["entries"]] == [("src/cart.py", False)]
        shown = client.get(f"api/sessions/{session}/file?path=src/cart.py").json()
        assert shown["code"][2] == ["span", {"class": "keyword"}, "def"]
        assert shown["lines"] == 2
        for path in ("../x", "/etc/passwd", "blob.bin", "none.py"):
            assert client.get(f"api/sessions/{session}/file?path={path}").status_code == 409, path
        assert client.get(f"api/sessions/{session}/files?path=../..").status_code == 409


def test_M7_pictures_come_along_and_sessions_are_found_renamed_and_deleted(folder: Path, tmp_path: Path):
    with web_server(folder, write_script(tmp_path / "s.jsonl", (decision("A dot."),))) as client:
        client.enter()
        session = started(client, folder, "What is this?", pictures=[base64.b64encode(DOT).decode()])
        shown = client.reply(session, "A dot.")
        message = next(
            found
            for event, found in client.follow(session, lambda event, found: event == "now", after=0)
            if event == "entry" and found["kind"] == "message"
        )
        picture = client.get(f"api/pictures/{message['pictures'][0]}")
        assert (picture.content, picture.headers["content-type"]) == (DOT, "image/png")
        assert client.get("api/pictures/" + "0" * 64).status_code == 404
        assert shown[-1][1]["id"] == session
        refused = client.post(
            f"api/sessions/{session}/lines", {"text": "x", "pictures": ["bm8gcGljdHVyZQ=="]}
        )
        assert refused.status_code == 409
        assert (
            client.post(f"api/sessions/{session}/lines", {"text": "x", "pictures": ["!"]}).status_code == 400
        )
        found = client.get("api/search?words=a+DOT").json()["found"]
        assert [one["id"] for one in found] == [session]
        assert client.post(f"api/sessions/{session}/title", {"title": "  My dot "}).status_code == 200
        client.follow("", lambda event, found: event == "sessions" and found[0]["title"] == "My dot")
        assert client.post(f"api/sessions/{session}/delete", {}).status_code == 200
        client.follow("", lambda event, found: event == "sessions" and found == [])


def test_M7_a_message_for_a_folder_in_use_says_which_session_has_it(folder: Path, tmp_path: Path):
    write = decision("I will.", action("write_file", path="a.txt", content="neu\n"))
    script = write_script(tmp_path / "s.jsonl", (write,))
    with web_server(folder, script) as first, web_server(folder, script) as second:
        first.enter()
        second.enter()
        session = started(first, folder, "Write a.txt", mode="ask")
        first.question(session)
        refused = second.post("api/sessions", {"folder": str(folder), "text": "Me too", "mode": "ask"})
        assert refused.status_code == 409
        assert refused.json()["holder"] == session


def test_M7_markdown_becomes_names_and_texts_only():
    nodes = markdown_nodes(
        "# T\n\n<b onclick=x>*a*</b> [x](javascript:alert(1)) [y](https://a.example) ![p](http://b.example/p.png)\n\n"
        "- one\n- two\n\n```py\nx = 1\n```\n\n<script>x</script>"
    )
    flat = repr(nodes)
    assert "['a', {'href': 'https://a.example'}, 'y']" in flat
    assert "'href': 'javascript" not in flat
    assert "b.example" not in flat, "no picture is loaded"
    assert ["ul", {}, ["li", {}, "one"], ["li", {}, "two"]] in nodes
    assert ["pre", {"language": "py"}, "x = ", ["span", {"class": "number"}, "1"], ""] in nodes
    assert ["p", {}, "<script>x</script>"] in nodes
    todo = markdown_nodes("- [ ] one\n- [x] **two**\n\n[ ] three")
    assert todo == [
        ["ul", {}, ["li", {}, "☐ one"], ["li", {}, "☑ ", ["strong", {}, "two"]]],
        ["p", {}, "[ ] three"],
    ]
    assert code_node("plain", language="nosuch") == ["pre", {"language": "nosuch"}, "plain"]


def started(client: WebClient, folder: Path, text: str, mode: str = "ask", **more: object) -> str:
    """Begin a session; return its id."""
    answer = client.post("api/sessions", {"folder": str(folder), "text": text, "mode": mode, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["session"]


def said(client: WebClient, session: str, line: str) -> dict:
    """Type a line that is no message; return its result."""
    answer = client.post(f"api/sessions/{session}/lines", {"text": line})
    assert answer.status_code == 200, (line, answer.text)
    assert answer.json()["result"] is not None, line
    return answer.json()["result"]


def completed(client: WebClient, asked: dict[str, str], typed: str) -> list[dict]:
    """Return the suggestions for what was typed."""
    return client.http.get(client.base + "api/suggestions", params={**asked, "typed": typed}).json()["found"]
