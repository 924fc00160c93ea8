"""The tables in docs/ that are made from the program are those the program would make now."""

import shutil
import subprocess
import sys
from pathlib import Path

from duckflow.config.keys import leaves
from source_tree import ROOT

PAGES = [sys.executable, str(ROOT / "scripts" / "pages.py")]


def pages(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PAGES, *map(str, arguments)], capture_output=True, text=True, check=False)


def test_the_pages_are_up_to_date():
    """M5: every setting is on the page, with its default and its meaning. `make pages` mends this."""
    checked = pages("--check")
    assert checked.returncode == 0, checked.stderr


def test_a_page_that_is_out_of_date_is_found_and_mended(tmp_path: Path):
    docs = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", docs)
    page = docs / "configuration.md"
    right = page.read_text("utf-8")
    page.write_text(right.replace("| `max_retries` | `4` |", "| `max_retries` | `5` |"), "utf-8")
    assert page.read_text("utf-8") != right
    checked = pages("--check", "--docs", docs)
    assert checked.returncode == 1
    assert "configuration.md" in checked.stderr
    assert pages("--docs", docs).returncode == 0
    assert page.read_text("utf-8") == right


def test_every_setting_has_a_meaning_on_the_page():
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `") and line.count("|") == 5]
    assert len(rows) >= len(leaves())
    assert not [row for row in rows if not row.split("|")[4].strip()]
