"""M7: the page shows only text and names everything. Its scripts run in node, if that is installed."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import get_args

import pytest

from duckflow.i18n.catalogue import entries
from duckflow.ui.views.events import EventKind
from source_tree import PACKAGE

STATIC = PACKAGE / "ui/web/static"
MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|setHTML|srcdoc"
    r"|createContextualFragment|javascript:|https?://(?!www\.w3\.org/2000/svg)"
)
"""Code that could turn a string into markup or script, and addresses outside."""


def test_M7_nothing_on_the_page_can_become_markup_or_comes_from_outside():
    for file in (*STATIC.glob("*.js"), *STATIC.glob("*.css"), STATIC / "index.html"):
        assert not MARKUP.findall(file.read_text("utf-8")), file.name
    page = (STATIC / "index.html").read_text("utf-8")
    assert not re.findall(r"<script(?![^>]* src=)|<style|\son\w+=|\sstyle=", page), "nothing inline"


def test_M7_screen_readers_hear_who_speaks():
    for language in ("en", "ja"):
        missing = [one for one in get_args(EventKind) if f"page.who.{one}" not in entries(language)]
        assert not missing, language


def test_M7_the_page_draws_what_it_is_told(tmp_path: Path):
    """Differences side by side, a chart with reasons for changes, questions that must be read, the fleet."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node; `make test-browser` drives the whole page")
    drawing = Path(__file__).parent.parent / "fakes" / "page_drawing.mjs"
    (tmp_path / "package.json").write_text('{"type": "module"}')
    for file in STATIC.glob("*.js"):
        shutil.copy(file, tmp_path)
    done = subprocess.run([node, drawing, tmp_path], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "drawn\n"), done.stderr
