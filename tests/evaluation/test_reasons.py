"""J3: the reason for every deduction goes back to the evaluator once, and is shown to the user."""

import json
from pathlib import Path
from typing import Any

from duckflow.domain.events import Evaluated
from duckflow.i18n.catalogue import set_language
from duckflow.ui.views.goal import evaluation_text
from fakes.engine import action, decision, engine
from fakes.rows import every_row


def judged(evidence: str, score: float = 1.0) -> dict[str, Any]:
    scores = [{"requirement": "1", "score": score, "evidence": [evidence]}]
    said = {"requirement_scores": scores, "missing_aspects": [], "completion_recommendation": True}
    return {"for": "SatisfactionEvaluation", "text": json.dumps(said)}


async def verdicts(folder: Path, *judgements: dict[str, Any]) -> list[Evaluated]:
    answers = [
        decision("", action("write_file", path="notes.md", content="a\n")),
        *[decision("Done.")] * 5,
        *judgements,
    ]
    async with engine(folder, *answers) as duck:
        await duck.app.chat.say("Write notes.md")
        return duck.of(Evaluated)


async def test_J3_evidence_that_does_not_exist_goes_back_to_the_evaluator_once(tmp_path: Path):
    (seen,) = await verdicts(tmp_path, judged("e42"), judged("e1"))
    assert (seen.evaluation.done, seen.evaluation.caps) == (True, ())


@every_row(
    ("language", "shown"),
    [
        (
            "en",
            "        counts 50 %, not 100 %: the evidence that the evaluator cited does not exist",
        ),
        ("ja", "        100 % ではなく 50 % と数えます: 評価モデルの挙げた証拠は存在しません"),
    ],
)
async def test_J3_if_it_stays_the_user_sees_the_reason(tmp_path: Path, language: str, shown: str):
    folder = tmp_path / language
    folder.mkdir()
    seen = await verdicts(folder, *[judged("e42")] * 6)
    assert len(seen) == 3
    set_language(language)
    assert shown in evaluation_text(seen[0]).split("\n")
    set_language("en")
