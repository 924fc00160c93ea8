"""The documentation as a site: every page is in its navigation once, and copies of a table agree."""

import re
from collections.abc import Iterator

import yaml

from source_tree import ROOT

HOME = ("README.md", "README.ja.md", "docs/index.md")


def pages(nav: object) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, list):
        for entry in nav:
            yield from pages(entry)
    elif isinstance(nav, dict):
        for entry in nav.values():
            yield from pages(entry)


def test_every_page_is_in_the_navigation_once():
    listed = list(pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]))
    assert listed[0] == "index.md"
    assert sorted(listed) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))


def compared(page: str) -> dict[str, list[str]]:
    """The numbers of each agent in the comparison, whose rows or columns are the agents."""
    blocks = re.findall(r"(?m)(?:^\|.*\n)+", (ROOT / page).read_text("utf-8"))
    [table] = [block for block in blocks if "| Codex 0" in block]
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in table.splitlines()]
    del rows[1]
    if rows[0][1] == "Duckflow":
        rows = list(map(list, zip(*rows, strict=True)))
    return {agent: re.findall(r"\d[\d.,]*", " ".join(cells)) for agent, *cells in rows[1:]}


def test_the_comparison_has_the_same_numbers_on_every_page():
    numbers = compared(HOME[0])
    assert {agent: len(found) for agent, found in numbers.items()} == dict.fromkeys(numbers, 4)
    assert len(numbers) == 4
    assert [compared(page) for page in HOME[1:]] == [numbers, numbers]
