"""Parts of the web view's tour: actions in a browser, and checks of each page."""

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, Route, expect

GIT = shutil.which("git") or "git"
NARROW = {"width": 360, "height": 740}
WIDE = {"width": 1360, "height": 860}

CHECKS = Path(__file__).with_name("page_checks.js").read_text("utf-8").partition("\n")[2]


def wrong(page: Page, what: str) -> list[str]:
    """Return the faults of one kind on a page: nameless, faint or wide."""
    return page.evaluate(f"({CHECKS}).{what}()")


def look_over(page: Page) -> None:
    """Check that controls have names, text is readable in light and dark, and nothing overflows a phone."""
    assert not (nameless := wrong(page, "nameless")), nameless
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        assert not (faint := wrong(page, "faint")), (scheme, faint)
    page.set_viewport_size(NARROW)
    for part in ("sessions", "details", "main"):
        page.locator(f"[aria-controls={part}]").click()
        assert not (wide := wrong(page, "wide")), (part, wide)
    page.set_viewport_size(WIDE)


def by_keyboard_alone(page: Page, said: str) -> None:
    """Send a request and approve it after viewing the whole diff, without a mouse."""
    page.goto(page.url.partition("#")[0] + "#")
    expect(page.locator("#folder")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type(said)
    page.keyboard.press("Enter")
    expect(page.locator("#asked")).to_be_focused()
    expect(page.locator("#yes")).to_be_disabled()
    page.keyboard.press("Tab")
    expect(page.locator("#difference")).to_be_focused()
    reach_the_end(page)
    page.keyboard.press("Tab")
    expect(page.locator("#yes")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#question")).to_be_hidden()


def reach_the_end(page: Page) -> None:
    """Press End until the whole diff has been on the screen."""
    for _ in range(20):
        page.keyboard.press("End")
        page.wait_for_timeout(200)
        if page.locator("#yes").is_enabled():
            return
    raise AssertionError("the end of the difference can't be reached with the keyboard")


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
    last.locator("summary").click()
    last.locator("[data-back=both]").click()
    expect(page.locator(".entry.message")).to_have_count(1)
    assert not gone.exists(), "the file went back, too"
    here = page.url
    first = page.locator(".entry.message").first
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


def in_the_fleet(
    page: Page, run: Callable[..., None], repository: Path, picture: Callable[[str], None]
) -> None:
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
    picture("fleet")
    look_over(page)
    page.locator("table.runs .waiting a").click()
    expect(page.locator("#question h2")).to_contain_text("a.md")
    look_over(page)
    page.locator("#yes").click()
    expect(page.locator("#question")).to_be_hidden()
    run("fleet", "worker", "--until-idle")
    expect(page.locator(".state.done")).to_be_visible()
    page.locator("#tab-changes").click()
    expect(page.locator("#panel .difference")).to_contain_text("a.md")
    with page.expect_download() as patch:
        page.locator("#run-patch").click()
    assert "+++ b/a.md" in patch.value.path().read_text()
