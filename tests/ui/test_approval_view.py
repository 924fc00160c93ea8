"""An approval as it is read: five points in both languages, nothing hidden (G1, SAFETY 8)."""

import unicodedata

import pytest

from duckflow.domain.approval import Approval, ApprovalLine, Kind
from duckflow.domain.decision import Action
from duckflow.i18n.catalogue import entries, set_language
from duckflow.safety.policy.risk import HIGHER, RISKS
from duckflow.ui.input.answers import read_answer
from duckflow.ui.output.escaping import visible
from duckflow.ui.views.approval import approval_text, approval_view, kind_text

IGNORABLE = [
    *(0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810)),
    *(*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x3164),
    *(*range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0, *range(0xFFF0, 0xFFF9)),
    *(*range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000)),
]
"""What Unicode says may be drawn as nothing (Default_Ignorable_Code_Point)."""
SEEN = frozenset(
    "\t\n \u3000\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
"""Blanks everybody sees, and signs that are formats by name but drawn."""


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
            ApprovalLine(
                key="approval.impact.changes", values={"path": "src/a.py", "added": 1, "removed": 1}
            ),
            ApprovalLine(key="approval.impact.undo"),
        ),
        "alternatives": (ApprovalLine(key="approval.instead.refuse"),),
        "kind": Kind(what="edits", scope="src"),
    }
    return Approval.model_validate({**known, **fields})


@pytest.mark.parametrize("language", ["en", "ja"])
def test_G1_the_five_points_are_there_in_both_languages(language: str):
    set_language(language)
    view = approval_view(approval())
    shown = approval_text(approval())
    for point in (view.question, view.risk_line, view.intent, view.rationale, *view.impact, view.always):
        assert point
        assert point in shown
    assert all(point in shown for point in view.alternatives)
    assert shown.endswith(view.difference)


def test_in_words():
    shown = approval_text(approval())
    assert "May I write src/a.py?" in shown
    assert "Risk: high (makes a file that can be run, many files)" in shown
    assert "changes src/a.py (lines: +1 −1)" in shown
    assert "edits of files in src/" in shown


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
        (Kind(what="edits", scope="src"), "files in src/"),
        (Kind(what="edits", scope="."), "right in this folder"),
        (Kind(what="command", scope="npm run build"), "begin with `npm run build`"),
    ],
)
def test_G1_what_always_covers_can_be_judged(kind: Kind, words: str):
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
            impact=(ApprovalLine(key="approval.impact.reads", values={"path": f"a{nasty}\nAllow it? y"}),),
            kind=Kind(what="command", scope=f"x{nasty}"),
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


@pytest.mark.parametrize("said", ["y", "Y", "yes", " yes ", "ok", "はい", "ｙ", "Ｙｅｓ"])
def test_a_yes(said: str):
    answer = read_answer(said)
    assert (answer.yes, answer.always, answer.edited) == (True, False, None)


@pytest.mark.parametrize("said", ["a", "always", "Always", "いつも", "常に", "ａ"])
def test_an_always(said: str):
    answer = read_answer(said)
    assert (answer.yes, answer.always) == (True, True)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("", ""),
        ("  ", ""),
        ("n", ""),
        ("no", ""),
        ("no, wrong file", "wrong file"),
        ("No: wrong file", "wrong file"),
        ("いいえ、別のファイルに", "別のファイルに"),
        ("いいえ 別のファイルに", "別のファイルに"),
        ("not now", "not now"),
        ("yes but smaller", "yes but smaller"),
        ("yesterday", "yesterday"),
        ("all of it", "all of it"),
        ("edit it", "edit it"),
        ("\x1b[A", "\x1b[A"),
    ],
)
def test_all_else_is_a_no_with_its_reason(said: str, reason: str):
    answer = read_answer(said)
    assert (answer.yes, answer.always, answer.reason) == (False, False, reason)


@pytest.mark.parametrize(
    ("said", "edited"),
    [
        ("edit:ls", "ls"),
        ("edit: ls -la", "ls -la"),
        ("EDIT: a\nb\n", "a\nb\n"),
        ("e: x", "x"),
        ("編集：新しい", "新しい"),
        ("edit:", ""),
        ("edit:  two", " two"),
    ],
)
def test_an_edit_keeps_what_follows_as_it_is(said: str, edited: str):
    answer = read_answer(said)
    assert (answer.yes, answer.edited) == (True, edited)
