"""Which requests are evaluated at all (J1)."""

from typing import get_args

from duckflow.domain.decision import TaskProfile
from duckflow.evaluation.verdict import needs_evaluation
from fakes.rows import every_row

PROFILES = get_args(TaskProfile)


@every_row("profile", [*PROFILES, None])
@every_row(("changed", "ran"), [(True, False), (False, True), (True, True)])
def test_what_changed_or_ran_something_is_evaluated_whatever_its_profile_J1(profile, changed, ran):
    assert needs_evaluation(profile, changed_anything=changed, ran_anything=ran)


@every_row("profile", PROFILES)
def test_talk_that_did_nothing_is_not_J1(profile):
    talk = profile in ("general_chat", "simple_question")
    assert needs_evaluation(profile, changed_anything=False, ran_anything=False) is not talk


def test_an_unknown_profile_is_no_talk_J1():
    assert needs_evaluation(None, changed_anything=False, ran_anything=False)
