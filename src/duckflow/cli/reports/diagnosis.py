"""Checks of `duckflow doctor`. They change nothing and load no model."""

import asyncio
import importlib.util
import os
import platform
import pwd
import shutil
import sqlite3
import stat
import sys
from collections.abc import Iterator
from contextlib import aclosing, closing, suppress
from pathlib import Path
from typing import Literal, NamedTuple

from duckflow.app.models import choose
from duckflow.app.places import COPIES, DATABASE, WINDOWS
from duckflow.config.loading import load, user_file
from duckflow.config.places import state_dir
from duckflow.config.settings import Settings
from duckflow.config.version import __version__
from duckflow.domain.errors import UserError
from duckflow.i18n.catalogue import text
from duckflow.llm.endpoints import PROVIDERS
from duckflow.llm.providers import open_client
from duckflow.llm.weights.installation import find
from duckflow.llm.windows import LearnedWindows
from duckflow.safety.sandbox.child.cgroups import memory_places
from duckflow.safety.sandbox.shell import Shell
from duckflow.tools.code.rows import find_servers
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
    """Return a finding as text for the user."""
    title = text(f"doctor.{finding.check}")
    line = text("doctor.line", sign=SIGNS[finding.state], title=title, found=finding.found)
    return f"{line}\n{text('doctor.advice', advice=finding.advice)}" if finding.advice else line


def examine(folder: Path, model: str | None, *, trusted: bool) -> Iterator[DoctorFinding]:
    """Run all checks, in the order of their display."""
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    python, settings = platform.python_version(), Settings()
    found = text("doctor.version_is", version=__version__, python=python, system=system)
    yield DoctorFinding("version", "ok", found)
    try:
        loaded = load(folder, trusted=trusted, flags={"llm.model": model})
    except UserError as error:
        yield _broken("configuration", error)
    else:
        settings, path = loaded.settings, user_file()
        key = "doctor.configuration_is" if path.exists() else "doctor.configuration_default"
        yield DoctorFinding("configuration", "ok", text(key, path=path))
        for notice in loaded.notices:
            yield DoctorFinding("configuration", "lacking", text(notice.key, **notice.values))
    yield asyncio.run(_model(settings))
    yield _embedded(settings)
    yield asyncio.run(_sandbox(folder, settings))
    yield from _storage()
    yield _language()
    yield _terminal()
    yield _program("git", shutil.which("git"))
    yield _program("ripgrep", find_ripgrep(folder.resolve()))
    yield _language_servers(folder, settings)


async def _model(settings: Settings) -> DoctorFinding:
    try:
        choice = await choose(settings, os.environ)
    except UserError as error:
        return _broken("model", error)
    name, reason = choice.name, text(choice.reason_key, **choice.values)
    embedded = settings.llm.embedded
    if name == embedded.full_name and not embedded.path and not find(embedded.model):
        found = text("doctor.model_not_installed", model=name, reason=reason)
        return DoctorFinding("model", "lacking", found, text("doctor.model_advice"))
    found = text("doctor.model_is", model=name, reason=reason)
    provider = PROVIDERS.get(name.partition(":")[0])
    if provider is not None and provider.wire != "pydantic_ai":  # that one takes seconds to import
        with suppress(UserError):  # the first message meets the same error, and reports it
            client = await open_client(
                name, settings.llm, os.environ, learned=LearnedWindows(state_dir() / WINDOWS)
            )
            await client.aclose()
            window, source = f"{client.traits.window:,}", text(f"window.{client.traits.window_from}")
            found = text("doctor.model_window", model=found, window=window, source=source)
    return DoctorFinding("model", "ok", found)


def _embedded(settings: Settings) -> DoctorFinding:
    name = settings.llm.embedded.model
    try:
        installed = find(name) is not None
    except UserError as error:
        return _broken("embedded", error)
    if not installed:
        return DoctorFinding("embedded", "ok", text("doctor.embedded_none"))
    if importlib.util.find_spec("xllamacpp") is None:
        advice = text("doctor.runtime_advice")
        return DoctorFinding("embedded", "lacking", text("doctor.runtime_none"), advice)
    return DoctorFinding("embedded", "ok", text("doctor.embedded_is", name=name))


async def _sandbox(folder: Path, settings: Settings) -> DoctorFinding:
    copies: Path | None = None
    with suppress(UserError):  # reported with the state
        copies = state_dir() / COPIES
    async with aclosing(Shell(folder, settings.shell, copies=copies)) as shell:
        sandbox = await shell.sandbox()
    found = text(sandbox.reason, **sandbox.values)
    if sandbox.level not in ("none", "external") and not any(memory_places()):
        found = f"{found} {text('doctor.memory_partly')}"
    advice = text(sandbox.advice) if sandbox.advice else ""
    if not advice and copies is not None and sandbox.level in ("namespaces", "bubblewrap"):
        advice = "" if sandbox.copies else _why_no_copies(folder)
    return DoctorFinding("sandbox", "lacking" if advice else "ok", found, advice)


def _why_no_copies(folder: Path) -> str:
    owner = folder.stat().st_uid
    why = "doctor.copies_of_others" if owner != os.geteuid() else "doctor.copies_unsupported"
    return text(why, owner=_name_of(owner))


def _name_of(user: int) -> str:
    with suppress(KeyError):
        return pwd.getpwuid(user).pw_name
    return str(user)


def _storage() -> Iterator[DoctorFinding]:
    try:
        place = state_dir()
        mode = stat.S_IMODE(place.stat().st_mode)
    except UserError as error:
        yield _broken("state", error)
        return
    values = {"path": place, "mode": f"{mode:o}"}
    if mode & 0o077:
        advice = text("doctor.state_advice", path=place)
        yield DoctorFinding("state", "broken", text("doctor.state_open", **values), advice)
    else:
        yield DoctorFinding("state", "ok", text("doctor.state_is", **values))
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
    values = {"name": os.environ.get("TERM") or "-", "encoding": encoding}
    if encoding.replace("-", "") != "utf8":
        found = text("doctor.terminal_not_utf8", **values)
        return DoctorFinding("terminal", "lacking", found, text("doctor.terminal_advice"))
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return DoctorFinding("terminal", "ok", text("doctor.terminal_none"))
    size = shutil.get_terminal_size()
    found = text("doctor.terminal_is", columns=size.columns, lines=size.lines, **values)
    return DoctorFinding("terminal", "ok", found)


def _program(name: str, path: object) -> DoctorFinding:
    if path:
        return DoctorFinding(name, "ok", text("doctor.found_at", path=path))
    return DoctorFinding(name, "lacking", text(f"doctor.{name}_none"))


def _language_servers(folder: Path, settings: Settings) -> DoctorFinding:
    if not settings.code.enabled:
        return DoctorFinding("language_servers", "ok", text("doctor.language_servers_off"))
    found = find_servers(settings.code, folder.resolve(), os.environ)
    listed = ", ".join(f"{one.row.name} ({' '.join(one.row.suffixes)})" for one in found)
    return DoctorFinding("language_servers", "ok", listed or text("doctor.language_servers_none"))


def _broken(check: str, error: UserError) -> DoctorFinding:
    return DoctorFinding(check, "broken", text(error.key, **error.values))
