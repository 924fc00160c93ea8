"""Views of approvals: five points in both languages, nothing hidden (G1, SAFETY 8)."""

import unicodedata

import pytest

from duckflow.domain.decision import Action
from duckflow.domain.events import ApprovalRequested
from duckflow.domain.lines import TextLine
from duckflow.domain.questions.approval import Approval, ApprovalScope
from duckflow.i18n.catalogue import entries, set_language
from duckflow.safety.policy.risk import HIGHER, RISKS
from duckflow.ui.output.escaping import visible
from duckflow.ui.views.approval import approval_view, kind_text, point_lines
from duckflow.ui.views.events import Describer

IGNORABLE = [
    *(0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810)),
    *(*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x3164),
    *(*range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0, *range(0xFFF0, 0xFFF9)),
    *(*range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000)),
]
"""Characters that may be invisible according to Unicode (Default_Ignorable_Code_Point)."""
SEEN = frozenset(
    "\t\n \u3000\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
"""Visible blanks, and visible signs in the category of format characters."""


def approval(**fields: object) -> Approval:
    known = {
        "approval_id": "p1",
        "action": Action(operation="file_ops.write_file", args={"path": "src/a.py"}),
        "intent": "make it faster",
        "rationale": "r",
        "difference": "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n",
        "digest": "d",
        "risk": "high",
        "reasons": ("shebang", "many_files"),
        "impact": (
            TextLine(key="approval.impact.changes", values={"path": "src/a.py", "added": 1, "removed": 1}),
            TextLine(key="approval.impact.undo"),
        ),
        "alternatives": (TextLine(key="approval.instead.refuse"),),
        "kind": ApprovalScope(what="edits", scope="src"),
    }
    return Approval.model_validate({**known, **fields})


def approval_text(asked: Approval) -> str:
    """Difference and question, as every interface describes them."""
    described = Describer()(ApprovalRequested(approval=asked))
    assert described is not None
    return f"{described.text}\n{described.difference}"


@pytest.mark.parametrize("language", ["en", "ja"])
def test_G1_a_high_risk_shows_the_five_points_at_once_in_both_languages(language: str):
    set_language(language)
    view = approval_view(approval())
    shown = approval_text(approval())
    for point in (view.question, view.intent, view.rationale, *view.impact, *view.alternatives, view.always):
        assert point
        assert point in shown
    assert shown.startswith(view.question)
    assert shown.endswith(approval().difference)


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("because", ["mode", "risk", "protected"])
def test_G1_risk_and_reasons_stand_once(because: str, language: str):
    set_language(language)
    shown = approval_text(approval(because=because))
    words = {
        "en": ("high", "risk", "many files", "/undo"),
        "ja": ("リスク", "多数のファイル", "/undo"),
    }
    for word in words[language]:
        assert shown.count(word) == 1, shown


def test_G1_files_of_a_command_stand_between_the_question_and_the_difference():
    impact = (
        TextLine(key="approval.impact.files_created", values={"count": 1, "paths": "docs/plan.md"}),
        TextLine(key="approval.impact.undo"),
    )
    action = Action(operation="shell.take_over", args={"command": "make"})
    shown = approval_text(approval(action=action, impact=impact, risk="low", reasons=())).split("\n")
    assert shown[0].startswith("🦆 ")
    assert shown[1:3] == ["  new files: 1 (docs/plan.md)", "  low risk · /undo reverts it"]


def test_G1_a_low_risk_takes_three_lines_before_the_difference():
    low = approval(risk="low", reasons=())
    shown = approval_text(low).removesuffix(low.difference).rstrip().split("\n")
    assert shown == ["🦆 Write src/a.py?", "  +1 −1 · low risk · /undo reverts it", "  Why: make it faster"]
    set_language("ja")
    shown = approval_text(low).removesuffix(low.difference).rstrip().split("\n")
    assert shown[:2] == ["🦆 src/a.py に書き込んでよいですか？", "  +1 −1 行 · リスク低 · /undo で戻せます"]
    assert len(shown) == 3
    points = "\n".join(line for line, _ in point_lines(approval_view(low)))
    assert all(point in points for point in (*approval_view(low).impact, *approval_view(low).alternatives))


def test_G1_an_unusual_reason_to_ask_is_told_at_once():
    shown = approval_text(approval(risk="low", reasons=(), because="protected"))
    assert "this path is protected" in shown


def test_in_words():
    shown = approval_text(approval())
    assert "Write src/a.py?" in shown
    assert "high risk (makes a file executable, many files)" in shown
    assert "changes src/a.py (lines: +1 −1)" in shown
    assert "edits to files in src/" in shown


@pytest.mark.parametrize(
    "because", ["mode", "protected", "objection", "consent", "risk", "outside", "no_sandbox"]
)
def test_every_reason_to_ask_has_words(because: str):
    assert approval_view(approval(because=because)).rationale.strip()


def test_every_reason_for_a_risk_has_words_and_every_word_a_reason():
    told = {name for name, risk in RISKS.items() if HIGHER[risk] > 0}
    assert {key.rpartition(".")[2] for key in entries("en") if key.startswith("risk.because.")} == told


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (ApprovalScope(what="edits", scope="src"), "files in src/"),
        (ApprovalScope(what="edits", scope="."), "directly in this folder"),
        (ApprovalScope(what="command", scope="npm run build"), "begin with `npm run build`"),
    ],
)
def test_G1_what_always_covers_can_be_judged(kind: ApprovalScope, words: str):
    assert words in kind_text(kind)


def test_G1_always_is_not_mentioned_where_it_can_not_be_had():
    assert approval_view(approval(kind=None)).always == ""
    assert "Always" not in approval_text(approval(kind=None))


def test_SAFETY_8_nothing_that_can_be_hidden_stays_hidden():
    codes = [
        code
        for code in range(0x110000)
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs")
    ]
    hidden = [
        hex(code)
        for code in (*codes, *IGNORABLE, 0x2800)
        if chr(code) not in SEEN and visible(chr(code)) == chr(code)
    ]
    assert hidden == []


def test_SAFETY_8_ordinary_text_stays_as_it_is():
    plain = "def f(x):\n\treturn 'こんにちは、世界　🦆 éàü ñ Привет 한국어 العربية'\n"
    assert visible(plain) == plain


def test_SAFETY_8_nothing_is_cut_and_all_parts_are_made_visible():
    nasty = "\u202e\u200b\x1b[2J"
    long = "+" + "x" * 100_000 + nasty + "\n"
    shown = approval_text(
        approval(
            difference=f"@@ -0,0 +1 @@\n{long}",
            intent=f"why\n{nasty}",
            impact=(TextLine(key="approval.impact.reads", values={"path": f"a{nasty}\nAllow it? y"}),),
            kind=ApprovalScope(what="command", scope=f"x{nasty}"),
            action=Action(operation=f"op{nasty}", args={"path": f"p{nasty}"}),
        )
    )
    assert "x" * 100_000 in shown
    assert not set(nasty) - set("[2J") & set(shown)
    assert "\nAllow it?" not in shown


def test_SAFETY_8_a_path_that_looks_like_another_is_spelled_out():
    action = Action(operation="file_ops.write_file", args={"path": "sеtup.py"})
    assert (
        "CYRILLIC SMALL LETTER IE" in approval_view(approval(action=action, reasons=("lookalike",))).question
    )
