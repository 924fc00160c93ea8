"""I3: how complex the work is, from what can be counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.pacemaker.limit import measure
from fakes.rows import every_row

counts = st.integers(0, 50)


@every_row(
    ("files", "messages", "errors", "actions", "complexity"),
    [
        (0, 0, 0, 0, 0.3),
        (8, 0, 0, 0, 1 / 3),
        (4, 0, 0, 0, 1 / 6),
        (0, 15, 0, 0, 1 / 3),
        (0, 3, 0, 0, 1 / 15),
        (0, 0, 0, 10, 0.0),
        (0, 0, 1, 10, 0.1),
        (0, 0, 1, 3, 1 / 3),
        (0, 0, 3, 3, 1 / 3),
        (8, 15, 5, 5, 1.0),
        (80, 150, 50, 50, 1.0),
        (4, 6, 1, 5, (0.5 + 0.4 + 0.6) / 3),
        (0, 1, 9, 0, 1 / 45),
    ],
)
def test_I3_it_is_the_mean_of_files_messages_and_errors(files, messages, errors, actions, complexity):
    found = measure(files=files, messages=messages, errors=errors, actions=actions)
    assert found == pytest.approx(complexity)


@given(st.builds(dict, files=counts, messages=counts, errors=counts, actions=counts))
def test_I3_it_is_never_outside_its_bounds(counted):
    assert 0 <= measure(**counted) <= 1


@given(
    st.builds(dict, files=counts, messages=counts, errors=counts, actions=st.integers(1, 50)),
    st.sampled_from(["files", "messages", "errors"]),
    counts,
)
def test_I3_more_of_anything_never_makes_it_simpler(counted, name, more):
    grown = {**counted, name: counted[name] + more}
    assert measure(**grown) >= measure(**counted)
