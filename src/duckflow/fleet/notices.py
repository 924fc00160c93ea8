"""Notices: tell the user's command and webhook that a run asks or ended. Each is kept until it was delivered.

A worker claims a notice for some time by postponing it, so that the notice of a killed worker is tried again.
Receivers may therefore get a notice twice, with the same id. The webhook's signature follows the
"Standard Webhooks" convention.
"""

import asyncio
import base64
import hashlib
import hmac
import http.client
import json
import os
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import sqlalchemy as sa

from duckflow.config.settings import FleetSettings
from duckflow.config.version import __version__
from duckflow.domain.errors import UsageError
from duckflow.domain.files.programs import find_program, program_environment
from duckflow.domain.frozen import Frozen
from duckflow.fleet.database import runs
from duckflow.fleet.questions import question_text
from duckflow.fleet.runs import FleetRun, Runs
from duckflow.fleet.worker_log import WorkerLog
from duckflow.llm.endpoints import is_loopback
from duckflow.loops.hooks.verdicts import HookShell

SECRET = "DUCKFLOW_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable
"""Variable with the secret that signs notices: `whsec_` and base64, or any other text."""

_TOLD = ("waiting", "done", "failed")
_MARGIN_S = 5.0
_WAIT_S = 2.0
_LONGEST_WAIT_S = 300.0


class DueNotice(Frozen):
    """Notice that this worker claimed, and the number of the try."""

    run: FleetRun
    tries: int
    told: str
    """Recipients that already got it."""
    until: float
    """Time until which it is claimed; it also identifies the claim."""


class Notices:
    """Delivers the notices of all runs in the database, also those of workers that were killed."""

    def __init__(self, runs: Runs, settings: FleetSettings, log: WorkerLog) -> None:
        self._runs = runs
        self._settings = settings
        self._log = log
        if settings.webhook:
            _check_address(settings.webhook)
        self.wanted = bool(settings.command or settings.webhook)

    def due_values(self) -> dict[str, object]:
        """Return the values of a run's row that make a notice due."""
        return (
            {"notice_due": self._runs.database.now, "notice_tries": 0, "notice_told": ""}
            if self.wanted
            else {}
        )

    def pending(self) -> bool:
        """Return True if a notice is not delivered yet."""
        query = sa.select(runs.c.id).where(runs.c.notice_due.is_not(None)).limit(1)
        with self._runs.database.begin() as connection:
            return self.wanted and connection.execute(query).first() is not None

    def claim(self) -> DueNotice | None:
        """Claim a notice that is due."""
        database = self._runs.database
        query = sa.select(runs.c.id, runs.c.notice_due, runs.c.notice_tries, runs.c.notice_told)
        query = query.add_columns(database.now.label("now"))
        query = query.where(runs.c.notice_due <= database.now).order_by(runs.c.notice_due).limit(1)
        with database.begin() as connection:
            found = connection.execute(query).first()
            if found is None:
                return None
            until = found.now + 2 * self._settings.timeout_s + _MARGIN_S
            mine = sa.update(runs).where(runs.c.id == found.id, runs.c.notice_due == found.notice_due)
            if not connection.execute(mine.values(notice_due=until)).rowcount:
                return None
        tries, told = found.notice_tries + 1, found.notice_told
        return DueNotice(run=self._runs.find(found.id), tries=tries, told=told, until=until)

    async def deliver(self, notice: DueNotice) -> None:
        """Deliver a notice, or set the time of the next try."""
        run, failures = notice.run, dict[str, str]()
        if run.state in _TOLD:
            body = json.dumps(notice_body(run, self._runs), ensure_ascii=False).encode("utf-8", "replace")
            failures = {one: await self._tell(one, run, body) for one in self._listeners(notice)}
        failure = "; ".join(filter(None, failures.values()))
        wait_s = None
        if failure and notice.tries < self._settings.tries:
            wait_s = min(_WAIT_S**notice.tries, _LONGEST_WAIT_S)
            self._log.report(run.id, "notice_failed", reason=failure, seconds=round(wait_s))
        elif failure:
            self._log.report(run.id, "notice_given_up", reason=failure, tries=notice.tries)
        elif failures:
            self._log.report(run.id, "notice_sent")
        told = " ".join([notice.told, *(one for one, reason in failures.items() if not reason)])
        await asyncio.to_thread(self._settle, notice, told, wait_s)

    def _listeners(self, notice: DueNotice) -> list[str]:
        wanted = {"command": self._settings.command, "webhook": self._settings.webhook}
        return [one for one, setting in wanted.items() if setting and one not in notice.told.split()]

    def _settle(self, notice: DueNotice, told: str, wait_s: float | None) -> None:
        database = self._runs.database
        mine = sa.update(runs).where(runs.c.id == notice.run.id, runs.c.notice_due == notice.until)
        due = None if wait_s is None else database.now + wait_s
        values = {"notice_due": due, "notice_tries": notice.tries, "notice_told": told}
        with database.begin() as connection:
            connection.execute(mine.values(values))

    async def _tell(self, listener: str, run: FleetRun, body: bytes) -> str:
        """Give the notice to the command or the webhook; return why that failed, else ""."""
        if listener == "command":
            return await self._run_command(body)
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                return await asyncio.to_thread(self._post, notice_id(run), body)
        except TimeoutError:
            return f"it took longer than {self._settings.timeout_s:g} s"

    async def _run_command(self, body: bytes) -> str:
        home = Path.home()
        shell = find_program("/bin/sh", Path("/nonexistent"), os.environ)
        environment = program_environment(Path("/nonexistent"), os.environ)
        ended = await HookShell(shell, str(home), environment).run(
            self._settings.command, body, self._settings.timeout_s
        )
        if ended.exit_code == 0:
            return ""
        code = "" if ended.exit_code is None else f"exit code {ended.exit_code}"
        return ": ".join(part for part in (code, ended.errors) if part)

    def _post(self, about: str, body: bytes) -> str:
        at = int(time.time())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"duckflow/{__version__}",
            "webhook-id": about,
            "webhook-timestamp": str(at),
        }
        if secret := os.environ.get(SECRET):
            headers["webhook-signature"] = sign(secret, about, at, body)
        address = self._settings.webhook
        proxies = urllib.request.ProxyHandler({} if is_loopback(address) else None)
        opener = urllib.request.build_opener(proxies, _NoRedirects)
        request = urllib.request.Request(address, body, headers, method="POST")  # noqa: S310 - checked above
        try:
            with opener.open(request, timeout=self._settings.timeout_s):
                return ""
        except urllib.error.HTTPError as exc:
            exc.close()
            return f"HTTP {exc.code}"
        except (OSError, http.client.HTTPException) as exc:
            return str(exc) or type(exc).__name__


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Treats a redirect as a failure, so that only the host that the user named gets the notice."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """Follow nothing."""


def notice_id(run: FleetRun) -> str:
    """Return the id of the notice about a run's present state, the same in every try."""
    return f"{run.id}-{run.leg}-{run.state}"


def notice_body(run: FleetRun, stored: Runs) -> dict[str, object]:
    """Return what a notice says."""
    report = run.report
    return {
        "id": notice_id(run),
        "type": "run.asks" if run.state == "waiting" else "run.ended",
        "run": run.id,
        "repository": run.repository,
        "request": run.request,
        "state": run.state,
        "outcome": run.outcome,
        "asks": question_text(stored.state(run.id)) if run.state == "waiting" else "",
        "question": run.question if run.state == "waiting" else "",
        "branch": run.branch,
        "satisfaction": report.satisfaction if report else None,
        "error": report.error if report else "",
        "cost_usd": run.cost_usd,
        "minutes": round(run.worked_s / 60, 2),
    }


def sign(secret: str, about: str, at: int, body: bytes) -> str:
    """Return the signature of a notice: HMAC-SHA256 of its id, time and body."""
    kind, _, coded = secret.partition("_")
    key = base64.b64decode(coded) if kind == "whsec" else secret.encode()
    signed = hmac.digest(key, f"{about}.{at}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(signed).decode()}"


def _check_address(address: str) -> None:
    try:
        parts = urlsplit(address)
        safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(address))
        usable = bool(parts.hostname) and parts.port != 0 and parts.username is None
    except ValueError:
        safe = usable = False
    if not (safe and usable):
        raise UsageError("fleet.bad_webhook", address=address)
