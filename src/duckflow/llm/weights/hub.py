"""Download a model's file from its makers' repository on the model hub, resuming where it stopped."""

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from duckflow.domain.errors import ProviderError
from duckflow.llm.weights.place import CHUNK, Report, WeightsFiles

if TYPE_CHECKING:
    import httpx2

CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 60.0
TRIES = 3
"""Most connections in a row that may break off without any new data."""

_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


def fetch_from_hub(place: WeightsFiles, report: Report) -> None:
    """Download the rest of the file. Resume after every break, until TRIES connections in a row fail."""
    import httpx2  # noqa: PLC0415 - only an installation needs it

    base = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    address = f"{base.rstrip('/')}/{place.weights.hub_repository}/resolve/main/{place.weights.file}"
    timeout = httpx2.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    # A failed connection is not retried: the wheels may be reachable instead.
    broken = (httpx2.ReadTimeout, httpx2.ReadError, httpx2.RemoteProtocolError)
    tries, most = TRIES, place.gathered()
    try:
        with httpx2.Client(follow_redirects=True, timeout=timeout) as client:
            while place.gathered() < place.weights.size and tries > 0:
                with suppress(*broken):
                    _download_rest(client, address, place, report)
                tries = TRIES if place.gathered() > most else tries - 1
                most = max(most, place.gathered())
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as exc:
        raise ProviderError("weights.hub_unreachable", address=address, reason=str(exc)) from exc
    if place.gathered() < place.weights.size:
        raise ProviderError("weights.hub_cut_off", address=address)


def _download_rest(client: "httpx2.Client", address: str, place: WeightsFiles, report: Report) -> None:
    start = place.gathered()
    # Byte positions would not apply to a compressed answer.
    headers = {"Accept-Encoding": "identity", "User-Agent": "duckflow"}
    if start:
        headers["Range"] = f"bytes={start}-"
    with client.stream("GET", address, headers=headers) as response:
        start = _check_start(response, address, start, place)
        place.cut(start)
        with place.appending() as out:
            for chunk in response.iter_bytes(CHUNK):
                out.write(chunk[: place.weights.size - out.tell()])
                report(place.progress(out.tell(), "hub"))
                if out.tell() == place.weights.size:
                    return


def _check_start(response: "httpx2.Response", address: str, start: int, place: WeightsFiles) -> int:
    """Return the position in the file where the answer starts. Raise ProviderError if it is another file."""
    declared = response.headers.get("Content-Length", "")
    given = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if response.status_code == 200:
        start = 0
    elif response.status_code != 206 or given is None or int(given[1]) != start:
        raise ProviderError("weights.hub_refused", address=address, status=response.status_code)
    if declared.isdigit() and start + int(declared) != place.weights.size:
        raise ProviderError("weights.wrong_data", source=address)
    return start
