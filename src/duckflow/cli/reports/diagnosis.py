"""Checks of `duckflow doctor`. They change nothing and load no model."""

import asyncio
import importlib.util
import os
import platform
import shutil
import sqlite3
import stat
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal, NamedTuple

from duckflow.app.models import choose
from duckflow.app.places import DATABASE, WINDOWS
from duckflow.config.loading import LoadedSettings, load, user_file
from duckflow.config.places import state_dir
from duckflow.config.settings import Settings
from duckflow.config.version import __version__
from duckflow.domain.errors import UserError
from duckflow.i18n.catalogue import text
from duckflow.llm.endpoints import PROVIDERS
from duckflow.llm.providers import open_client
from duckflow.llm.weights.installation import find
from duckflow.llm.windows import LearnedWindows
from duckflow.safety.sandbox.shell import Shell
from duckflow.tools.searching.ripgrep import find_ripgrep

State = Literal["ok", "lacking", "broken"]

SIGNS: dict[State, str] = {"ok": "✓", "lacking": "!", "broken": "✗"}


class DoctorFinding(NamedTuple):
    """Result of one check, with advice if something is missing."""

    check: str
    state: State
    found: str
    advice: str = ""


def show(finding: DoctorFinding) -> str:
    """Return the finding for people."""
    title = text(f"doctor.{finding.check}")
    line = text("doctor.line", sign=SIGNS[finding.state], title=title, found=finding.found)
    return f"{line}\n{text('doctor.advice', advice=finding.advice)}" if finding.advice else line


def examine(folder: Path, model: str | None, *, trusted: bool) -> Iterator[DoctorFinding]:
    """Run all checks, in the order of their display."""
    yield _version()
    settings = Settings()
    try:
        loaded = load(folder, trusted=trusted, flags={"llm.model": model})
    except UserError as error:
        yield _broken("configuration", error)
    else:
        settings = loaded.settings
        yield from _configuration(loaded)
    yield asyncio.run(_model(settings))
    yield _embedded(settings)
    yield asyncio.run(_sandbox(folder, settings))
    yield from _storage()
    yield _language()
    yield _terminal()
    yield _program("git", shutil.which("git"))
    yield _program("ripgrep", find_ripgrep(folder.resolve()))


def _version() -> DoctorFinding:
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    found = text("doctor.version_is", version=__version__, python=platform.python_version(), system=system)
    return DoctorFinding("version", "ok", found)


def _configuration(loaded: LoadedSettings) -> Iterator[DoctorFinding]:
    path = user_file()
    key = "doctor.configuration_is" if path.exists() else "doctor.configuration_default"
    yield DoctorFinding("configuration", "ok", text(key, path=path))
    for notice in loaded.notices:
        yield DoctorFinding("configuration", "lacking", text(notice.key, **notice.values))


async def _model(settings: Settings) -> DoctorFinding:
    try:
        choice = await choose(settings, os.environ)
    except UserError as error:
        return _broken("model", error)
    reason = text(choice.reason_key, **choice.values)
    missing = choice.name == "embedded" and not settings.llm.embedded.path and not find(_name(settings))
    key = "doctor.model_not_installed" if missing else "doctor.model_is"
    found = text(key, model=choice.name, reason=reason)
    return DoctorFinding(
        "model",
        "lacking" if missing else "ok",
        await _with_window(found, choice.name, settings),
        text("doctor.model_advice") if missing else "",
    )


async def _with_window(found: str, name: str, settings: Settings) -> str:
    """Add the size of the model's window, if this needs no heavy import."""
    provider = PROVIDERS.get(name.partition(":")[0])
    if provider is None or provider.wire == "pydantic_ai":
        return found
    try:
        learned = LearnedWindows(state_dir() / WINDOWS)
        client = await open_client(name, settings.llm, os.environ, learned=learned)
    except UserError:
        return found  # the first message fails with the same error, and reports it
    traits = client.traits
    await client.aclose()
    source = text(f"window.{traits.window_from}")
    return text("doctor.model_window", model=found, window=f"{traits.window:,}", source=source)


def _embedded(settings: Settings) -> DoctorFinding:
    try:
        installed = find(_name(settings)) is not None
    except UserError as error:
        return _broken("embedded", error)
    if not installed:
        return DoctorFinding("embedded", "ok", text("doctor.embedded_none"))
    if importlib.util.find_spec("xllamacpp") is None:
        advice = text("doctor.runtime_advice")
        return DoctorFinding("embedded", "lacking", text("doctor.runtime_none"), advice)
    return DoctorFinding("embedded", "ok", text("doctor.embedded_is", name=_name(settings)))


def _name(settings: Settings) -> str:
    return settings.llm.embedded.model


async def _sandbox(folder: Path, settings: Settings) -> DoctorFinding:
    shell = Shell(folder, settings.shell)
    try:
        sandbox = await shell.sandbox()
    finally:
        await shell.aclose()
    return DoctorFinding(
        "sandbox",
        "ok" if sandbox.advice is None else "lacking",
        text(sandbox.reason, **sandbox.values),
        text(sandbox.advice) if sandbox.advice else "",
    )


def _storage() -> Iterator[DoctorFinding]:
    try:
        place = state_dir()
        mode = stat.S_IMODE(place.stat().st_mode)
    except UserError as error:
        yield _broken("state", error)
        return
    closed = mode & 0o077 == 0
    yield DoctorFinding(
        "state",
        "ok" if closed else "broken",
        text("doctor.state_is" if closed else "doctor.state_open", path=place, mode=f"{mode:o}"),
        "" if closed else text("doctor.state_advice", path=place),
    )
    yield _database(place / DATABASE)


def _database(path: Path) -> DoctorFinding:
    if not path.exists():
        return DoctorFinding("database", "ok", text("doctor.database_none"))
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            said = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.Error as exc:
        said = str(exc)
    if said == "ok":
        size = f"{path.stat().st_size / 1e6:.1f}"
        return DoctorFinding("database", "ok", text("doctor.database_is", megabytes=size))
    found = text("doctor.database_damaged", reason=said)
    return DoctorFinding("database", "broken", found, text("doctor.database_advice"))


def _language() -> DoctorFinding:
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    locale = next((os.environ[name] for name in names if os.environ.get(name)), "-")
    return DoctorFinding("language", "ok", text("doctor.language_is", locale=locale))


def _terminal() -> DoctorFinding:
    encoding = (sys.stdout.encoding or "").lower()
    name = os.environ.get("TERM") or "-"
    if encoding.replace("-", "") != "utf8":
        found = text("doctor.terminal_not_utf8", name=name, encoding=encoding)
        return DoctorFinding("terminal", "lacking", found, text("doctor.terminal_advice"))
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return DoctorFinding("terminal", "ok", text("doctor.terminal_none"))
    size = shutil.get_terminal_size()
    values = {"name": name, "columns": size.columns, "lines": size.lines, "encoding": encoding}
    return DoctorFinding("terminal", "ok", text("doctor.terminal_is", **values))


def _program(name: Literal["git", "ripgrep"], path: object) -> DoctorFinding:
    if path:
        return DoctorFinding(name, "ok", text("doctor.found_at", path=path))
    return DoctorFinding(name, "lacking", text(f"doctor.{name}_none"))


def _broken(check: str, error: UserError) -> DoctorFinding:
    return DoctorFinding(check, "broken", text(error.key, **error.values))
