"""Simple work goes to the fast tier, as long as it goes well (K5)."""

from duckflow.domain.pacing.limits import LoopLimit
from duckflow.domain.state import Request
from duckflow.domain.work.objective import AttemptResult, TaskObjective
from duckflow.loops.thinking.model import SIMPLE, choose_tier
from duckflow.pacemaker.limit import BASE_LOOPS
from fakes.rows import every_row


def request(**fields) -> Request:
    limit = LoopLimit(limit=8, complexity=fields.pop("complexity", 0.1))
    return Request(**{"request_id": "r", "text": "x", "profile": "file_operation", "limit": limit, **fields})


@every_row("profile", sorted(filter(None, BASE_LOOPS)))
def test_K5_the_profile_decides(profile):
    assert choose_tier(request(profile=profile)) == ("fast" if profile in SIMPLE else "creative")


@every_row(
    "trouble",
    [
        {"profile": None},
        {"limit": None},
        {"complexity": 0.3},
        {"failing": ("a.py",)},
        {"sure": False},
        {"replanned": True},
        {"objective": TaskObjective(request="x", attempts=(AttemptResult(number=1),))},
    ],
)
def test_K5_what_is_unknown_complex_or_in_trouble_goes_to_the_creative_tier(trouble):
    assert choose_tier(request(**trouble)) == "creative"


def test_K5_before_there_is_a_request_the_creative_tier_decides():
    assert choose_tier(None) == "creative"
