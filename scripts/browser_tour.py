"""Drives the web view in a real browser, in both languages; with --pictures, draws docs/pictures/web-*.png.

    make test-browser        (installs chromium and Playwright, each where it belongs, and runs this)

A model on loopback answers slowly, so that a reply is seen while it is written. What is looked at: a request
is started, streams, is approved after a look at the difference, another one refused with a reason; a
consultation is answered; evidence is shown; the page is loaded again in the middle; a second window sees the
same, at the width of a phone; and script in a file name, a reply and a difference does nothing.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
EVIL = "<img src=x onerror=\"document.title='hacked'\">"
OUTPUT = re.compile(r"Output: (\w+)")
CODE = '"""Numbers."""\n\n\ndef mean(values):\n    return sum(values) / len(values)\n'
MORE = (
    CODE
    + "".join(f"\n\ndef times_{n}(value):\n    return value * {n}\n" for n in range(2, 14))
    + f"# {EVIL}\n"
)
TALKS = {
    "en": {
        "ask": "Add times_2 to times_13 to stats.py",
        "say": "I add the functions to stats.py, each with its own factor, and leave mean as it is. ",
        "why": "you asked for these functions",
        "done": "Done: stats.py has twelve more functions.",
        "again": "Delete nothing, but note it down",
        "reason": "not into this file",
        "fine": "Then I leave it.",
        "unsure": "Look around once more",
        "end": "Everything is in order.",
        "no": "No",
    },
    "ja": {
        "ask": "stats.py に times_2 から times_13 を追加して",
        "say": "stats.py に関数を追加します。mean はそのまま残し、それぞれの倍率を持たせます。",
        "why": "依頼された関数だからです",
        "done": "完了しました。stats.py に関数が 12 個増えました。",
        "again": "何も消さずに、メモを残して",
        "reason": "このファイルには書かないで",
        "fine": "では、そのままにします。",
        "unsure": "もう一度見直して",
        "end": "すべて整っています。",
        "no": "いいえ",
    },
}


def write(path: str, content: str, reply: str, why: str) -> dict[str, Any]:
    """A decision that writes a file."""
    action = {
        "operation": "file_ops.write_file",
        "args": {"path": path, "content": content},
        "reasoning": why,
    }
    return {"reply": reply, "next_step": "continue", "confidence": 0.9, "actions": [action]}


def answers(talk: dict[str, str]) -> dict[str, list[Any]]:
    """What the model says, by what it is asked for."""
    read = {"operation": "file_ops.read_file", "args": {"path": "stats.py"}}
    score = {"requirement": "1", "score": 0.95, "evidence": ["e1"]}
    return {
        "Decision": [
            write("stats.py", MORE, talk["say"] * 3, f"{talk['why']} {EVIL}"),
            {"reply": f"{talk['done']} {EVIL}", "next_step": "done"},
            write(f"{EVIL.replace('/', '')}.md", f"{EVIL}\n", "", talk["why"]),
            {"reply": talk["fine"], "next_step": "done"},
            {"reply": "", "next_step": "continue", "confidence": 0.3, "actions": [read]},
            {"reply": talk["end"], "next_step": "done", "confidence": 0.9},
        ],
        "RequirementList": [{"requirements": [{"requirement": talk["ask"], "priority": 1}]}] * 9,
        "SatisfactionEvaluation": [{"requirement_scores": [score], "completion_recommendation": True}] * 9,
    }


class Model(BaseHTTPRequestHandler):
    """A provider that writes slowly."""

    protocol_version = "HTTP/1.0"
    script: dict[str, list[Any]] = {}  # noqa: RUF012 - set for each run

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class has it
        """Nothing to say."""

    def do_POST(self) -> None:
        """The next answer, piece by piece."""
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        output = OUTPUT.findall(body)[-1]
        left = self.script.get(output, [])
        self.send_response(200 if left else 418)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        if not left:
            return
        text = json.dumps(left.pop(0), ensure_ascii=False)
        pause = 0.05 if output == "Decision" else 0.0
        for at in range(0, len(text), 12):
            self._send({"choices": [{"index": 0, "delta": {"content": text[at : at + 12]}}]})
            time.sleep(pause)
            pause = 0.0 if at > 600 else pause
        self._send({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self._send({"choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 120}})
        self.wfile.write(b"data: [DONE]\n\n")

    def _send(self, piece: dict[str, Any]) -> None:
        self.wfile.write(
            f"data: {json.dumps({'id': 'x', 'object': 'chat.completion.chunk', **piece})}\n\n".encode()
        )
        self.wfile.flush()


def tour(browser: Browser, language: str, home: Path, *, pictures: bool) -> None:
    """One whole request and what can happen on its way."""
    talk = TALKS[language]
    Model.script = answers(talk)
    provider = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    folder = home / "project"
    folder.mkdir(parents=True)
    (folder / "stats.py").write_text(CODE)
    env = {
        **{name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TMPDIR")},
        "HOME": str(home),
        "DUCKFLOW_LANGUAGE": language,
        "OPENAI_BASE_URL": f"http://127.0.0.1:{provider.server_port}/v1",
        "OPENAI_API_KEY": "none",
        "NO_PROXY": "127.0.0.1",
    }
    command = [str(ROOT / ".venv/bin/duckflow"), "web", "--no-browser", "--workspace", str(folder)]
    server = subprocess.Popen(
        [*command, "--model", "openai:any"],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        visit(browser, address, language, folder, pictures=pictures)
    finally:
        server.terminate()
        server.wait(20)
        provider.shutdown()
        provider.server_close()


def visit(browser: Browser, address: str, language: str, folder: Path, *, pictures: bool) -> None:
    """What a person does and sees."""
    talk = TALKS[language]
    context = browser.new_context(locale=language, viewport={"width": 1360, "height": 860})
    context.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)
    page = context.new_page()
    alarms = watch(page)
    page.goto(address)

    def picture(name: str, of: Page = page) -> None:
        if pictures:
            of.screenshot(path=PICTURES / f"web-{name}-{language}.png")

    expect(page.locator("html")).to_have_attribute("lang", language)
    assert "token" not in page.url, "the used token is not left in the address"
    page.keyboard.press("/")
    page.keyboard.type(talk["ask"])
    page.keyboard.press("Enter")
    expect(page.locator("#live")).to_contain_text(talk["say"][:20])
    page.reload()  # in the middle
    yes = page.locator("#yes")
    expect(yes).to_be_disabled()  # the difference is longer than its box
    picture("approval")
    page.locator("#difference").evaluate("box => { box.scrollTop = box.scrollHeight; }")
    expect(yes).to_be_disabled()  # its end is still below what is seen
    page.locator("#question").evaluate("section => { section.scrollTop = section.scrollHeight; }")
    expect(yes).to_be_enabled()

    second = context.new_page()
    watch(second)
    second.goto(page.url)
    second.set_viewport_size({"width": 390, "height": 844})
    expect(second.locator("#question h2")).to_contain_text("stats.py")
    assert second.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
        "nothing sticks out on a phone"
    )
    picture("phone", second)
    yes.click()
    expect(page.locator(".entry.reply").last).to_contain_text(EVIL)
    expect(second.locator("#question")).to_be_hidden()  # answered in the other window
    assert (folder / "stats.py").read_text() == MORE

    page.locator("#tab-goal").click()
    expect(page.locator(".requirements")).to_contain_text("0.95")
    page.locator(".requirements .chip").first.click()
    expect(page.locator("dialog")).to_contain_text("stats.py")
    page.keyboard.press("Escape")
    page.locator("#tab-vitals").click()
    expect(page.locator("svg polyline").first).to_be_attached()
    page.locator("#tab-changes").click()
    expect(page.locator("#panel .difference")).to_contain_text("times_13")

    send(page, talk["again"])
    expect(page.locator("#question h2")).to_contain_text("onerror")  # the file's name, as text
    page.locator("#reason").fill(talk["reason"])
    page.locator("#no").click()
    expect(page.locator(".entry.reply").last).to_contain_text(talk["fine"])
    assert [one.name for one in folder.iterdir()] == ["stats.py"]

    send(page, talk["unsure"])
    expect(page.locator("[data-choice=go_on]")).to_be_visible()
    picture("consultation")
    page.locator("[data-choice=go_on]").click()
    expect(page.locator(".entry.reply").last).to_contain_text(talk["end"])
    picture("changes")
    page.locator("#tab-vitals").click()
    expect(page.locator(".charts")).to_be_visible()
    page.emulate_media(color_scheme="dark")
    picture("vitals")
    page.locator("#tab-cost").click()
    expect(page.locator("#panel table")).to_be_visible()
    assert not alarms, alarms
    assert page.title() != "hacked"
    assert page.locator("img:not(#top img)").count() == 0, "no markup came from what was said"
    assert outside(browser, address, page.url) == 403
    context.close()


def send(page: Page, text: str) -> None:
    """Write a message once nothing is being done."""
    expect(page.locator("#cancel")).to_have_count(0)
    page.locator("#message").fill(text)
    page.locator("#send").click()


def watch(page: Page) -> list[str]:
    """Whatever should not happen in a page: errors, dialogs, requests to anywhere else."""
    seen: list[str] = []
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on("dialog", lambda dialog: seen.append(dialog.message))
    page.on("console", lambda line: seen.append(line.text) if line.type == "error" else None)
    page.on("request", lambda one: None if one.url.startswith("http://127.0.0.1:") else seen.append(one.url))
    return seen


def outside(browser: Browser, address: str, url: str) -> int:
    """What another browser gets, with the used link and without one."""
    stranger = browser.new_context()
    page = stranger.new_page()
    statuses = {page.goto(place).status for place in (address, url)}  # type: ignore[union-attr]
    stranger.close()
    assert len(statuses) == 1
    return statuses.pop()


def main() -> None:
    """Both languages, one after the other."""
    read = argparse.ArgumentParser()
    read.add_argument("--pictures", action="store_true")
    pictures = read.parse_args().pictures
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as home:
        found = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for language in TALKS:
            tour(browser, language, Path(home) / language, pictures=pictures)
            sys.stdout.write(f"{language}: all of it was seen\n")
        browser.close()


if __name__ == "__main__":
    main()
