"""I9: limits on tokens and cost, with a warning on the way."""

from hypothesis import given
from hypothesis import strategies as st

from duckflow.config.settings import Budget
from duckflow.domain.state import Request
from duckflow.i18n.catalogue import set_language, text
from duckflow.pacemaker.budget import BudgetLevel, explain_budget, judge
from fakes.rows import every_row

BOTH = Budget(max_tokens=1000, max_cost_usd=2.0)


def spent(**used) -> Request:
    return Request(request_id="r", text="", **used)


@every_row(
    ("request_", "budget", "level", "resource"),
    [
        (spent(tokens=799), BOTH, "fine", "tokens"),
        (spent(tokens=800), BOTH, "near", "tokens"),
        (spent(tokens=999), BOTH, "near", "tokens"),
        (spent(tokens=1000), BOTH, "spent", "tokens"),
        (spent(tokens=5000), BOTH, "spent", "tokens"),
        (spent(tokens=100, cost_usd=1.59), BOTH, "fine", "cost"),
        (spent(tokens=100, cost_usd=1.6), BOTH, "near", "cost"),
        (spent(tokens=900, cost_usd=2.0), BOTH, "spent", "cost"),
        (spent(tokens=1000, cost_usd=1.0), BOTH, "spent", "tokens"),
        (spent(tokens=10**9, cost_usd=10.0), Budget(), "fine", None),
        (spent(tokens=10**9), Budget(max_cost_usd=1.0), "fine", None),
        (spent(tokens=1000, grants=2), BOTH, "fine", "tokens"),
        (spent(tokens=1600, grants=2), BOTH, "near", "tokens"),
        (spent(tokens=2000, grants=2), BOTH, "spent", "tokens"),
    ],
)
def test_I9_warned_at_eighty_per_cent_and_asked_at_all_of_it(request_, budget, level, resource):
    found = judge(request_, budget)
    assert (found.level, found.resource) == (level, resource)


@given(st.integers(0, 3000), st.integers(0, 3000), st.integers(1, 3000))
def test_I9_using_more_never_looks_better(used, more, maximum):
    order = ("fine", "near", "spent")
    budget = Budget(max_tokens=maximum)
    now, later = (judge(spent(tokens=tokens), budget).level for tokens in (used, used + more))
    assert order.index(now) <= order.index(later)


@every_row(
    ("request_", "line"),
    [
        (spent(tokens=850), "Most of the tokens for this request are used: 850 of 1,000."),
        (spent(tokens=1200), "The tokens for this request are used up: 1,200 of 1,000."),
        (spent(cost_usd=1.7), "Most of the money for this request is spent: $1.70 of $2.00."),
        (spent(cost_usd=2.1), "The money for this request is spent: $2.10 of $2.00."),
    ],
)
def test_I9_what_is_used_is_said_in_both_languages(request_, line):
    reason = explain_budget(judge(request_, BOTH))
    assert text(reason.key, **reason.values).startswith(line)
    set_language("ja")
    assert "この依頼" in text(reason.key, **reason.values)


def test_I9_nothing_is_said_while_there_is_enough():
    assert explain_budget(judge(spent(tokens=1), BOTH)) is None
    assert explain_budget(BudgetLevel()) is None
    assert BudgetLevel().share == 0
