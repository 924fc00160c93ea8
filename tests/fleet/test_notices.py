"""M8: notices to the user's command and webhook when a run asks or ends."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import sqlalchemy as sa

from duckflow.config.settings import FleetSettings
from duckflow.domain.errors import UsageError
from duckflow.fleet.database import runs
from duckflow.fleet.fleet import Fleet, open_fleet
from duckflow.fleet.notices import SECRET, Notices, sign
from duckflow.fleet.runs import RunOptions, RunReport
from duckflow.fleet.worker_log import WorkerLog
from fakes.repository import make_repository
from fakes.rows import every_row

KEY = b"a key of the user's"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with open_fleet(f"sqlite:///{tmp_path / 'fleet.db'}") as opened:
        yield opened


class Receiver(ThreadingHTTPServer):
    """A web server that answers with these statuses, one after another."""

    def __init__(self, statuses: list[int]) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.statuses = statuses
        self.got: list[tuple[dict[str, str], bytes]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/told?by=duckflow"


class Answer(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(self.server.statuses.pop(0))
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.server.got.append(({"followed": self.path}, b""))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def receiver(*statuses: int) -> Iterator[Receiver]:
    server = Receiver(list(statuses))
    serving = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    try:
        yield server
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def ended_run(fleet: Fleet, folder: Path, notices: Notices) -> str:
    (run,) = fleet.submit(make_repository(folder), "Do it", RunOptions())
    mine = fleet.runs.take("here", 60)
    assert mine is not None
    report = RunReport(exit_code=0).model_dump_json()
    fleet.runs.note(mine, {"state": "done", "outcome": "done", "report": report, **notices.due_values()})
    return run


def come_due(fleet: Fleet) -> None:
    """Make the next try due now."""
    with fleet.runs.database.begin() as connection:
        connection.execute(sa.update(runs).where(runs.c.notice_due.is_not(None)).values(notice_due=0.0))


async def test_M8_a_notice_is_signed_and_tried_until_it_arrives_and_redirects_are_not_followed(
    fleet: Fleet, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The command, which succeeded at once, is not run again."""
    monkeypatch.setenv(SECRET, f"whsec_{base64.b64encode(KEY).decode()}")
    told = tmp_path / "told"
    with receiver(500, 302, 204) as server:
        settings = FleetSettings(command=f"cat >> {told}; echo >> {told}", webhook=server.address)
        notices = Notices(fleet.runs, settings, WorkerLog(fleet.runs))
        run = ended_run(fleet, folder, notices)
        for _ in range(3):
            assert notices.pending()
            come_due(fleet)
            notice = notices.claim()
            assert notice is not None
            await notices.deliver(notice)
        assert not notices.pending()
        assert notices.claim() is None
    assert len(server.got) == 3, "a redirect was followed"
    headers, body = server.got[-1]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.digest(KEY, signed, hashlib.sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert headers["webhook-id"] == f"{run}-1-done"
    assert [json.loads(line) for line in told.read_text().splitlines()] == [json.loads(body)]
    assert json.loads(body)["type"] == "run.ended"
    said = [one.text for one in fleet.runs.logged(run)]
    assert [one.partition(":")[0] for one in said[-3:]] == [
        "notice not delivered, next try in 2 s",
        "notice not delivered, next try in 4 s",
        "notice delivered",
    ]


async def test_M8_a_notice_that_fails_too_often_or_takes_too_long_is_given_up(fleet: Fleet, folder: Path):
    settings = FleetSettings(command="sleep 60", timeout_s=0.1, tries=1)
    notices = Notices(fleet.runs, settings, WorkerLog(fleet.runs))
    run = ended_run(fleet, folder, notices)
    notice = notices.claim()
    assert notice is not None
    assert notices.claim() is None, "it is claimed"
    async with asyncio.timeout(30):
        await notices.deliver(notice)
    assert not notices.pending()
    assert "given up after 1 tries" in fleet.runs.logged(run)[-1].text


async def test_M8_what_is_over_before_the_notice_is_not_told(fleet: Fleet, folder: Path, tmp_path: Path):
    """A question that was answered meanwhile sends no notice; without settings, no notice is due."""
    told = tmp_path / "told"
    notices = Notices(fleet.runs, FleetSettings(command=f"touch {told}"), WorkerLog(fleet.runs))
    run = ended_run(fleet, folder, notices)
    with fleet.runs.database.begin() as connection:
        connection.execute(sa.update(runs).where(runs.c.id == run).values(state="queued"))
    notice = notices.claim()
    assert notice is not None
    await notices.deliver(notice)
    assert not notices.pending()
    assert not told.exists()
    assert Notices(fleet.runs, FleetSettings(), WorkerLog(fleet.runs)).due_values() == {}


@every_row(
    ("address", "fits"),
    [
        ("https://example.com/hook", True),
        ("http://localhost:8080/hook", True),
        ("http://example.com/hook", False),
        ("ftp://example.com/hook", False),
        ("https://", False),
        ("https://me:word@example.com/", False),
        ("https://example.com:99999/", False),
    ],
)
def test_M8_only_an_encrypted_or_local_webhook_is_accepted(address: str, fits: bool, tmp_path: Path):
    with open_fleet(f"sqlite:///{tmp_path / 'fleet.db'}") as fleet:
        try:
            Notices(fleet.runs, FleetSettings(webhook=address), WorkerLog(fleet.runs))
        except UsageError:
            assert not fits
        else:
            assert fits


def test_M8_a_secret_of_any_form_signs():
    """The example of the Standard Webhooks specification, and a plain secret."""
    about, at = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330
    known = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", about, at, b'{"test": 2432232314}') == known
    assert sign("plain", about, at, b"{}").startswith("v1,")
