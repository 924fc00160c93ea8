"""J7: `duckflow stats`, the table and the JSON, and a rating given in the conversation."""

import json
import os
import sys
from pathlib import Path

import pytest

from duckflow.domain.work.outcomes import RequestStats
from duckflow.i18n.catalogue import set_language
from duckflow.ui.output.text_width import width_of
from duckflow.ui.views.tables import stats_text
from fakes import warm
from fakes.engine import decision, engine

FIGURES = [
    RequestStats(requests=12, done=0.75, done_at_once=0.5, attempts=1.4, satisfaction=0.86, rating=8.5),
    RequestStats(by="profile", name="debugging", requests=10, done=0.7, done_at_once=0.4, attempts=1.5),
    RequestStats(by="profile", name="", requests=2, done=1.0, done_at_once=1.0),
    RequestStats(by="model", name="openai:any", requests=12, done=0.75, done_at_once=0.5, attempts=1.4),
]


def stats(*args: str, language: str = "en") -> str:
    return warm.run(
        [sys.executable, "-m", "duckflow", "stats", *args],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "DUCKFLOW_LANGUAGE": language},
        timeout=300,
        check=True,
    ).stdout


def test_J7_the_table_in_english():
    assert stats_text(FIGURES) == (
        "              requests  done  done at once  accepted  attempts  satisfaction  rating\n"
        "all requests        12   75%           50%         –       1.4           86%     8.5\n"
        "target                     –           95%         –       1.6             –     8.5\n"
        "by kind of task\n"
        "  debugging         10   70%           40%         –       1.5             –       –\n"
        "  not known          2  100%          100%         –         –             –       –\n"
        "by model\n"
        "  openai:any        12   75%           50%         –       1.4             –       –"
    )


def test_J7_M4_the_columns_of_the_japanese_table_stand_below_each_other():
    set_language("ja")
    lines = stats_text(FIGURES).splitlines()
    assert {width_of(line) for line in lines if line.endswith(("8.5", "評価", "–"))} == {width_of(lines[0])}
    assert "一度で完了" in lines[0]
    assert lines[2].startswith("目標")


@pytest.mark.parametrize(("language", "said"), [("en", "no finished requests"), ("ja", "まだありません")])
def test_J7_without_requests_that_is_said(language, said):
    assert said in stats(language=language)


async def test_J7_what_was_done_and_rated_is_in_the_stats(tmp_path: Path):
    async with engine(tmp_path, decision("Hello.", task_profile="general_chat")) as duck:
        assert duck.app.chat.rate(9) is False
        await duck.app.chat.say("hi")
        assert duck.app.chat.rate(9) is True
        assert duck.state.praised
    rows = [json.loads(line) for line in stats("--json").splitlines()]
    assert [(row["by"], row["name"]) for row in rows[:2]] == [("all", ""), ("profile", "general_chat")]
    assert (rows[0]["requests"], rows[0]["done_at_once"], rows[0]["rating"]) == (1, 1.0, 9.0)
    assert rows[-1]["by"] == "target"
    assert "conversation" in stats()


def test_J7_what_was_accepted_or_not_judged_is_told_apart_from_done():
    some = [RequestStats(requests=4, done=0.5, accepted=0.25, not_judged=0.25)]
    table = stats_text(some).splitlines()
    assert "accepted" in table[0]
    assert table[1].split()[2:6] == ["4", "50%", "–", "25%"]
    assert table[-1] == "Of all requests, 25% could not be judged."
