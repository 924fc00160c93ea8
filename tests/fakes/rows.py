"""One behaviour, many rows: a table is gone through inside one test, and every row that fails is listed."""

import functools
import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from duckflow.i18n import catalogue
from fakes.home import move_into

_LONGEST_NAME = 120


class Failures:
    """`with failures.of(row): assert …` for each row, then `failures.report()`."""

    def __init__(self) -> None:
        self._rows = 0
        self._failed: list[tuple[str, BaseException]] = []

    @contextmanager
    def of(self, row: object) -> Iterator[None]:
        """Note what fails inside, and go on."""
        self._rows += 1
        try:
            yield
        except (Exception, pytest.fail.Exception) as exc:
            self._failed.append((str(row)[:_LONGEST_NAME], exc))

    def report(self) -> None:
        """Fail with every row that failed; the traceback is that of the first."""
        assert self._rows, "no rows: nothing was tested"
        if self._failed:
            listed = "\n".join(f"--- {row} ({_place(exc)})\n{exc!r}" for row, exc in self._failed)
            raise AssertionError(
                f"{len(self._failed)} of {self._rows} rows failed:\n{listed}"
            ) from self._failed[0][1]


def _place(exc: BaseException) -> str:
    """The innermost line of a test in the exception's traceback."""
    frames = traceback.extract_tb(exc.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).name.startswith("test_")]
    last = (ours or frames)[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


class _Row(NamedTuple):
    name: str
    values: dict[str, Any]


def every_row(
    names: str | Sequence[str],
    rows: Iterable[Any],
    ids: Callable[[Any], object] | Iterable[str] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Written like `pytest.mark.parametrize`, but one test that lists all rows that fail.

    Each row has its own `tmp_path`, `folder` and home; all other fixtures are shared by the rows.
    """
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    single = isinstance(names, str) and len(columns) == 1
    if not (ids is None or callable(ids)):
        ids = list(ids)
    table = [_read(columns, row, ids, place, single=single) for place, row in enumerate(rows)]

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def run(*own: Any, **fixtures: Any) -> None:
            failures = Failures()
            for place, row in enumerate(table):
                with failures.of(row.name), _own_world(fixtures, place) as world:
                    test(*own, **row.values, **world)
            failures.report()

        @functools.wraps(test)
        async def run_async(*own: Any, **fixtures: Any) -> None:
            failures = Failures()
            for place, row in enumerate(table):
                with failures.of(row.name), _own_world(fixtures, place) as world:
                    await test(*own, **row.values, **world)
            failures.report()

        chosen: Any = run_async if inspect.iscoroutinefunction(test) else run
        given = inspect.signature(test)
        left = [parameter for name, parameter in given.parameters.items() if name not in columns]
        chosen.__signature__ = given.replace(parameters=left)
        return chosen

    return decorate


def _read(columns: list[str], row: Any, ids: Any, place: int, *, single: bool) -> _Row:
    name = None
    if isinstance(row, type(pytest.param())):
        assert not row.marks, "a row has no marks: write a test of its own"
        values, name = row.values, row.id
    else:
        values = (row,) if single else tuple(row)
    if ids is not None and name is None:
        name = " ".join(str(ids(value)) for value in values) if callable(ids) else ids[place]
    return _Row(name or ", ".join(map(repr, values)), dict(zip(columns, values, strict=True)))


@contextmanager
def _own_world(fixtures: dict[str, Any], place: int) -> Iterator[dict[str, Any]]:
    """The fixtures for one row, in English, with folders and a home that no other row has written into."""
    catalogue.set_language("en")
    around = fixtures.get("tmp_path") or fixtures.get("folder")
    if around is None:
        yield fixtures
        return
    made = dict(fixtures)
    mine, home = around / f"row{place}", around / f"home{place}"
    for folder in (mine, home):
        folder.mkdir()
    if "tmp_path" in fixtures:
        made["tmp_path"] = mine
    if "folder" in fixtures:
        made["folder"] = mine / "work"
        made["folder"].mkdir()
    with pytest.MonkeyPatch.context() as monkeypatch:
        move_into(home, monkeypatch)
        yield made
