"""A file the user already has, as a source: copied into the cache, so that it stays what was checked."""

import os
from pathlib import Path

from duckflow.domain.errors import UsageError
from duckflow.llm.weights.place import CHUNK, WeightsFiles
from duckflow.llm.weights.progress import Report


def fetch_from_file(path: Path, place: WeightsFiles, report: Report) -> None:
    """Gather the weights from `path`; what was gathered before is dropped."""
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
