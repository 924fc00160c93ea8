"""A table that is gone through inside one test loses no row that fails."""

import os
from pathlib import Path

import pytest

from fakes.rows import every_row


def test_every_row_that_fails_is_listed_by_its_name():
    gone_through = []

    @every_row(("number", "square"), [(2, 4), (3, 8), pytest.param(4, 17, id="the last")])
    def table(number: int, square: int):
        gone_through.append(number)
        assert number * number == square

    with pytest.raises(AssertionError) as failed:
        table()
    assert gone_through == [2, 3, 4]
    assert "2 of 3 rows failed" in str(failed.value)
    assert "--- 3, 8 (test_rows.py:" in str(failed.value)
    assert "--- the last (test_rows.py:" in str(failed.value)


async def test_a_check_that_raises_nothing_and_an_asynchronous_row_count_as_well():
    @every_row("number", ["1", "one"])
    async def table(number: str):
        with pytest.raises(ValueError, match="invalid literal"):
            int(number)

    with pytest.raises(AssertionError, match=r"(?s)1 of 2 rows failed.*--- '1'"):
        await table()


def test_a_table_without_rows_fails():
    table = every_row("row", [])(lambda row: None)
    with pytest.raises(AssertionError, match="nothing was tested"):
        table()


@every_row("row", range(3))
def test_each_row_has_its_own_folders_and_home(tmp_path: Path, folder: Path, row: int):
    for place in (tmp_path, folder, Path(os.environ["HOME"])):
        assert not (place / "mark").exists()
        (place / "mark").touch()
