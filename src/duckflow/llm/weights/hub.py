"""The makers' own repository on the model hub, as a source: one file by HTTP, going on where it stopped."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from duckflow.domain.errors import ProviderError
from duckflow.llm.weights.place import CHUNK, Report, WeightsFiles

if TYPE_CHECKING:
    import httpx2

CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 60.0
TRIES = 3
"""How often in a row a connection may break off without having brought anything."""

_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


def fetch_from_hub(place: WeightsFiles, report: Report) -> None:
    """Gather the rest of the file from the hub."""
    import httpx2  # noqa: PLC0415 - only an installation needs it

    base = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    address = f"{base.rstrip('/')}/{place.weights.hub_repository}/resolve/main/{place.weights.file}"
    timeout = httpx2.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    try:
        with httpx2.Client(follow_redirects=True, timeout=timeout) as client:
            _download(client, address, place, report)
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as exc:
        raise ProviderError("weights.hub_unreachable", address=address, reason=str(exc)) from exc
    if place.gathered() < place.weights.size:
        raise ProviderError("weights.hub_cut_off", address=address)


def _download(client: "httpx2.Client", address: str, place: WeightsFiles, report: Report) -> None:
    """Go on after every break, as long as that brings the end nearer."""
    import httpx2  # noqa: PLC0415 - as above

    # A hub that can't be reached at all is not asked twice: the wheels may be near.
    broken = (httpx2.ReadTimeout, httpx2.ReadError, httpx2.RemoteProtocolError)
    tries, most = TRIES, place.gathered()
    while place.gathered() < place.weights.size and tries > 0:
        with suppress(*broken):
            _download_rest(client, address, place, report)
        tries = TRIES if place.gathered() > most else tries - 1
        most = max(most, place.gathered())


def _download_rest(client: "httpx2.Client", address: str, place: WeightsFiles, report: Report) -> None:
    start = place.gathered()
    # A compressed answer would make nonsense of byte positions.
    headers = {"Accept-Encoding": "identity", "User-Agent": "duckflow"}
    if start:
        headers["Range"] = f"bytes={start}-"
    with client.stream("GET", address, headers=headers) as response:
        start = _check_start(response, address, start, place)
        place.cut(start)
        with place.appending() as out:
            for chunk in _first(place.weights.size - start, response.iter_bytes(CHUNK)):
                out.write(chunk)
                report(place.progress(out.tell(), "hub"))


def _first(size: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """No more than `size` bytes, however much is sent."""
    for chunk in chunks:
        yield chunk[:size]
        size -= len(chunk)
        if size <= 0:
            return


def _check_start(response: "httpx2.Response", address: str, start: int, place: WeightsFiles) -> int:
    """Where in the file this answer begins; an answer that is not this file is refused before it is read."""
    declared = response.headers.get("Content-Length", "")
    given = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if response.status_code == 200:
        start = 0
    elif response.status_code != 206 or given is None or int(given[1]) != start:
        raise ProviderError("weights.hub_refused", address=address, status=response.status_code)
    if declared.isdigit() and start + int(declared) != place.weights.size:
        raise ProviderError("weights.wrong_data", source=address)
    return start
