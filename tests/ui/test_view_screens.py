"""M1, M4: views of commands and questions, on screens of 60, 80 and 120 columns."""

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

import pyte
import pytest

from duckflow.cli.chat.conversation import start_text
from duckflow.config.settings import DynamicLimits
from duckflow.domain.decision import Action
from duckflow.domain.events import Recovered
from duckflow.domain.extensions import Extensions
from duckflow.domain.files.changes import FileChange, LeftFile, UndoReport
from duckflow.domain.lines import TextLine
from duckflow.domain.pacing.vitals import Vitals
from duckflow.domain.questions.approval import Approval, ApprovalScope
from duckflow.domain.questions.consultation import Consultation
from duckflow.domain.state import AgentState, Request
from duckflow.domain.work.objective import RequirementItem, TaskObjective
from duckflow.i18n.catalogue import set_language, text
from duckflow.pacemaker.limit import compute_limit
from duckflow.ui.commands.actions import CommandContext, show_help
from duckflow.ui.commands.table import COMMANDS
from duckflow.ui.output.diff import difference_lines
from duckflow.ui.output.text_width import width_of
from duckflow.ui.views.approval import approval_view, brief_lines
from duckflow.ui.views.events import consultation_text
from duckflow.ui.views.goal import goal_text
from duckflow.ui.views.health import status_text
from duckflow.ui.views.live.progress import plan_tree, tasks_tree
from duckflow.ui.views.tables import cost_text
from duckflow.ui.views.undo import recovered_text, undo_text
from fakes.keyboard import FakeWriter

WELL = Vitals(mood=0.92, focus=0.85, stamina=0.98)
ASKED = "表示が崩れないように、とても長い依頼でも読みやすく折り返してほしい and in English too, " * 2
STATE = AgentState(
    vitals=WELL,
    vitals_over_time=(WELL,) * 90,
    request=Request(
        request_id="r",
        text=ASKED,
        loops=4,
        limit=compute_limit("debugging", WELL, 0.2, DynamicLimits()),
        objective=TaskObjective(
            request=ASKED,
            requirements=(RequirementItem(requirement="長い要件は途中で切れずに最後まで読めること"),),
        ),
    ),
)
APPROVAL = Approval(
    approval_id="p",
    action=Action(operation="file_ops.write_file", args={"path": "文書/設計.md"}),
    intent="設計書に、長い説明文を追加して、あとから読む人が迷わないようにするため",
    rationale="r",
    difference="--- a/x\n+++ b/x\n@@ -1 +1 @@\n-古い\n+新しい\n",
    digest="d",
    risk="high",
    reasons=("shebang", "many_files"),
    impact=(
        TextLine(key="approval.impact.changes", values={"path": "文書/設計.md", "added": 1, "removed": 1}),
    ),
    alternatives=(TextLine(key="approval.instead.refuse"),),
    kind=ApprovalScope(what="edits", scope="文書"),
)
CONSULTATION = Consultation(
    consultation_id="c",
    kind="stagnation",
    situation="consultation.stagnation",
    findings=(TextLine(key="consultation.known.repeated", values={"what": "文書/設計.md, " * 8}),),
    choices=("more_information", "go_on", "another_approach"),
)
UNDONE = UndoReport(
    actions=2,
    restored=(
        FileChange(path="文書/設計.md", before="x", after="y"),
        FileChange(path=".git/index", before="x", after="y"),
        FileChange(path=".git/refs/heads/main", before="x", after="y"),
    ),
    left=(LeftFile(path="b.py", reason="changed"),),
    commands=("echo 日本語 > a.txt",),
)
CRASHED = Recovered(finished=("wrote 文書/設計.md",), unknown=("shell.run make",))


class Drawn(NamedTuple):
    """A view, and words it must contain."""

    draw: Callable[[FakeWriter], None]
    en: tuple[str, ...]
    ja: tuple[str, ...]


def approve(writer: FakeWriter) -> None:
    for shown, colour in brief_lines(approval_view(APPROVAL)):
        writer.line(shown, colour)
    writer.raw(*difference_lines(APPROVAL.difference, writer))


def help_(writer: FakeWriter) -> None:
    engine = SimpleNamespace(extensions=Extensions(), servers=tuple)
    show_help(CommandContext(engine, writer, None, lambda session: None))  # type: ignore[arg-type]


VIEWS = {
    "status": Drawn(
        lambda writer: writer.line(status_text(STATE, writer.columns)),
        ("😎(0.92)", "Check-up", "The doctor says", "Why this limit"),
        ("💪(0.98)", "診察結果", "先生の一言", "この上限の理由"),
    ),
    "goal": Drawn(lambda writer: writer.line(goal_text(STATE)), ("🎯", "☐"), ("🎯", "長い要件は")),
    "no plan": Drawn(lambda writer: writer.line(plan_tree(STATE)), ("no plan",), ("計画はありません",)),
    "no tasks": Drawn(lambda writer: writer.line(tasks_tree(STATE)), ("No tasks",), ("作業はありません",)),
    "no cost": Drawn(lambda writer: writer.raw(cost_text(STATE)), (), ()),
    "help": Drawn(help_, ("/undo", "Ctrl-R", "while it works"), ("/undo", "Ctrl-R", "作業中")),
    "approval": Drawn(
        approve,
        (
            "Write 文書/設計.md?",
            "high risk",
            "Why:",
            "I'm asking because",
            "What it does",
            "Instead",
            "新しい",
        ),
        ("文書/設計.md", "リスク高", "目的:", "確認の理由:", "実行される内容", "代わりに", "新しい"),
    ),
    "consultation": Drawn(
        lambda writer: writer.line(consultation_text(CONSULTATION)),
        ("the same steps", "Repeated several times", "How should we continue?", "3. Try another approach"),
        ("同じ手順", "何度もやり直した", "どう進めましょうか", "3. やり方を変える"),
    ),
    "undo": Drawn(
        lambda writer: writer.line(undo_text(UNDONE)),
        ("Undone", "restored 文書/設計.md", "git's own records", "b.py", "$ echo 日本語"),
        ("取り消しました", "文書/設計.md", "git の記録", "b.py", "$ echo 日本語"),
    ),
    "after a crash (C5)": Drawn(
        lambda writer: writer.line(recovered_text(CRASHED)),
        ("wrote 文書/設計.md", "$ make"),
        ("完了", "不明", "$ make"),
    ),
    "start": Drawn(
        lambda writer: writer.line(start_text("ask", ("AGENTS.md",), "pytest", "none", "設計.py")),
        ("AGENTS.md", "pytest", "Try: “What does 設計.py do?”", "/help"),
        ("AGENTS.md", "pytest", "例: 「設計.py", "/help"),
    ),
}
SIZES = list(itertools.product(VIEWS, ["en", "ja"], [60, 80, 120]))


@pytest.mark.parametrize(("name", "language", "columns"), SIZES)
def test_H6_G1_I6_C5_M4_a_view_fits_its_screen_and_says_what_matters(name: str, language: str, columns: int):
    set_language(language)
    view, writer = VIEWS[name], FakeWriter(columns)
    view.draw(writer)
    lines = writer.text.split("\n")
    screen = pyte.Screen(columns, len(lines) + 9)
    pyte.Stream(screen).feed("\r\n".join(lines))
    shown = [line.rstrip() for line in screen.display]
    assert shown[: len(lines)] == [line.rstrip() for line in lines], "a line too wide comes out as two"
    assert not any(shown[len(lines) :])
    joined = "".join(line.strip() for line in lines).replace(" ", "")
    for word in view.en if language == "en" else view.ja:
        assert word.replace(" ", "") in joined, writer.text
    assert not [line for line in lines if line.lstrip().startswith(("。", "、", "」", "）"))]


@pytest.mark.parametrize("language", ["en", "ja"])
def test_M2_what_a_command_does_stands_in_its_own_column(language: str):
    set_language(language)
    writer = FakeWriter(60)
    help_(writer)
    groups = [group.split("\n")[1:] for group in writer.text.strip("\n").split("\n\n")[:-1]]
    rows = [row for group in groups for row in group]
    begins = [row for row in rows if not row.startswith("   ")]
    assert len(begins) > len(COMMANDS)
    column = width_of(begins[0].partition(text("commands.goal")[:10])[0])
    assert column < width_of(begins[0])
    others = [row for row in rows if row not in begins]
    assert not [row for row in begins if width_of(row) - width_of(row.split("  ")[-1].lstrip()) != column]
    assert not [row for row in others if len(row) - len(row.lstrip()) != column]
