"""I6, H6, J5: every kind of consultation, provoked on a terminal and answered by a number."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from fakes.conversation import conversation, ready
from fakes.engine import action, decision
from fakes.tmux import idle


def read(path: str, confidence: float = 0.9) -> str:
    return decision("", action("read_file", path=path), confidence=confidence)


def write(name: str, confidence: float = 0.9) -> str:
    return decision("", action("write_file", path=name, content=f"{name}\n"), confidence=confidence)


def said(output: str, **body: Any) -> dict[str, Any]:
    return {"for": output, "text": json.dumps(body)}


PLAN = said(
    "PlanDraft",
    name="In parts",
    goal="g",
    risk="low",
    success_criteria=["it is there"],
    steps=[{"name": name, "description": f"do {name}"} for name in ("one", "two", "three")],
)
CAUSE = said("FailureAnalysis", cause="The disk is made of cheese.", fixes=["Eat it", "Buy another"])
POOR = said(
    "SatisfactionEvaluation",
    requirement_scores=[{"requirement": "1", "score": 0.4, "evidence": ["e1"]}],
    missing_aspects=["the second half"],
    quality_assessment="half of it is there",
)
AGAIN = said("MissingInfoAnalysis", missing=[{"what": "the other half"}])
TRIES = [one for number in range(3) for one in (write(f"{number}.txt"), decision(f"Done {number}."))]


class Case(NamedTuple):
    """Answers of the model, the question they lead to, the number chosen, and the effect."""

    kind: str
    answers: tuple[str | dict[str, Any], ...]
    asked: dict[str, tuple[str, ...]]
    number: str
    follows: dict[str, tuple[str, ...]]
    env: Mapping[str, str] = MappingProxyType({})


CASES = (
    Case(
        "stagnation",
        (*[read("a.txt")] * 4, decision("Now another way.", next_step="pending_user")),
        {
            "en": ("same steps", "Repeated several times: a.txt", "1. Stop here", "4. Try another approach"),
            "ja": (
                "同じ手順の繰り返し",
                "何度もやり直したもの: a.txt",
                "1. ここで終わりにする",
                "4. やり方を変える",
            ),
        },
        "4",
        {
            "en": ("→ Try another approach", "Now another way."),
            "ja": ("→ やり方を変える", "Now another way."),
        },
    ),
    Case(
        "lost_confidence",
        (write("0.txt", 0.4), PLAN, decision("One after the other.", next_step="pending_user")),
        {
            "en": ("no longer sure", "1. Describe what you need", "3. Continue like this"),
            "ja": ("確信が持てなくなりました", "1. 必要なものを", "3. この調子で続ける"),
        },
        "2",
        {
            "en": (
                "→ Divide it into smaller steps",
                "📋 Plan: In parts",
                "1. one\n   do one",
                "One after the other.",
            ),
            "ja": ("→ 小さく分けて", "📋 計画: In parts", "1. one\n   do one", "One after the other."),
        },
    ),
    Case(
        "confusion",
        (
            read("a.txt"),
            read("a.txt"),
            read("a.txt"),
            read("nowhere.txt"),
            decision("In order now.", next_step="pending_user"),
        ),
        {
            "en": ("lost the thread", "1. Name the one thing", "4. Try a different perspective"),
            "ja": ("見失いました", "1. いちばん大事なこと", "4. 見方を変えて"),
        },
        "3",
        {
            "en": ("→ Review the results", "📦 Results so far:", "In order now."),
            "ja": ("→ ここまでの結果を整理", "📦 ", "In order now."),
        },
        # With the default thresholds, it takes several causes at once.
        {"DUCKFLOW_DUCK_PACEMAKER__THRESHOLDS__FOCUS": "0.55"},
    ),
    Case(
        "over_exertion",
        (read("nowhere.txt"),),
        {
            "en": ("tokens or the money", "1. Continue like this", "4. Try an entirely different way"),
            "ja": ("使い切りました", "1. この調子で続ける", "4. まったく違う"),
        },
        "２",
        {"en": ("→ Accept the current result",), "ja": ("→ 今の結果で",)},
        {"DUCKFLOW_DUCK_PACEMAKER__BUDGET__MAX_TOKENS": "100"},
    ),
    Case(
        "oracle",
        (read("a.txt"), read("a.txt"), read("a.txt", 0.3)),
        {
            "en": (
                "my check-up:",
                "Mood: uneasy",
                "Focus: scattered",
                "Stamina:",
                "The doctor says:",
                "2. Let",
            ),
            "ja": ("診察結果です", "気分: ", "集中力: 散漫", "体力: ", "先生の一言: ", "2. 休ませる"),
        },
        "2",
        {"en": ("→ Let me rest", "🦆 I'll rest now."), "ja": ("→ 休ませる", "🦆 ひと休みします。")},
    ),
    Case(
        "escalation",
        (*TRIES, *[POOR] * 3, *[AGAIN] * 3, *[PLAN] * 3, CAUSE),
        {
            "en": (
                "Current state:",
                "Request: Do it",
                "Attempts: 3",
                "40 %",
                "the second half",
                "Quality: half of it",
                "1. Describe the result",
                "5. Stop here",
            ),
            "ja": (
                "仕上げられませんでした",
                "依頼: Do it",
                "40 %",
                "the second half",
                "half of it",
                "5. ここで終わりにする",
            ),
        },
        "5",
        {
            "en": ("→ Stop here", "Stopped, as you chose."),
            "ja": ("→ ここで終わりにする", "ここで終わりにしました。"),
        },
    ),
)


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)
def test_I6_H6_J5_a_question_is_asked_in_words_and_a_number_leads_on(case: Case, language: str, folder: Path):
    (folder / "a.txt").write_text("a\n")
    args = ("--mode", "edits", "--workspace", str(folder))
    with conversation(folder, *case.answers, language=language, env=case.env, args=args, rows=30) as terminal:
        ready(terminal)
        terminal.type("Do it\r")
        question = {"en": "Your choice", "ja": "番号"}[language]
        terminal.wait_until(lambda: question in terminal.text.rpartition("\n[ ")[0].rpartition("\n")[2])
        asked = terminal.text.partition("> Do it")[2]
        assert not [one for one in case.asked[language] if one not in asked], terminal.text
        terminal.type(f"{case.number}\r")
        terminal.wait_until(lambda: all(one in terminal.text for one in case.follows[language]))
        terminal.wait_until(lambda: idle(terminal.text))
        assert "Traceback" not in terminal.text
        assert terminal.text.count("🦆 I'll rest now.") <= 1, (
            "drawn once, and not still shown as being written"
        )
