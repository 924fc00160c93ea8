"""I5, I8: the reason for a limit, for users in their language and for the log."""

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from duckflow.config.settings import DynamicLimits
from duckflow.domain.decision import TaskProfile
from duckflow.domain.pacing.limits import Adjustment, LoopLimit
from duckflow.domain.pacing.reasons import complexity_word, explain, vital_word
from duckflow.domain.pacing.vitals import Vitals
from duckflow.i18n.catalogue import set_language, take_gaps, text
from duckflow.pacemaker.limit import compute_limit
from duckflow.pacemaker.log_lines import log_end, log_loop, log_move, log_start
from duckflow.pacemaker.rules import Consult, Extend, Replan
from fakes.rows import every_row

LIMITS = DynamicLimits()
ANALYSIS = compute_limit("code_analysis", Vitals(mood=0.75, focus=0.80, stamina=0.45), 0.6, LIMITS)
shares = st.floats(0, 1)


def shown(limit: LoopLimit, language="en") -> list[str]:
    set_language(language)
    return [text(line.key, **line.values) for line in explain(limit)]


def test_I5_the_whole_reason_in_english():
    assert shown(ANALYSIS) == [
        "Task: code analysis, 12 base loops",
        "Mood (trust in the plan): 0.75",
        "Focus (clear thinking): 0.80",
        "Stamina (energy left): 0.45, low",
        "Complexity: 0.60, medium",
        "Adjusted by complexity: 24 % more loops",
        "12 × 1.00 (vitals) × 1.24 (complexity) = 14.88",
        "Limit: 14 loops (at least 3, at most 20)",
    ]


def test_I5_the_whole_reason_in_japanese():
    limit = compute_limit("debugging", Vitals(mood=0.1, focus=0.2, stamina=0.9), 0.8, LIMITS, used=14)
    assert shown(limit, "ja") == [
        "作業の種類: デバッグ（基準 14 ループ）",
        "気分（計画への自信）: 0.10、低め",
        "集中力（考えのまとまり）: 0.20、低め",
        "体力（残りの余力）: 0.90、高め",
        "複雑さ: 0.80（高い）",
        "バイタルによる調整: 30 % 減",
        "複雑さによる調整: 32 % 増",
        "14 × 0.70（バイタル）× 1.32（複雑さ）= 12.94",
        "上限: 14 ループ（3〜20 の範囲）",
        "すでに使った 14 ループを下回らないようにしています。",
    ]


def test_I5_loops_used_are_spoken_of_only_where_they_count():
    few, many = (compute_limit("debugging", Vitals(), 0.0, LIMITS, used=used) for used in (2, 18))
    assert not any("already used" in line for line in shown(few))
    assert shown(many)[-1] == "It is at least the 18 loops already used."


def test_I5_without_an_adjustment_that_is_said():
    limit = compute_limit(None, Vitals(mood=0.6, focus=0.6, stamina=0.6), 0.0, LIMITS)
    assert "No adjustment" in shown(limit)
    assert "Task: of an unknown kind, 8 base loops" in shown(limit)


def test_I4_I5_a_limit_that_could_not_be_worked_out_says_so():
    limit = compute_limit("research", Vitals(), float("nan"), LIMITS)
    (line,) = shown(limit)
    assert line.startswith("The limit could not be computed (ValueError(")
    assert line.endswith("so it is 20 loops.")


def test_I7_an_extension_says_why():
    said = text("limit.extended", before=8, limit=12)
    assert said == "The work is making progress, so it may take 12 loops instead of 8."


@every_row(
    ("value", "vital", "complexity"),
    [
        (0.0, "low", "low"),
        (0.29, "low", "low"),
        (0.3, "low", "medium"),
        (0.49, "low", "medium"),
        (0.5, "usual", "medium"),
        (0.7, "usual", "medium"),
        (0.71, "usual", "high"),
        (0.8, "usual", "high"),
        (0.81, "high", "high"),
    ],
)
def test_I5_words_for_numbers(value, vital, complexity):
    assert (vital_word(value), complexity_word(value)) == (vital, complexity)


@given(
    profile=st.sampled_from([None, *get_args(TaskProfile)]),
    vitals=st.builds(Vitals, mood=shares, focus=shares, stamina=shares),
    complexity=shares,
    used=st.integers(0, 20),
)
def test_I5_every_reason_has_its_words_in_both_languages(profile, vitals, complexity, used):
    limit = compute_limit(profile, vitals, complexity, LIMITS, used)
    for language in ("en", "ja"):
        assert all(shown(limit, language))
    assert take_gaps() == frozenset()


def test_I5_a_table_of_ones_own_can_make_complexity_cost_loops():
    limit = ANALYSIS.model_copy(update={"adjustments": (Adjustment(source="complexity", percent=-10),)})
    assert "Adjusted by complexity: 10 % fewer loops" in shown(limit)


def test_I5_I8_the_log_at_the_start_has_vitals_adjustments_and_arithmetic():
    assert log_start(ANALYSIS) == (
        "limit 14 for code_analysis (base 12)",
        "vitals mood=0.75 (usual) focus=0.80 (usual) stamina=0.45 (low)",
        "complexity 0.60 (medium)",
        "adjustments: complexity +24 %",
        "12 × 1.00 × 1.24 = 14.88, between 3 and 20: 14",
    )
    (line,) = log_start(compute_limit("research", Vitals(), 0.0, None))
    assert line == "limit 15 for research, as configured: ValueError('there are no limits')"


@every_row(
    ("move", "told"),
    [
        (Extend(limit=12), "limit extended to 12"),
        (Replan(), "new plan (focus)"),
        (Consult(kind="confusion", cause="focus"), "consult the user: confusion (focus)"),
        (Consult(kind="over_exertion", cause="stamina"), "halt: over_exertion (stamina)"),
    ],
)
def test_I8_the_log_while_it_runs(move, told):
    before, after = Vitals(mood=0.8, focus=0.8, stamina=0.6), Vitals(mood=0.9, focus=0.45, stamina=0.6)
    assert log_loop(8, ("repeated", "failing"), before, after) == (
        "loop 8: repeated, failing",
        "loop 8: mood rose (0.80 to 0.90)",
        "loop 8: focus fell (0.80 to 0.45)",
    )
    assert log_move(8, move) == f"loop 8: {told}"


def test_I8_a_quiet_loop_leaves_no_line():
    assert log_loop(3, (), Vitals(), Vitals()) == ()


def test_I8_the_log_at_the_end():
    assert log_end(11, 14, ("confusion",), "done") == (
        "used 11/14 loops",
        "interventions: 1 (confusion 1)",
        "outcome: done",
    )
    assert log_end(20, 20, ("stagnation", "oracle", "stagnation"), "consultation")[1] == (
        "interventions: 3 (stagnation 2, oracle 1)"
    )
    assert log_end(2, 8, (), "done")[1] == "interventions: 0"
