"""The base loops follow what earlier requests used: bounded, explained, switched off at will."""

from hypothesis import given
from hypothesis import strategies as st

from duckflow.config.settings import DynamicLimits
from duckflow.domain.pacing.reasons import explain
from duckflow.domain.pacing.vitals import Vitals
from duckflow.pacemaker.limit import compute_limit, learned_base
from fakes.rows import every_row

LIMITS = DynamicLimits()


@every_row(
    ("used", "base"),
    [
        ([], 8),
        ([2] * 7, 8),
        ([2] * 8, 6),
        ([5] * 8, 8),
        ([6] * 8, 9),
        ([20] * 8, 10),
        ([1, 1, 1, 1, 1, 1, 1, 20], 6),
        ([4, 4, 5, 5, 6, 6, 7, 20], 9),
    ],
)
def test_I11_the_base_moves_toward_what_was_used_a_quarter_at_most(used, base):
    assert learned_base(8, used) == base


@given(st.integers(3, 40), st.lists(st.integers(1, 200), max_size=60))
def test_I11_it_never_goes_far_from_the_table(base, used):
    learned = learned_base(base, used)
    assert round(base * 0.75) <= learned <= round(base * 1.25)


def test_I11_what_was_learned_is_explained():
    limit = compute_limit("file_operation", Vitals(), 0.0, LIMITS, 0, [2] * 10)
    assert (limit.base, limit.table_base, limit.learned_from, limit.limit) == (6, 8, 10, 7)
    line = next(line for line in explain(limit) if line.key == "limit.learned")
    assert line.values == {"count": 10, "base": 6, "table": 8}
    plain = compute_limit("file_operation", Vitals(), 0.0, LIMITS)
    assert all(line.key != "limit.learned" for line in explain(plain))
