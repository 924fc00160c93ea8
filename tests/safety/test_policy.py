"""One function decides: every cell, and no mode passes what a looser one would ask (G3, SAFETY 1)."""

from itertools import product

from duckflow.safety.policy import policy
from duckflow.safety.policy.policy import (
    EffectsCase,
    PolicyCase,
    decide,
    decide_effects,
    effective,
    may_remember,
    may_remember_effects,
)
from fakes.rows import every_row

MODES = ("plan", "ask", "edits", "auto")
EFFECTS = ("read", "write", "delete", "execute", "consent")
RISKS = ("low", "medium", "high", "forbidden")
PROTECTIONS = ("none", "guarded", "asks", "denied")
ON_COPIES = {
    "plan": ("allow", "deny", "deny", "allow", "ask"),
    "ask": ("allow", "ask", "ask", "allow", "ask"),
    "edits": ("allow", "allow", "ask", "allow", "ask"),
    "auto": ("allow", "allow", "allow", "allow", "ask"),
}
"""A command that works on a copy is judged by what it did, not before it runs."""
BY_WORDS = {
    "plan": ("allow", "deny", "deny", "deny", "ask"),
    "ask": ("allow", "ask", "ask", "ask", "ask"),
    "edits": ("allow", "allow", "ask", "ask", "ask"),
    "auto": ("allow", "allow", "ask", "ask", "ask"),
}
STRICT = ("allow", "ask", "deny")

EVERY_CASE = [
    PolicyCase(*values) for values in product(policy.EFFECTS, RISKS, PROTECTIONS, *[(False, True)] * 4)
]
"""All cases, because there are few enough to test each."""


def stricter(*verdicts: str) -> str:
    return max(verdicts, key=STRICT.index)


@every_row("copies", [True, False])
@every_row(("mode", "effect"), list(product(MODES, EFFECTS)))
def test_each_cell_of_the_modes_G3(mode, effect, copies):
    expected = (ON_COPIES if copies else BY_WORDS)[mode][EFFECTS.index(effect)]
    for risk in ("low", "medium"):
        ruling = decide(mode, PolicyCase(effect=effect, risk=risk, sandboxed=True, copies=copies))
        assert ruling.verdict == expected
        assert ruling.reason


@every_row(("mode", "effect", "protection"), list(product(MODES, EFFECTS, PROTECTIONS)))
def test_each_cell_of_protection_G3_SAFETY_4(mode, effect, protection):
    plain = ON_COPIES[mode][EFFECTS.index(effect)]
    asked = stricter(plain, "ask")
    guarded = plain if effect == "read" else asked
    expected = {"none": plain, "guarded": guarded, "asks": asked, "denied": "deny"}[protection]
    assert (
        decide(mode, PolicyCase(effect=effect, protection=protection, sandboxed=True, copies=True)).verdict
        == expected
    )


@every_row(("mode", "effect", "risk"), list(product(MODES, EFFECTS, RISKS)))
def test_each_cell_of_risk_G2(mode, effect, risk):
    plain = ON_COPIES[mode][EFFECTS.index(effect)]
    expected = {"high": stricter(plain, "ask"), "forbidden": "deny"}.get(risk, plain)
    assert decide(mode, PolicyCase(effect=effect, risk=risk, sandboxed=True, copies=True)).verdict == expected


@every_row("mode", MODES)
def test_G3_reading_outside_asks_in_every_mode_and_changing_there_is_denied(mode):
    ruling = decide(mode, PolicyCase(effect="read", risk="high", outside=True, sandboxed=True))
    assert (ruling.verdict, ruling.because) == ("ask", "outside")
    for effect in ("write", "delete"):
        assert decide(mode, PolicyCase(effect=effect, outside=True, sandboxed=True)).verdict == "deny"


@every_row("mode", ["ask", "edits", "auto"])
def test_SAFETY_9_without_a_sandbox_every_command_asks(mode):
    for risk, remembered in product(("low", "medium", "high"), (True, False)):
        case = PolicyCase(effect="execute", risk=risk, sandboxed=False, remembered=remembered)
        assert (decide(mode, case).verdict, decide(mode, case).because) == ("ask", "no_sandbox")
        assert decide("plan", case).verdict == "deny"


def test_G3_auto_without_a_copy_is_edits():
    assert effective("auto", copies=False) == "edits"
    assert [effective(mode, copies=True) for mode in MODES] == list(MODES)


@every_row(
    ("mode", "risk", "verdict"),
    [
        ("plan", "low", "deny"),
        ("ask", "low", "ask"),
        ("edits", "low", "ask"),
        ("auto", "low", "allow"),
        ("auto", "high", "ask"),
    ],
)
def test_G7_on_a_machine_that_is_the_sandbox_the_modes_say_what_they_say(mode, risk, verdict):
    case = PolicyCase(effect="execute", risk=risk, sandboxed=True, external=True)
    assert decide(mode, case).verdict == verdict


def test_B7_consent_is_asked_in_every_mode_and_never_remembered():
    for mode, risk, remembered in product(MODES, ("low", "medium", "high"), (True, False)):
        case = PolicyCase(effect="consent", risk=risk, sandboxed=True, remembered=remembered)
        assert (decide(mode, case).verdict, decide(mode, case).because) == ("ask", "consent")


@every_row(
    "asked_always",
    [
        {"effect": "delete"},
        {"effect": "consent"},
        {"effect": "write", "risk": "high"},
        {"effect": "write", "protection": "asks"},
        {"effect": "write", "outside": True},
        {"effect": "execute", "risk": "high"},
        {"effect": "execute", "sandboxed": False},
    ],
)
def test_G1_what_can_not_be_remembered(asked_always):
    case = PolicyCase(**{"sandboxed": True, **asked_always})
    assert not may_remember(case)
    remembered = case._replace(remembered=True)
    assert decide("ask", remembered) == decide("ask", case)


def test_G3_no_mode_passes_what_a_looser_one_would_ask():
    """plan ⊆ ask ⊆ edits ⊆ auto in what passes unasked, and the other way round in what is denied."""
    for case in EVERY_CASE:
        verdicts = [STRICT.index(decide(mode, case).verdict) for mode in MODES]
        assert verdicts == sorted(verdicts, reverse=True), case


@every_row("mode", MODES)
def test_SAFETY_1_more_danger_is_never_looser(mode):
    for case in EVERY_CASE:
        check_that_danger_counts(mode, case)


def check_that_danger_counts(mode, case):
    now = STRICT.index(decide(mode, case).verdict)
    worse = [
        {"risk": RISKS[min(RISKS.index(case.risk) + 1, 3)]},
        {"protection": PROTECTIONS[min(PROTECTIONS.index(case.protection) + 1, 3)]},
        {"outside": True},
        {"sandboxed": False},
        {"copies": False},
        {"remembered": False},
    ]
    for change in worse:
        assert STRICT.index(decide(mode, case._replace(**change)).verdict) >= now, (case, change)


@every_row("mode", MODES)
def test_SAFETY_1_forbidden_is_denied_and_high_is_never_passed(mode):
    for case in EVERY_CASE:
        verdict = decide(mode, case).verdict
        if case.risk == "forbidden" or case.protection == "denied":
            assert verdict == "deny", case
        if case.risk == "high" or case.protection == "asks":
            assert verdict != "allow", case


EFFECT_CASES = [
    #                                    plan    ask    edits    auto
    (EffectsCase(), ("deny", "ask", "allow", "allow")),
    (EffectsCase(risk="medium"), ("deny", "ask", "allow", "allow")),
    (EffectsCase(deletes=True, risk="medium"), ("deny", "ask", "ask", "allow")),
    (EffectsCase(risk="high"), ("deny", "ask", "ask", "ask")),
    (EffectsCase(risk="forbidden"), ("deny", "deny", "deny", "deny")),
    (EffectsCase(conflicts=True), ("deny", "ask", "ask", "ask")),
    (EffectsCase(stopped=True), ("deny", "ask", "ask", "ask")),
    (EffectsCase(stopped=True, changes=False), ("deny", "ask", "allow", "allow")),
    (EffectsCase(changes=False), ("deny", "ask", "allow", "allow")),
    (EffectsCase(changes=False, risk="high"), ("deny", "ask", "ask", "ask")),
    (EffectsCase(remembered=True), ("deny", "allow", "allow", "allow")),
    (EffectsCase(remembered=True, stopped=True), ("deny", "ask", "ask", "ask")),
    (EffectsCase(remembered=True, risk="high"), ("deny", "ask", "ask", "ask")),
]


@every_row(("case", "expected"), EFFECT_CASES)
def test_G3_each_cell_of_what_a_command_did(case, expected):
    assert tuple(decide_effects(mode, case).verdict for mode in MODES) == expected


def test_G3_always_is_never_offered_for_what_more_than_the_mode_asks_about():
    for case in (EffectsCase(risk="high"), EffectsCase(conflicts=True), EffectsCase(stopped=True)):
        assert not may_remember_effects(case)
    assert not may_remember_effects(EffectsCase(deletes=True, risk="medium"))
    assert may_remember_effects(EffectsCase(risk="medium"))
