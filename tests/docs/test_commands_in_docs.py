"""Commands, options, make targets, links and exit codes in the docs exist."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import typer

from duckflow.cli.main import app
from duckflow.loops.chat import EXIT_CODES
from duckflow.ui.commands.table import COMMANDS
from fakes.rows import every_row
from source_tree import ROOT

PAGES = sorted([*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md"), ROOT / "bench" / "README.md"])
SETS_VARIABLE = re.compile(r"^[A-Z_]+=")


class Typed(NamedTuple):
    """A command as a page shows it."""

    page: str
    words: tuple[str, ...]


def shown_code(page: Path) -> Iterator[str]:
    """Lines of shell blocks, and code in running text."""
    text = page.read_text("utf-8")
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        yield from block.splitlines()
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    yield from re.findall(r"`([^`\n]+)`", outside)


def typed(program: str) -> Iterator[Typed]:
    for page in PAGES:
        for line in shown_code(page):
            words = shlex.split(line.replace("…", "x"), comments=True)
            while words and (SETS_VARIABLE.match(words[0]) or words[0] in ("sudo", "unshare", "-n")):
                words = words[1:]
            if words and words[0] == program:
                yield Typed(str(page.relative_to(ROOT)), tuple(words[1:]))


def command_for(words: tuple[str, ...]) -> tuple[Any, list[str]]:
    """Return the command that these words name, and the remaining words."""
    command, rest = typer.main.get_command(app), list(words)
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    return command, rest


def options_of(command: Any) -> set[str]:
    named = {option for parameter in command.params for option in parameter.opts if option.startswith("-")}
    return named | {"-h", "--help"}


@every_row("shown", sorted(set(typed("duckflow"))), ids=lambda one: " ".join(one.words)[:60])
def test_every_duckflow_command_in_the_docs_exists(shown: Typed):
    command, rest = command_for(shown.words)
    flags = [word.partition("=")[0] for word in rest if word.startswith("-") and word.strip("-")]
    assert not [flag for flag in flags if flag not in options_of(command)], shown
    if getattr(command, "commands", None) and rest:
        assert rest[0].startswith("-"), f"{shown.page}: no command {rest[0]}"


def test_the_options_of_run_are_all_on_its_page():
    """M3."""
    page = (ROOT / "docs" / "headless.md").read_text("utf-8")
    listed = set(re.findall(r"^\| `(--[a-z-]+)", page, re.MULTILINE))
    command, _ = command_for(("run",))
    assert listed == options_of(command) - {"-h", "--help"}


@every_row("page", ["README.md", "docs/headless.md"])
def test_the_exit_codes_are_all_on_the_page(page: str):
    """M3; 2 is wrong usage, before there is an outcome."""
    listed = re.findall(r"^\| (\d+) \| ", (ROOT / page).read_text("utf-8"), re.MULTILINE)
    assert sorted(map(int, listed)) == sorted({*EXIT_CODES.values(), 2})


@every_row("shown", sorted(set(typed("make"))), ids=lambda one: " ".join(one.words))
def test_every_make_target_in_the_docs_exists(shown: Typed):
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = [word for word in shown.words if "=" not in word]
    assert set(named) <= targets, shown


def test_every_slash_command_in_the_docs_is_one_that_help_lists():
    """M2."""
    known = {f"/{name}" for name in COMMANDS}
    shown = {code for page in PAGES for code in shown_code(page) if re.fullmatch(r"/[a-z]+", code)}
    assert shown <= known


@every_row("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if "://" in target:
            continue
        name, _, heading = target.partition("#")
        found = page.parent / name if name else page
        assert found.exists(), f"{page.name}: {target}"
        if heading:
            assert heading in anchors(found), f"{page.name}: {target}"


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
