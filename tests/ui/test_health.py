"""H6, H7, I5: /status in both languages."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.config.settings import DynamicLimits
from duckflow.domain.events import StoredEvent
from duckflow.domain.model import Usage
from duckflow.domain.pacing.health import examine
from duckflow.domain.pacing.limits import LoopTrace, PastAction
from duckflow.domain.pacing.vitals import VITALS, Vitals, face_of
from duckflow.domain.questions.consultation import CHOICES
from duckflow.domain.reduce.apply import apply
from duckflow.domain.state import AgentState, Request, TierUsage
from duckflow.i18n.catalogue import set_language, take_gaps
from duckflow.pacemaker.limit import compute_limit
from duckflow.ui.views.goal import goal_text
from duckflow.ui.views.health import status_text
from duckflow.ui.views.live.status_bar import vitals_line
from fakes.events import events

WELL = Vitals(mood=0.92, focus=0.85, stamina=0.98)
ILL = Vitals(mood=0.65, focus=0.25, stamina=0.40)
NOW = datetime(2025, 1, 1, tzinfo=UTC)


def working(**fields) -> AgentState:
    limit = compute_limit("debugging", WELL, 0.2, DynamicLimits())
    request = Request(request_id="r_1", text="mend the\nparser", loops=4, limit=limit, **fields)
    usage = {"creative": TierUsage(calls=1, tokens=Usage(input_tokens=1000, output_tokens=234), cost_usd=0.5)}
    return AgentState(vitals=WELL, vitals_over_time=(Vitals(), ILL, WELL), request=request, usage=usage)


def bar(vitals: Vitals) -> str:
    return "".join(piece for _, piece in vitals_line(vitals, None))


def test_H6_the_bar_is_as_promised():
    assert bar(WELL) == "[ Duckflow | Mood: 😎(0.92) | Focus: 🧘(0.85) | Stamina: 💪(0.98) ]"
    assert bar(ILL) == "[ Duckflow | Mood: 😔(0.65) | Focus: 😵(0.25) | Stamina: 🤕(0.40) ]"
    set_language("ja")
    assert bar(WELL) == "[ Duckflow | 気分: 😎(0.92) | 集中力: 🧘(0.85) | 体力: 💪(0.98) ]"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1.0, "😎🧘💪"), (0.75, "🙂🤔💪"), (0.6, "😔🤔😓"), (0.3, "😔😵🤕"), (0.05, "😔😵💀"), (0.0, "😔😵💀")],
)
def test_H6_faces_follow_the_values(value, expected):
    assert "".join(face_of(name, value) for name in VITALS) == expected


def test_H6_the_check_up_says_what_was_observed():
    act = PastAction(call="c", operation="shell.run", target="x", result="r", failed=True)
    request = Request(
        request_id="r", text="x", failing=("x",), history=(LoopTrace(acts=(act,), repeated=True),)
    )
    seen = AgentState(vitals=ILL, request=request)
    unseen = AgentState(vitals=ILL, request=Request(request_id="r", text="x"))
    well = AgentState(vitals=WELL)
    assert [one.key.rpartition(".")[2] for one in examine(seen)][:3] == ["failures", "repeated", "errors"]
    assert [one.key.rpartition(".")[2] for one in examine(unseen)][:3] == ["doubt", "scattered", "loops"]
    assert [one.key.rpartition(".")[2] for one in examine(well)][:3] == ["high", "high", "high"]


@pytest.mark.parametrize(
    ("vitals", "remark"),
    [
        (Vitals(), "well"),
        (Vitals(mood=0.6), "guidance"),
        (Vitals(focus=0.4), "replan"),
        (Vitals(mood=0.6, focus=0.2), "other_way"),
        (Vitals(mood=0.6, focus=0.2, stamina=0.05), "rest"),
    ],
)
def test_H6_the_doctor_speaks_to_what_is_low(vitals, remark):
    *_, last = examine(AgentState(vitals=vitals))
    assert last.key == f"health.remark.{remark}"


def test_H6_I5_H7_status_in_english():
    assert status_text(working(asked=("stagnation", "oracle", "stagnation"), extended_from=12)) == (
        "[ Duckflow | Mood: 😎(0.92) | Focus: 🧘(0.85) | Stamina: 💪(0.98) ]\n"
        "🩺 Check-up\n"
        "  😎 Mood: I trust my plan.\n"
        "  🧘 Focus: I am on track.\n"
        "  💪 Stamina: fresh.\n"
        "  🩺 The doctor says: all is well, carry on.\n"
        "📈 Over time (newest on the right)\n"
        "  Mood     █▆▇\n"
        "  Focus    █▃▇\n"
        "  Stamina  █▄█\n"
        "📋 Request: mend the parser\n"
        "🔁 Loops used: 4 of 18\n"
        "⏱ Why this limit\n"
        "  Task: debugging, 14 base loops\n"
        "  Mood (trust in the plan): 0.92, high\n"
        "  Focus (clear thinking): 0.85, high\n"
        "  Stamina (energy left): 0.98, high\n"
        "  Complexity: 0.20, low\n"
        "  Adjusted by vitals: 20 % more loops\n"
        "  Adjusted by complexity: 8 % more loops\n"
        "  14 × 1.20 (vitals) × 1.08 (complexity) = 18.14\n"
        "  Limit: 18 loops (at least 3, at most 20)\n"
        "  The work is making progress, so it may take 18 loops instead of 12.\n"
        "💬 Consulted you: no progress 2×, check-up 1×\n"
        "🪙 This session: 1,234 tokens, $0.5000; this request: 0 tokens, price not known"
    )


def test_H6_I5_H7_status_in_japanese():
    set_language("ja")
    shown = status_text(working())
    for line in (
        "🩺 診察結果",
        "  😎 気分: 今の計画を信じています。",
        "  体力    █▄█",
        "  集中力  █▃▇",
        "🔁 使ったループ: 18 のうち 4",
        "  作業の種類: デバッグ（基準 14 ループ）",
        "💬 相談した回数: まだありません",
    ):
        assert line in shown.splitlines()


def test_H6_status_without_a_request():
    assert "No request is being worked on." in status_text(AgentState())


@pytest.mark.parametrize("language", ["en", "ja"])
def test_every_kind_of_question_has_a_word_in_the_status(language):
    set_language(language)
    assert status_text(working(asked=tuple(CHOICES)))
    assert take_gaps() == frozenset()


@given(st.lists(events, max_size=12), st.sampled_from(["en", "ja"]))
def test_H6_J8_any_state_gives_a_text_of_bounded_length(happened, language):
    set_language(language)
    state = AgentState()
    for seq, event in enumerate(happened, start=1):
        state = apply(state, StoredEvent(seq=seq, at=NOW, event=event))
    for shown in (status_text(state), goal_text(state)):
        assert shown.strip()
        assert len(shown.splitlines()) <= 80
        assert not any(character in shown for character in "\x00\x1b\u202e")
    assert take_gaps() == frozenset()
