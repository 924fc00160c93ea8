"""Plugins: the example of the docs, installed and used, and plugins that can't be loaded (L7)."""

import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from duckflow.config.places import config_dir
from duckflow.domain.errors import UsageError
from duckflow.evaluation.diagnostics import CHECKERS, Checker, with_rows
from duckflow.plugins import Frozen, Plugin, Tool, ToolResult, _checked, load_plugins
from duckflow.prompts.templates import check_own_templates
from fakes.engine import decision, engine, write_script
from fakes.rows import Failures
from source_tree import ROOT

USES = """
import asyncio, sys
from duckflow import Session
from duckflow.domain.events import ActionFinished, Reply

async def main(folder, script):
    for model in (f"scripted:{script}", "parrot:polly"):
        async with Session(folder, model=model, mode="auto") as session:
            async for update in session.start("How many words?"):
                event = getattr(update, "event", None)
                if isinstance(event, ActionFinished | Reply):
                    print(event.text)
            if session.question is not None:
                print("asked:", session.question.because, session.question.difference)
            print([(one.name, one.version, *one.brings) for one in session.app.extensions.plugins])

asyncio.run(main(*sys.argv[1:]))
"""


def build_example(place: Path) -> Path:
    """Write the package of the docs page: each code block is the file named above it."""
    page = (ROOT / "docs" / "plugins.md").read_text("utf-8")
    files = re.findall(r"^`([\w/.]+)`:\n\n```\w+\n(.*?)```", page, re.DOTALL | re.MULTILINE)
    assert len(files) == 2
    for name, content in files:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(content)
    return place


def fresh_environment(place: Path) -> Path:
    """Return the Python of a fresh environment that also sees our installed packages."""
    venv.create(place, with_pip=False, symlinks=True)
    (site,) = place.glob("lib/python*/site-packages")
    ours = sysconfig.get_path("purelib")
    (site / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    return place / "bin" / "python"


def test_L7_the_example_of_the_docs_is_installed_and_used(folder: Path, tmp_path: Path):
    """Install it into a fresh environment, without a network."""
    package, python = build_example(tmp_path / "package"), fresh_environment(tmp_path / "fresh")
    options = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-q"]
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", *options, str(package)]
    done = subprocess.run(install, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "fresh").glob("lib/*/site-packages/duckflow_words/__init__.py"))
    (folder / "a.txt").write_text("one two three\n")
    count = {"operation": "words.count", "args": {"path": "a.txt"}}
    shout = {"operation": "words.shout", "args": {"text": "quack"}}
    script = write_script(tmp_path / "script.jsonl", [decision("", count), decision("", shout)])
    ran = subprocess.run(
        [str(python), "-c", USES, str(folder), str(script)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert ran.returncode == 0, ran.stderr
    said = ran.stdout
    assert "a.txt has 3 words" in said
    assert 'asked: consent {\n  "text": "quack"\n}' in said
    assert "I am parrot:polly" in said
    assert "('words', '1.0', 'words.count', 'words.shout', 'parrot:', 'no tabs')" in said


def add_plugin(site: Path, name: str, code: str) -> None:
    """Write the files of an installed package by hand."""
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[duckflow.plugins]\n{name} = {name}_module:plugin\n")
    (site / f"{name}_module.py").write_text(code)


async def test_L7_a_plugin_that_fails_is_a_sentence(folder: Path, tmp_path: Path, monkeypatch):
    """SAFETY 6: a package in the workspace is not loaded as a plugin."""
    fine = "from duckflow.plugins import Plugin\nplugin = Plugin()\n"
    add_plugin(tmp_path / "site", "broken", "raise RuntimeError('no luck')\n")
    add_plugin(tmp_path / "site", "fine", fine)
    add_plugin(tmp_path / "site", "unwanted", "import sys; sys.exit(3)\n")
    add_plugin(folder / "lib", "planted", "raise SystemExit('it ran')\n")
    for place in (tmp_path / "site", folder / "lib"):
        monkeypatch.syspath_prepend(str(place))
    async with engine(folder, decision("Hello.")) as duck:
        facts = {one.name: one.error for one in duck.app.extensions.plugins}
        assert set(facts) == {"broken", "fine", "unwanted"}
        assert facts["broken"] == "RuntimeError: no luck"
        assert facts["fine"] == ""
        told = [one.values["name"] for one in duck.app.problems if one.key == "plugins.failed"]
        assert sorted(told) == ["broken", "unwanted"]
        assert await duck.app.chat.say("hi") == "done"
    assert {one.name for one in load_plugins(folder, ["broken", "unwanted"]).facts} == {"fine"}


def test_L7_a_plugin_takes_no_name_of_ours():
    async def run(_args, _access):
        return ToolResult(text="")

    def tool(operation: str, effect: str) -> Tool:
        return Tool(operation=operation, args=Frozen, summary="", effect=effect, run=run)

    async def opens(_name, _env):
        raise AssertionError

    failures = Failures()
    rows = [
        Plugin(operations=[tool("file_ops.read_file", "read")]),
        Plugin(operations=[tool("mine.go", "execute")]),
        Plugin(providers={"openai": opens}),
        Plugin(providers={"scripted": opens}),
        "no plugin",
    ]
    for row in rows:
        with failures.of(row), pytest.raises((TypeError, ValueError)):
            _checked("mine", row)
    failures.report()
    assert _checked("mine", lambda: Plugin(operations=[tool("mine.go", "read")])).operations


def test_L7_rows_of_the_table_of_checks_are_added_and_replaced():
    mine = Checker(name="no tabs", suffixes=(".txt",), arguments="{path}")
    table = with_rows([mine], {"ruff": {"suffixes": [".py"], "arguments": "mine"}})
    assert [one.arguments for one in table if one.name == "ruff"] == ["mine"]
    assert mine in table
    assert {one.name for one in table} == {one.name for one in CHECKERS} | {"no tabs"}
    assert with_rows((), {}) == CHECKERS


async def test_L7_a_broken_table_is_told(folder: Path):
    config_dir().mkdir(parents=True)
    (config_dir() / "checkers.toml").write_text("[x]\nsuffix = 1\n")
    with pytest.raises(UsageError):
        async with engine(folder):
            pass


async def test_L7_texts_of_ones_own_stand_in_for_ours(folder: Path):
    own = config_dir() / "prompts"
    own.mkdir(parents=True)
    (own / "base.txt").write_text("You are a goose. Quack.\n")
    async with engine(folder) as duck:
        prompt = await duck.app.model.preview(duck.state)
    assert prompt.request.messages[0].text.startswith("You are a goose.")
    failures = Failures()
    rows = (("nonsense.txt", "x", "own_unknown"), ("summaries.txt", "no slots", "own_lacks"))
    for name, content, key in rows:
        with failures.of(name):
            (own / name).write_text(content)
            with pytest.raises(UsageError) as wrong:
                check_own_templates()
            assert wrong.value.key == f"prompt.{key}"
            (own / name).unlink()
    failures.report()
