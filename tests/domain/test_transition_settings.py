"""D2: the configuration can change the transition table."""

from pathlib import Path

import pytest

from duckflow.config.loading import load
from duckflow.domain.errors import UsageError
from duckflow.domain.transitions import PERMITTED, Step


def configured(own_home: Path, text: str):
    folder = own_home / ".config" / "duckflow"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(text)
    return load(own_home).settings.transitions


def test_a_table_of_the_users_own_is_used(own_home: Path):
    table = configured(own_home, '[transitions.permitted]\nPLANNING = ["REVIEW"]\n')
    assert table.permit(Step.PLANNING, Step.REVIEW)
    assert not table.permit(Step.PLANNING, Step.EXECUTION)
    assert table.permit(Step.EXECUTION, Step.PLANNING, on_error=True)
    for start, ends in PERMITTED.items():
        if start != Step.PLANNING:
            assert table.permitted[start] == ends, "rows that are not named keep their default"


def test_a_step_that_does_not_exist_is_a_clear_mistake(own_home: Path):
    with pytest.raises(UsageError):
        configured(own_home, '[transitions.permitted]\nPLANNING = ["DANCING"]\n')
