"""Looks at each screen of the web view: nothing overflows, and axe-core finds nothing. Keeps screenshots."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
AXE = (ROOT / ".venv-browser" / "axe.min.js").read_text("utf-8")
WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
_RUN_AXE = """async () => {
  const found = await axe.run(document, { resultTypes: ['violations'] });
  const where = (one) => one.nodes.map((node) => node.html.slice(0, 120)).join(' | ');
  return found.violations.map((one) => `${one.id}: ${where(one)}`);
}"""
_WIDE = """() => {
  if (document.documentElement.scrollWidth <= innerWidth) return [];
  const out = (one) => one.checkVisibility() && one.getBoundingClientRect().right > innerWidth + 1;
  const name = (one) => `${one.tagName}#${one.id}.${one.className}`;
  return [...document.querySelectorAll('body *')].filter(out).map(name);
}"""


class Looks:
    """Looks at screens in one language, on a desktop and on a phone."""

    def __init__(self, language: str, *, screens: Path | None, pictures: bool) -> None:
        self._language = language
        self._screens = screens
        self._pictures = pictures
        self.count = 0

    def look(self, page: Page, name: str, *, dark: bool = False, phone: bool = True) -> None:
        """Check a screen in both sizes. With `dark`, check and draw it in dark colours, too."""
        for size in (WIDE, PHONE)[: 1 + phone]:
            page.set_viewport_size(size)
            self._check(page, f"{size['width']}-{name}")
            if dark:
                page.emulate_media(color_scheme="dark")
                self._check(page, f"{size['width']}-{name}-dark")
                page.emulate_media(color_scheme="light")
        page.set_viewport_size(WIDE)

    def look_beside(self, page: Page) -> None:
        """Check the list of sessions and the details, which cover a phone's screen."""
        page.set_viewport_size(PHONE)
        for part in ("sessions", "details"):
            page.locator(f"#top [aria-controls={part}]").click()
            self._check(page, f"{PHONE['width']}-{part}")
            page.keyboard.press("Escape")
        page.set_viewport_size(WIDE)

    def picture(self, page: Page, name: str) -> None:
        """Draw a picture for the documentation, if wanted."""
        if self._pictures:
            page.screenshot(path=PICTURES / f"web-{name}-{self._language}.png")

    def _check(self, page: Page, name: str) -> None:
        page.wait_for_timeout(120)  # for the layout to follow the size
        if self._screens is not None:
            page.screenshot(path=self._screens / f"{self._language}-{name}.png")
        if not page.evaluate("'axe' in window"):
            page.evaluate(AXE)
        found: list[Any] = [*page.evaluate(_RUN_AXE), *page.evaluate(_WIDE)]
        assert not found, (name, found)
        self.count += 1
