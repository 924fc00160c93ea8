"""Parts of the web view's tour: actions in a browser, and checks of each page."""

import base64
import shutil
import struct
import subprocess
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from browser_looks import Looks
from playwright.sync_api import Page, Route, expect

GIT = shutil.which("git") or "git"
PASTE = """(data) => {
  const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
  const clipboardData = new DataTransfer();
  clipboardData.items.add(new File([bytes], 'dot.png', { type: 'image/png' }));
  const pasted = new ClipboardEvent('paste', { clipboardData, bubbles: true });
  document.getElementById('message').dispatchEvent(pasted);
}"""


def by_keyboard_alone(page: Page, said: str) -> None:
    """Send a request and approve it after viewing the whole diff, without a mouse."""
    page.goto(page.url.partition("#")[0] + "#")
    expect(page.locator("#folder")).to_be_visible()
    expect(page.locator("#message")).to_be_focused()
    page.keyboard.type(said)
    page.keyboard.press("Enter")
    expect(page.locator("#asked")).to_be_focused()
    expect(page.locator("#yes")).to_be_disabled()
    page.keyboard.press("Tab")
    expect(page.locator("#difference")).to_be_focused()
    reach_the_end(page)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator("#yes")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#question")).to_be_hidden()


def reach_the_end(page: Page) -> None:
    """Press End until the whole diff has been on the screen."""
    page.bring_to_front()  # a page behind another one is drawn about once a second
    for _ in range(6):
        page.keyboard.press(
            "End"
        )  # each press starts the scrolling again, so the browser gets time to finish it
        with suppress(AssertionError):
            return expect(page.locator("#yes")).to_be_enabled(timeout=10_000)
    raise AssertionError("the end of the difference can't be reached with the keyboard")


def small_picture() -> str:
    """Return a PNG of two colours, in Base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + (b"\xf2\xb7\x05" * 120 + b"\x0b\x6a\x70" * 60) for _ in range(90))
    header = struct.pack(">IIBBBBB", 180, 90, 8, 2, 0, 0, 0)
    pieces = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(pieces)).decode()


def type_line(page: Page, line: str) -> None:
    """Type a line into the message field and send it."""
    page.locator("#message").fill(line)
    page.locator("#message").press("Enter")


def use_commands(page: Page, looks: Looks) -> None:
    """Use suggestions and slash commands; none of them reaches the model."""
    message, menu, asides = page.locator("#message"), page.locator("#menu"), page.locator(".entry.aside")
    message.fill("/")
    expect(menu.get_by_role("option").filter(has_text="/undo")).to_have_count(1)
    expect(menu.get_by_role("option").filter(has_text="/quit")).to_have_count(0)
    looks.look(page, "menu")
    message.fill("/go")
    expect(menu.get_by_role("option").first).to_contain_text("/goal")
    message.press("Tab")
    expect(message).to_have_value("/goal ")
    message.press("Enter")
    expect(asides.last).to_contain_text("95")
    type_line(page, "/diff session")
    expect(asides.last.locator(".difference")).to_contain_text("times_13")
    looks.look(page, "command")
    type_line(page, "/model")
    expect(page.locator("#menu-title")).to_be_visible()
    looks.look(page, "model")
    message.press("Escape")
    for line in ("/nosuch", "!ls", "ls -l", "undo"):
        count = asides.count()
        type_line(page, line)
        expect(asides).to_have_count(count + 1)
        expect(page.locator("#message")).to_have_value("")
    message.fill("@st")
    expect(menu.get_by_role("option").first).to_have_text("stats.py")
    message.press("Enter")
    expect(message).to_have_value("@stats.py ")
    message.fill("")
    expect(page.locator("#cancel")).to_have_count(0)


def use_files(page: Page, looks: Looks) -> None:
    """Look through the folder and at a file."""
    page.locator("#tab-files").click()
    page.locator(".files button", has_text="stats.py").click()
    expect(page.locator("#evidence .code-keyword").first).to_have_text("def")
    looks.look(page, "file")
    page.keyboard.press("Escape")
    page.locator("#tab-goal").click()


def use_the_list(page: Page, looks: Looks, said: str) -> None:
    """Find, rename and delete a session."""
    sessions = page.locator("#sessions li")
    before = sessions.count()
    page.locator("#find").fill(said)
    expect(sessions.filter(has=page.locator(".said")).first).to_be_visible()
    looks.look(page, "find", phone=False)
    page.locator("#find").fill("")
    current = page.locator("#sessions li.current")
    current.hover()
    current.locator(".acts button").first.click()
    page.locator("#rename").fill("Race")
    page.locator("#rename").press("Enter")
    expect(current.locator(".title")).to_have_text("Race")
    expect(page.locator("#top h1")).to_have_text("Race")
    current.hover()
    current.locator(".acts button").last.click()
    looks.look(page, "delete")
    page.locator("#really-delete").click()
    expect(page.locator("#start")).to_be_visible()
    expect(sessions).to_have_count(before - 1)


def steer_and_wait(page: Page, looks: Looks, go: Callable[[], None], words: Sequence[str]) -> None:
    """Say something during work, with a picture; meanwhile a message for the same folder waits."""
    first, steering, second, end = words
    open_start(page)
    page.evaluate(PASTE, small_picture())
    expect(page.locator("#thumbs canvas")).to_have_count(1)
    looks.look(page, "picture", phone=False)
    type_line(page, first)
    expect(page.locator(".entry.message img")).to_have_count(1)
    assert (
        page.locator(".entry.message img").evaluate("one => one.decode().then(() => one.naturalWidth)") == 180
    )
    expect(page.locator("#live")).not_to_be_empty()
    type_line(page, steering)
    expect(page.locator(".waiting-message")).to_contain_text(steering)
    looks.look(page, "working")
    here = page.url
    open_start(page)
    type_line(page, second)
    expect(page.locator("#waits")).to_be_visible()
    expect(page.locator("#waits .waiting-message")).to_have_text(second)
    looks.look(page, "waits")
    go()
    expect(page.locator(".entry.message")).to_contain_text(second)  # it was sent, and its session opened
    expect(page.locator(".entry.reply").last).to_contain_text(end)
    expect(page.locator("#cancel")).to_have_count(0)
    page.goto(here)
    expect(page.locator(".entry.message")).to_have_count(2)
    expect(page.locator(".waiting-message")).to_have_count(0)


def open_start(page: Page) -> None:
    """Open the start page."""
    page.locator("#sessions a.new").click()
    expect(page.locator("#first-requests button").first).to_be_visible()


def two_answers(page: Page, second: Page) -> None:
    """Answer the same question in two windows, delaying the second answer on its way."""
    second.goto(page.url)
    held: list[Route] = []
    second.route("**/commands", lambda route: held.append(route))  # noqa: PLW0108 - Playwright marks it
    second.locator("#no").click()
    while not held:
        second.wait_for_timeout(50)
    page.locator("#yes").click()
    expect(page.locator("#question")).to_be_hidden()
    held[0].continue_()
    expect(second.locator("#notice")).not_to_be_empty()
    expect(second.locator("#question")).to_be_hidden()


def back_and_fork(page: Page, gone: Path) -> None:
    """Go back to before the last message, files included, then fork a session from the first message."""
    last = page.locator(".entry.message").last
    last.hover()
    last.locator("summary").click()
    last.locator("[data-back=both]").click()
    expect(page.locator(".entry.message")).to_have_count(1)
    assert not gone.exists(), "the file went back, too"
    here = page.url
    first = page.locator(".entry.message").first
    first.hover()
    first.locator("summary").click()
    first.locator("[data-back=fork]").click()
    expect(page.locator(".entry.message")).to_have_count(0)
    assert page.url != here
    page.goto(here)
    expect(page.locator(".entry.message")).to_have_count(1)


def notices(page: Page) -> None:
    """Make the page believe that it is hidden, and record the notifications it would show."""
    page.add_init_script(
        "window.told = []; Object.defineProperty(document, 'hidden', { get: () => true });"
        "window.Notification = class { static permission = 'granted';"
        "constructor(title, more) { told.push([title, more.body]); } };"
    )


def in_the_terminal_too(page: Page, start: Callable[..., Any], folder: Path, program: list[str]) -> None:
    """Use one session in a terminal and the browser: a question answered in one disappears in the other."""
    tmux = ["tmux", "-L", f"duckflow-tour-{time.monotonic_ns()}"]

    def seen() -> str:
        return subprocess.run(
            [*tmux, "capture-pane", "-p", "-S", "-200"], capture_output=True, text=True, check=False
        ).stdout

    def wait_for(part: str, times: int = 1) -> None:
        deadline = time.monotonic() + 60
        while seen().count(part) < times:
            assert time.monotonic() < deadline, f"{part} is not there:\n{seen().strip()}"
            time.sleep(0.1)

    def press(*keys: str) -> None:
        subprocess.run([*tmux, "send-keys", *keys], check=True)

    folder.mkdir()
    start([*tmux, "new-session", "-d", "-x", "100", "-y", "40", *program, "--workspace", str(folder)])
    try:
        wait_for("openai:any")
        wait_for("😎🧘💪")
        press("First", "Enter")
        wait_for("+++ b/a.md")
        page.locator("#sessions a.asks").first.click()
        expect(page.locator("#question h2")).to_contain_text("a.md")
        page.locator("#yes").click()
        wait_for("a.md", 3)
        expect(page.locator("#question")).to_be_hidden()
        expect(page.locator("#cancel")).to_have_count(0)
        assert (folder / "a.md").exists()
        page.locator("#message").fill("Second")
        page.locator("#send").click()
        wait_for("+++ b/b.md")
        expect(page.locator("#question h2")).to_contain_text("b.md")
        time.sleep(1)  # keys pressed just as a question appears do not count as its answer
        press("n leave it", "Enter")
        expect(page.locator("#question")).to_be_hidden()
        expect(page.locator("#cancel")).to_have_count(0)
        assert not (folder / "b.md").exists()
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def in_the_fleet(page: Page, run: Callable[..., None], repository: Path, looks: Looks) -> None:
    """List all runs and answer one on the page; queue, cancel and retry another."""
    repository.mkdir()
    who = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    for words in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "-m", "first"]):
        subprocess.run([GIT, *who, *words], cwd=repository, check=True)
    expect(page.locator("a.runs")).to_have_count(0)  # hidden until the fleet is used
    run("fleet", "submit", str(repository), "Write a.md", "--model", "openai:any")
    run("fleet", "worker", "--until-idle")
    page.locator("a.runs").click()
    expect(page.locator("table.runs .waiting")).to_have_count(1)
    page.locator("#message").fill("And another one")
    page.locator("#send").click()
    expect(page.locator("#run-cancel")).to_be_visible()
    page.locator("#run-cancel").click()
    page.locator("#run-retry").click()
    expect(page.locator("#run-cancel")).to_be_visible()
    page.locator("#run-cancel").click()
    expect(page.locator("#run-retry")).to_be_visible()
    page.locator("a.runs").click()
    expect(page.locator("table.runs .cancelled")).to_have_count(1)
    looks.picture(page, "fleet")
    looks.look(page, "fleet")
    page.locator("table.runs .waiting a").click()
    expect(page.locator("#question h2")).to_contain_text("a.md")
    looks.look(page, "run")
    page.locator("#yes").click()
    expect(page.locator("#question")).to_be_hidden()
    run("fleet", "worker", "--until-idle")
    expect(page.locator(".state.done")).to_be_visible()
    page.locator("#tab-changes").click()
    expect(page.locator("#panel .difference")).to_contain_text("a.md")
    with page.expect_download() as patch:
        page.locator("#run-patch").click()
    assert "+++ b/a.md" in patch.value.path().read_text()
