"""Drives the web view in a real browser, in both languages. With --pictures, draws docs/pictures/web-*.png.

    make test-browser        (installs Chromium and Playwright, and runs this)

A model on loopback answers slowly, so that a reply can be seen while it streams. The tour starts a request,
approves it after reading the diff, refuses another one with a reason, answers a consultation, shows evidence,
reloads the page in the middle, opens a second window at the width of a phone, and checks that script in a
file name, a reply or a diff has no effect. browser_walks.py adds: the keyboard alone, two answers to one
question, back and fork, "always", plan and tasks, notifications, a terminal on the same session, the fleet,
and the names, contrast and width of each page.
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

from browser_looks import PHONE, ROOT, WIDE, Looks
from browser_walks import (
    back_and_fork,
    by_keyboard_alone,
    in_the_fleet,
    in_the_terminal_too,
    notices,
    open_start,
    reach_the_end,
    steer_and_wait,
    two_answers,
    use_commands,
    use_files,
    use_the_list,
)
from playwright.sync_api import Browser, Page, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError

EVIL = "<img src=x onerror=\"document.title='hacked'\">"
OUTPUT = re.compile(r"Output: (\w+)")
CODE = '"""Numbers."""\n\n\ndef mean(values):\n    return sum(values) / len(values)\n'
MORE = (
    CODE
    + "".join(f"\n\ndef times_{n}(value):\n    return value * {n}\n" for n in range(2, 14))
    + f"# {EVIL}\n"
)
MARKDOWN = """

- `times_2` … `times_13`, each with **its own factor**
- see [the docs](https://example.com)

```python
def times_2(value):
    return value * 2  # twice
```

| function | factor |
|---|--:|
| `times_2` | 2 |
| `times_13` | 13 |
"""
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
        "go": "Yes, go on",
        "slow": "Explain stats.py in every detail",
        "steer": "Briefly, please",
        "wait": "And what would you test?",
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
        "go": "はい、続けて",
        "slow": "stats.py を詳しく説明して",
        "steer": "簡潔にお願いします",
        "wait": "何をテストすべき？",
    },
}


def write(path: str, content: str, reply: str, why: str) -> dict[str, Any]:
    """Return a decision that writes a file."""
    action = {
        "operation": "file_ops.write_file",
        "args": {"path": path, "content": content},
        "reasoning": why,
    }
    return {"reply": reply, "next_step": "continue", "confidence": 0.9, "actions": [action]}


def answers(talk: dict[str, str]) -> dict[str, list[Any]]:
    """Return the model's answers, grouped by the requested output."""
    read = {"operation": "file_ops.read_file", "args": {"path": "stats.py"}}
    score = {"requirement": "1", "score": 0.95, "evidence": ["e1", "NEWEST"]}
    over = {"reply": talk["end"], "next_step": "done", "confidence": 0.9}

    def note(name: str) -> dict[str, Any]:
        return write(name, "x\n", "", talk["why"])

    def call(operation: str, next_step: str = "continue", **args: str) -> dict[str, Any]:
        return {"reply": "", "next_step": next_step, "actions": [{"operation": operation, "args": args}]}

    steps = [{"name": name, "description": talk["ask"], "depends_on": []} for name in ("one", "two", "three")]
    return {
        "Decision": [
            write("stats.py", MORE, talk["say"] * 3, f"{talk['why']} {EVIL}"),
            {"reply": f"{talk['done']} {EVIL}{MARKDOWN}", "next_step": "done"},
            write(f"{EVIL.replace('/', '')}.md", f"{EVIL}\n", "", talk["why"]),
            {"reply": talk["fine"], "next_step": "done"},
            {"reply": "", "next_step": "continue", "confidence": 0.3, "actions": [read]},
            over,
            *(write("long.py", MORE, "", talk["why"]), over),  # approved by keyboard
            *(note("race.md"), over),
            *(note("one.md"), note("two.md"), over),  # allowed with "always"
            call("plan_tool.propose", goal=talk["ask"]),
            {"reply": talk["say"], "next_step": "pending_user"},
            call("task_tool.generate_list", step_id="STEP"),
            call("task_loop.run", "defer", step_id="STEP"),
            {"reply": talk["end"], "next_step": "pending_user"},
            {"reply": f"{talk['say'] * 3}{HOLD}", "next_step": "continue", "actions": [read]},
            {"reply": "", "next_step": "continue", "actions": [read]},  # decided again with the new words
            over,
            *({"reply": "", "next_step": "continue", "actions": [read]}, over),  # for the message that waited
            *(note("a.md"), over, note("b.md"), over),  # asked in the terminal
            *(note("a.md"), over),  # run by the fleet
        ],
        "PlanDraft": [
            {
                "name": "Game",
                "goal": talk["ask"],
                "risk": "low",
                "success_criteria": ["it runs"],
                "steps": steps,
            }
        ],
        "TaskListDraft": [
            {"tasks": [{"operation": "file_ops.write_file", "args": {"path": "task.md", "content": "x\n"}}]}
        ],
        "TaskReport": [{"status": "success", "summary": talk["end"], "failures": [], "next_action": ""}],
        "RequirementList": [{"requirements": [{"requirement": talk["ask"], "priority": 1}]}] * 50,
        "SatisfactionEvaluation": [{"requirement_scores": [score], "completion_recommendation": True}] * 50,
    }


HOLD = "∎"
"""Mark in an answer at which the provider waits for the tour's permission to continue."""


class Model(BaseHTTPRequestHandler):
    """Provider that streams slowly."""

    goes_on = threading.Event()

    protocol_version = "HTTP/1.0"
    script: dict[str, list[Any]] = {}  # noqa: RUF012 - set for each run

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class has it
        """Suppress the log."""

    def do_POST(self) -> None:
        """Stream the next answer piece by piece."""
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        output = OUTPUT.findall(body)[-1]
        left = self.script.get(output, [])
        self.send_response(200 if left else 418)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        if not left:
            return
        step = next(iter(re.findall(r"step_[0-9a-f]{8}", body)), "")
        newest = next(iter(re.findall(r"\[(e\d+)\]", body)[-1:]), "")
        text = json.dumps(left.pop(0), ensure_ascii=False).replace("STEP", step).replace("NEWEST", newest)
        pause = 0.05 if output == "Decision" else 0.0
        for at in range(0, len(text), 12):
            self._send({"choices": [{"index": 0, "delta": {"content": text[at : at + 12]}}]})
            if HOLD in text[at : at + 12]:
                self.goes_on.wait(60)
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


def tour(browser: Browser, language: str, home: Path, looks: Looks) -> None:
    """Go through a whole request and everything that can happen on the way."""
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
        "DUCKFLOW_LLM__NATIVE_TOOLS": "false",  # the answers are decisions as JSON
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
        page = visit(browser, address, language, folder, looks)
        walk(page, talk, folder, looks)
        program = [command[0], "--model", "openai:any"]
        in_the_terminal_too(
            page, lambda words: subprocess.run(words, env=env, check=True), home / "other", program
        )
        run = lambda *words: subprocess.run([command[0], *words], env=env, check=True)  # noqa: E731 - short
        in_the_fleet(page, run, home / "shop", looks)
        page.context.close()
    except (AssertionError, PlaywrightError):
        for number, seen in enumerate(one for context in browser.contexts for one in context.pages):
            at = Path(tempfile.gettempdir()) / f"duckflow-tour-{language}-{number}.png"
            seen.screenshot(path=at)
            sys.stderr.write(f"what was seen: {at}\n")
        raise
    finally:
        server.terminate()
        server.wait(20)
        provider.shutdown()
        provider.server_close()


def walk(page: Page, talk: dict[str, str], folder: Path, looks: Looks) -> None:
    """Use sessions in further ways: keyboard, second window, back and fork, "always", plans."""
    page.bring_to_front()
    by_keyboard_alone(page, talk["ask"])
    expect(page.locator(".entry.reply").last).to_contain_text(talk["end"])
    assert (folder / "long.py").read_text() == MORE
    second = page.context.new_page()
    notices(second)
    send(page, talk["again"])
    expect(page.locator("#question h2")).to_contain_text("race.md")
    two_answers(page, second)
    expect(page.locator(".entry.reply")).to_have_count(2)
    assert (folder / "race.md").exists()
    assert second.evaluate("told.length") > 0, "nobody looks at the page: a notice"
    second.close()
    back_and_fork(page, folder / "race.md")

    send(page, talk["again"])
    page.locator("#always").click()
    expect(page.locator(".entry.reply")).to_have_count(2)
    assert (folder / "two.md").exists(), "the second one was covered by always"
    assert page.locator(".entry.question").count() == 2, "one for the first request, one for always"
    use_the_list(page, looks, talk["again"])

    open_start(page)
    send(page, talk["ask"])
    expect(page.locator("#question .document")).to_contain_text("Game")
    looks.look(page, "plan-question")
    page.locator("#difference").focus()
    reach_the_end(page)
    page.locator("#yes").click()
    expect(page.locator(".entry.reply").last).to_contain_text(talk["say"][:20])
    page.locator("#tab-plan").click()
    expect(page.locator(".plan.active > .tree > li")).to_have_count(3)
    send(page, talk["go"])
    expect(page.locator("#question h2")).to_contain_text("task.md")
    expect(page.locator(".plan.active .tree .tree")).to_contain_text("task.md")
    page.locator("#yes").click()
    expect(page.locator(".entry.reply").last).to_contain_text(talk["end"])
    expect(page.locator(".plan.active .mark").first).to_have_attribute("aria-label", re.compile("done|完了"))
    looks.look(page, "plan", dark=True)
    looks.look_beside(page)
    Model.goes_on.clear()
    steer_and_wait(page, looks, Model.goes_on.set, [talk[name] for name in ("slow", "steer", "wait", "end")])


def visit(browser: Browser, address: str, language: str, folder: Path, looks: Looks) -> Page:
    """Do what a user does in the first minutes, and check each screen. Return the page."""
    talk = TALKS[language]
    context = browser.new_context(locale=language, viewport=WIDE, reduced_motion="reduce")
    context.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)
    page = context.new_page()
    alarms = watch(page)
    page.goto(address)

    expect(page.locator("html")).to_have_attribute("lang", language)
    assert "token" not in page.url, "the used token is not left in the address"
    expect(page.locator("#first-requests button").first).to_be_visible()
    expect(page.locator("#model")).to_have_value("openai:any")
    looks.look(page, "start", dark=True)
    page.locator("#message").blur()
    page.keyboard.press("/")
    page.keyboard.type(talk["ask"])
    page.keyboard.press("Enter")
    expect(page.locator("#live")).to_contain_text(talk["say"][:20])
    page.reload()  # reload while the reply streams
    yes = page.locator("#yes")
    expect(yes).to_be_disabled()  # the diff is longer than its box
    looks.picture(page, "approval")
    expect(page.locator(".entry.question:visible")).to_have_count(0)  # the page does not repeat the question
    looks.look(page, "question", dark=True)
    page.locator("#difference").evaluate("box => { box.scrollTop = box.scrollHeight; }")
    page.locator("#conversation").evaluate("list => { list.scrollTop = list.scrollHeight; }")
    expect(yes).to_be_enabled()

    second = context.new_page()
    watch(second)
    second.goto(page.url)
    second.set_viewport_size(PHONE)
    expect(second.locator("#question h2")).to_contain_text("stats.py")
    looks.picture(second, "phone")
    yes.click()
    expect(page.locator(".entry.reply").last).to_contain_text(EVIL)
    expect(second.locator("#question")).to_be_hidden()  # answered in the other window
    assert (folder / "stats.py").read_text() == MORE

    page.locator("#tab-goal").click()
    expect(page.locator(".requirements")).to_contain_text("95")
    page.locator(".requirements .chip").first.click()
    expect(page.locator("dialog")).to_contain_text("stats.py")
    page.keyboard.press("Escape")
    expect(page.locator(".entry.reply .code-keyword").first).to_have_text("def")
    expect(page.locator(".entry.reply td").last).to_have_text("13")
    looks.look(page, "reply", dark=True)
    use_commands(page, looks)
    use_files(page, looks)
    page.locator("#tab-changes").click()
    expect(page.locator("#panel .difference")).to_contain_text("times_13")
    looks.look(page, "changes")

    send(page, talk["again"])
    expect(page.locator("#question h2")).to_contain_text("onerror")  # the file's name as text, not as markup
    page.locator("#reason").fill(talk["reason"])
    page.locator("#no").click()
    expect(page.locator(".entry.reply").last).to_contain_text(talk["fine"])
    assert [one.name for one in folder.iterdir()] == ["stats.py"]

    send(page, talk["unsure"])
    expect(page.locator("[data-choice=go_on]")).to_be_visible()
    looks.picture(page, "consultation")
    looks.look(page, "consultation")
    page.locator("[data-choice=go_on]").click()
    expect(page.locator(".entry.reply").last).to_contain_text(talk["end"])
    looks.picture(page, "changes")
    page.locator("#tab-vitals").click()
    expect(page.locator(".charts")).to_be_visible()
    page.emulate_media(color_scheme="dark")
    looks.picture(page, "vitals")
    page.emulate_media(color_scheme="light")
    looks.look(page, "vitals", dark=True)
    page.locator("#tab-cost").click()
    expect(page.locator("#panel table")).to_be_visible()
    assert not alarms, alarms
    assert page.title() != "hacked"
    assert page.locator("img:not(.brand img, .welcome img)").count() == 0, "no markup came from what was said"
    assert outside(browser, address, page.url) == 403
    return page


def send(page: Page, text: str) -> None:
    """Send a message once no request is running."""
    expect(page.locator("#cancel")).to_have_count(0)
    page.locator("#message").fill(text)
    page.locator("#send").click()


def watch(page: Page) -> list[str]:
    """Collect everything that should not happen in a page: errors, dialogs and requests to other hosts."""
    seen: list[str] = []
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on("dialog", lambda dialog: seen.append(dialog.message))
    page.on("console", lambda line: seen.append(line.text) if line.type == "error" else None)
    page.on("request", lambda one: None if one.url.startswith("http://127.0.0.1:") else seen.append(one.url))
    return seen


def outside(browser: Browser, address: str, url: str) -> int:
    """Return the status that another browser gets, both with the used link and without it."""
    stranger = browser.new_context()
    page = stranger.new_page()
    statuses = {page.goto(place).status for place in (address, url)}  # type: ignore[union-attr]
    stranger.close()
    assert len(statuses) == 1
    return statuses.pop()


def main() -> None:
    """Run the tour in all languages, one after the other."""
    read = argparse.ArgumentParser()
    read.add_argument("--pictures", action="store_true")
    read.add_argument("--screens", type=Path, help="a folder for a screenshot of each screen")
    read.add_argument("wanted", nargs="*", help="languages (en, ja); all if none is named")
    given = read.parse_args()
    pictures, wanted = given.pictures, given.wanted
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as home:
        found = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-smooth-scrolling"]
        )
        for language in wanted or TALKS:
            began, looks = time.monotonic(), Looks(language, screens=given.screens, pictures=pictures)
            tour(browser, language, Path(home) / language, looks)
            took = round(time.monotonic() - began)
            sys.stdout.write(
                f"{language}: all of it was seen in {took} s; axe found nothing on {looks.count} screens\n"
            )
        browser.close()


if __name__ == "__main__":
    main()
