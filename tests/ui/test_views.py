"""M1, M4: every view in both languages at 60, 80 and 120 columns: complete, and never too wide."""

import itertools
import re
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pyte
import pytest

from duckflow.cli.chat.conversation import start_text
from duckflow.domain.decision import Action
from duckflow.domain.events import ActionFinished, ActionStarted, ErrorReported, StoredEvent
from duckflow.domain.extensions import CustomCommand, Extensions
from duckflow.domain.frozen import replace
from duckflow.domain.lines import line
from duckflow.domain.live_updates import OutputPiece
from duckflow.domain.model import Usage
from duckflow.domain.pacing.vitals import Vitals
from duckflow.domain.questions.consultation import Consultation
from duckflow.domain.session_client import EngineStatus
from duckflow.domain.state import AgentState, Request, TierUsage
from duckflow.domain.work.plan import Plan, PlanStep, Task, TaskList
from duckflow.i18n.catalogue import entries, set_language, text
from duckflow.ui.commands.actions import CommandContext, show_help
from duckflow.ui.output.diff import difference_lines
from duckflow.ui.output.markdown import render_text
from duckflow.ui.output.reply_stream import ReplyStream
from duckflow.ui.output.text_width import width_of
from duckflow.ui.screen import Screen
from duckflow.ui.views.events import Describer, error_text
from duckflow.ui.views.live.activity import Activity
from duckflow.ui.views.live.progress import action_name, plan_tree, tasks_tree
from duckflow.ui.views.live.status_bar import bar_lines
from duckflow.ui.views.tables import cost_text
from fakes.keyboard import FakeWriter
from fakes.rows import every_row

TASKS = (
    Task(task_id="t1", operation="file_ops.write_file", args={"path": "src/文書.py"}, status="completed"),
    Task(task_id="t2", operation="shell.run", args={"command": "pytest -q"}, status="in_progress"),
)
PLAN = Plan(
    plan_id="p1",
    name="ゲームを作る",
    goal="g",
    steps=(
        PlanStep(
            step_id="s1",
            name="盤面",
            description="盤面を描く処理を書きます",
            status="completed",
            task_list=TASKS,
        ),
        PlanStep(step_id="s2", name="rules", description="the rules of the game, written down in code"),
    ),
)
STATE = AgentState(
    session_id="x",
    model="openai:gpt-6.1-terra",
    vitals=Vitals(mood=0.92, focus=0.45, stamina=0.98),
    plans=(PLAN,),
    active_plan_id="p1",
    task_list=TaskList(list_id="l", tasks=TASKS),
    prompt_tokens=12_000,
    request=Request(request_id="r", text="t", profile="debugging"),
    usage={
        "creative": TierUsage(calls=3, tokens=Usage(input_tokens=12345, output_tokens=678), cost_usd=0.0123),
        "fast": TierUsage(calls=1, tokens=Usage(input_tokens=99)),
    },
)
OPERATIONS = """
file_ops.read_file file_ops.write_file file_ops.edit_file file_ops.delete_file file_ops.move_file
file_ops.list_files file_ops.search file_ops.outline file_ops.edit_cell
shell.run shell.start shell.read shell.stop
shell.take_over plan_tool.propose plan_tool.get plan_tool.list plan_tool.approve plan_tool.update_step
plan_tool.revise plan_tool.delete task_tool.generate_list task_loop.run task_loop.cancel
memory.remember changes.undo skill.read mcp.describe mcp.accept web.fetch web.search
agent.explore agent.work agent.review review.report_finding
code.definition code.references code.rename code.apply_rename code.diagnostics
""".split()  # noqa: SIM905 - a list to read
AROUND = EngineStatus(window=100_000, sandbox="none")
DIFFERENCE = "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n 同じ行です\n-古い行\n+新しい行\n last\n"
SIZES = list(itertools.product(["en", "ja"], [60, 80, 120]))


def joined(lines) -> str:
    return "\n".join("".join(piece for _, piece in line) for line in lines)


def drawn(text: str, columns: int) -> list[str]:
    """Return the lines on a screen, where a line that is too wide becomes two."""
    screen = pyte.Screen(columns, 60)
    pyte.Stream(screen).feed(text.replace("\n", "\r\n"))
    lines = [line.rstrip() for line in screen.display]
    return lines[: len(text.split("\n"))]


@pytest.mark.parametrize(("language", "columns"), SIZES)
def test_M1_H6_the_status_line_fits_every_width_and_shows_numbers_only_when_they_matter(language, columns):
    set_language(language)
    home = AgentState(model="embedded:qwen2.5-coder-1.5b", workspace=str(Path.home() / "work/proj"))
    around = AROUND._replace(branch="main", sandbox="namespaces")
    (line,) = bar_lines(home, around, columns)
    assert joined([line]) == "😎🧘💪 ~/work/proj (main) · Qwen2.5 Coder 1.5B · ask"
    busy = home.model_copy(update={"prompt_tokens": 12_000})
    (line,) = bar_lines(busy, around, columns, 125.0)
    assert joined([line]).endswith(f" · ask · {'2 min 5 s' if language == 'en' else '2 分 5 秒'} · 12 %")
    lines = bar_lines(STATE, AROUND, columns)
    shown = joined(lines)
    assert all(one in shown for one in ("😎(0.92)", "😵(0.45)", "💪(0.98)", "ask")), "a vital is low"
    assert drawn(shown, columns) == shown.split("\n")
    if columns >= 80:
        names = ("Mood", "Focus", "Stamina") if language == "en" else ("気分", "集中力", "体力")
        vitals = zip(names, ("😎(0.92)", "😵(0.45)", "💪(0.98)"), strict=True)
        assert f"[ Duckflow | {' | '.join(f'{name}: {value}' for name, value in vitals)} ]" in shown
        assert "gpt-6.1-terra" in shown
        assert ("no sandbox" if language == "en" else "サンドボックスなし") in shown


def test_H6_the_whole_bar_appears_for_low_or_moving_vitals_with_a_consultation_and_if_wanted():
    well, lower = Vitals(), Vitals(focus=0.6)
    moved = AgentState(vitals=lower, vitals_over_time=(well, lower))
    oracle = Consultation(
        consultation_id="c", kind="oracle", situation="consultation.oracle", choices=("rest",)
    )
    asked, plain = (
        AgentState(consultation=oracle.model_copy(update={"kind": kind})) for kind in ("oracle", "instead")
    )
    for state, busy_s, wanted, whole in (
        (AgentState(), None, False, False),
        (AgentState(), 1.0, True, True),
        (AgentState(vitals=Vitals(mood=0.65)), None, False, True),
        (moved, 1.0, False, True),
        (moved, None, False, False),
        (asked, None, False, True),
        (plain, None, False, False),
    ):
        shown = joined(bar_lines(state, EngineStatus(all_vitals=wanted), 120, busy_s))
        assert ("Mood: " in shown) == whole, (state.vitals, busy_s, shown)


def test_M1_a_narrow_status_line_shortens_the_folder_before_it_leaves_out_the_branch():
    state = AgentState(model="openai:gpt-6.1-terra", workspace="/very/long/path/of/folders/proj")
    around = EngineStatus(branch="feature")
    shown = {columns: joined(bar_lines(state, around, columns)) for columns in (80, 50, 36)}
    assert shown == {
        80: "😎🧘💪 /very/long/path/of/folders/proj (feature) · gpt-6.1-terra · ask",
        50: "😎🧘💪 proj (feature) · gpt-6.1-terra · ask",
        36: "😎🧘💪 proj · gpt-6.1-terra · ask",
    }


@pytest.mark.parametrize(("language", "columns"), SIZES)
def test_the_lines_above_the_prompt_show_reply_output_tasks_queue_and_one_plain_line(language, columns):
    set_language(language)
    replies = ReplyStream(FakeWriter(columns))
    replies.feed("書きかけの返事 " + "x" * (columns - 16))
    activity = Activity(replies)
    activity.busy = True
    activity.note(OutputPiece(text="".join(f"{number} 行目の出力\n" for number in range(100_000))))
    shown = joined(activity.lines(STATE, ["次のお願い " * 30], columns))
    assert drawn(shown, columns) == shown.split("\n")
    assert "99999 行目の出力" in shown
    assert f"▰▰▰▰▰▱▱▱▱▱ {'tasks' if language == 'en' else '作業'} 1/2 $ pytest -q" in shown
    assert "次のお願い" in shown
    assert ("🦆 looking for the bug…" if language == "en" else "🦆 バグを探しています…") in shown


@pytest.mark.parametrize(("language", "columns"), SIZES)
def test_I10_a_running_command_is_named_instead_of_a_model_that_thinks(language, columns):
    set_language(language)
    activity = Activity(ReplyStream(FakeWriter(columns)))
    activity.busy = True
    command = Action(operation="shell.run", args={"command": "make all " + "very-long " * 20})
    state = replace(STATE, running=ActionStarted(action_id="a1", action=command))
    shown = joined(activity.lines(state, (), columns))
    assert drawn(shown, columns) == shown.split("\n")
    assert "🦆 $ make all" in shown
    assert ("Esc" in shown) == (columns > 40)


@pytest.mark.parametrize(("language", "columns"), SIZES)
def test_B5_plan_and_tasks_are_trees(language, columns):
    set_language(language)
    writer = FakeWriter(columns)
    writer.line(plan_tree(STATE))
    writer.line(tasks_tree(STATE))
    assert drawn(writer.text, columns) == writer.text.split("\n")
    assert "├─ ● 1. 盤面" in writer.text
    assert "│   ◐ $ pytest -q" in writer.text
    assert "└─ ○ 2. rules" in writer.text
    assert plan_tree(AgentState()) != tasks_tree(AgentState())


@pytest.mark.parametrize(("language", "columns"), SIZES)
def test_help_first_lines_and_costs_fit(language, columns):
    """M2."""
    set_language(language)
    writer = FakeWriter(columns)
    engine = SimpleNamespace(
        extensions=Extensions(commands=(CustomCommand(name="mine", body="x"),)), servers=tuple
    )
    context = CommandContext(engine, writer, None, lambda session: None)  # type: ignore[arg-type]
    show_help(context)
    assert "/mine" in writer.text
    writer.line(start_text("ask", ("AGENTS.md",), "pytest", "namespaces", "a.py"))
    writer.raw(cost_text(STATE))
    assert all(width_of(line) <= columns for line in writer.text.split("\n"))
    for expected in ("/status", "/undo", "Ctrl-R", "AGENTS.md", "pytest", "12,345", "$0.0123"):
        assert expected in writer.text


@pytest.mark.parametrize("language", ["en", "ja"])
def test_K4_costs_name_tokens_put_into_the_cache_and_thought_where_there_are_any(language):
    set_language(language)
    counted = Usage(input_tokens=1_234_567, cached_tokens=1_000_000, output_tokens=54_321)
    rare = {"cache_written_tokens": 123_456, "thinking_tokens": 43_210}
    used = TierUsage(calls=120, tokens=counted, cost_usd=1.5)
    more = TierUsage(calls=3, tokens=Usage.model_validate({**counted.model_dump(), **rare}), cost_usd=0.5)
    plain, whole = (cost_text(AgentState(usage={"creative": used, "evaluator": one})) for one in (used, more))
    assert "1,000,000" in plain
    for tokens in ("123,456", "43,210", "$2.0000"):
        assert tokens in whole
        assert tokens == "$2.0000" or tokens not in plain
    titles = {text("cost.written"), text("cost.thinking")}
    assert all(title in whole.split("\n")[0] for title in titles)
    assert not any(title in plain for title in titles)
    assert all(width_of(line) <= 80 for line in whole.split("\n"))


@pytest.mark.parametrize(("language", "columns"), SIZES)
def test_a_command_shows_its_end_and_how_much_more_there_is(language, columns):
    set_language(language)
    output = "exit code 0\n" + "".join(f"{number} 番目の長い行 {'x' * 200}\n" for number in range(50))
    writer = FakeWriter(columns)
    tell(writer, "shell.run", {"command": "make -j"}, text=output, exit_code=0)
    lines = writer.text.split("\n")
    assert all(width_of(line) <= columns for line in lines)
    assert len(lines) == 5
    assert lines[0] == "✓ $ make -j"
    assert "47" in lines[1]
    assert "49 番目" in lines[-1]


def tell(writer: FakeWriter, operation: str, args: dict, **fields) -> None:
    """Show an action on the screen, from its beginning to its end."""
    action = Action(operation=operation, args=args)
    ended = {"action_id": "a1", "operation": operation, "outcome": "ok", "evidence_id": "e1", **fields}
    screen = Screen(writer)
    for seq, event in enumerate(
        (ActionStarted(action_id="a1", action=action), ActionFinished.model_validate(ended))
    ):
        screen(StoredEvent(seq=seq, at=datetime.now(UTC), event=event))


def test_a_single_line_of_output_is_not_left_out():
    writer = FakeWriter()
    tell(writer, "shell.run", {"command": "seq 4"}, text="exit code 0\n1\n2\n3\n4", exit_code=0, frame=(1, 0))
    assert writer.text.split("\n")[1:] == ["  1", "  2", "  3", "  4"]


@pytest.mark.parametrize(
    ("language", "line"),
    [("en", "✗ $ pytest -q failed: exit code 1"), ("ja", "✗ 失敗: $ pytest -q（終了コード 1）")],
)
def test_the_command_that_ran_is_shown_and_a_failed_one_has_no_mark_of_success(language, line):
    set_language(language)
    writer = FakeWriter()
    tell(writer, "shell.run", {"command": "pytest -q"}, text="exit code 1\n1 failed", exit_code=1)
    assert writer.text.split("\n") == [line, "  1 failed"]


def test_M4_tool_lines_on_a_japanese_screen_have_no_english():
    set_language("ja")
    left = {}
    for operation in OPERATIONS:
        for outcome in ("ok", "failed", "refused", "unknown"):
            writer = FakeWriter()
            tell(writer, operation, {}, text="It failed.\nBadly.", outcome=outcome, path="設計", exit_code=0)
            words = re.findall(r"[A-Za-z]{2,}", re.sub("Ctrl-O|MCP", "", writer.text))
            if words and operation not in ("shell.run", "shell.start", "shell.read", "shell.stop"):
                left[operation, outcome] = words
    assert not left


def test_M4_what_a_command_did_is_told_in_the_users_words_and_its_own_output_stays_as_it_is():
    told = [line("action.deleted", paths="data/ (3), db.sqlite3"), line("action.no_network")]
    wanted = {
        "en": ("deleted:data/(3)", "networkisoff"),
        "ja": ("削除:data/(3)", "ネットワークはオフです"),
    }
    for language, words in wanted.items():
        set_language(language)
        writer = FakeWriter()
        ended = "exit code 0\nIt changed: my mind\nIt changed: new a.txt.\n(There is no network here.)"
        fields = {"told": [one.model_dump() for one in told], "frame": (1, 2), "exit_code": 0}
        tell(writer, "shell.run", {"command": "x"}, text=ended, **fields)
        assert "  It changed: my mind" in writer.text
        assert "new a.txt" not in writer.text
        assert "There is no network" not in writer.text
        assert all(word in "".join(writer.text.split()) for word in words), writer.text


def test_M1_output_of_a_command_that_the_user_ran_is_shown_whole():
    writer = FakeWriter()
    output = "\n".join(f"{number} " + "x" * 100 for number in range(30))
    tell(writer, "shell.run", {"command": "x"}, text=f"exit code 0\n{output}", exit_code=0, by_user=True)
    assert all(f"{number} {'x' * 100}" in writer.text for number in range(30))


def test_M4_a_reason_for_the_user_stands_in_both_languages_without_the_models_english():
    for language, said in (
        ("en", "reading a.txt failed: a.txt does not exist"),
        ("ja", "（a.txt がありません）"),
    ):
        set_language(language)
        writer = FakeWriter()
        reason = line("reason.missing", path="a.txt").model_dump()
        tell(
            writer,
            "file_ops.read_file",
            {},
            text="a.txt: gone.",
            outcome="failed",
            path="a.txt",
            reason=reason,
        )
        assert said in writer.text


def test_code_in_a_table_is_drawn_as_code():
    table = "| case | now |\n|---|---|\n| `[]` | **0.0** |\n"
    assert "`" not in render_text(table, 60, coloured=True)
    assert "`[]`   0.0" in render_text(table, 60, coloured=False)
    assert "0.0\n\n• next" in render_text(f"{table}\n- next", 60, coloured=True).replace("\x1b[0m", "")
    assert "  x\n\n• next" in render_text("```\nx\n```\n\n- next", 60, coloured=False)


def test_a_no_of_the_user_is_told_by_their_answer_alone():
    set_language("ja")
    writer = FakeWriter()
    refused = {"text": "The user said no: 別の", "outcome": "refused", "path": "a.txt"}
    tell(writer, "file_ops.write_file", {}, **refused, declined="now")
    assert writer.text == ""
    tell(writer, "file_ops.write_file", {}, **refused, declined="before")
    assert writer.text == "⊘ お断りになった案と同じだったので、モデルに差し戻しました。"


def test_C5_what_was_begun_before_a_crash_is_told_by_what_was_found_not_by_a_line_without_a_name():
    ended = ActionFinished(
        action_id="a1", operation="shell.run", outcome="unknown", text="?", evidence_id="e1"
    )
    assert Describer()(ended) is None


def test_every_operation_there_is_has_words():
    catalogue = entries("en")
    named = {operation.replace(".", "_") for operation in OPERATIONS} | {"agent_take_over", "search_in"}
    assert {key.partition(".")[2] for key in catalogue if key.startswith("did.")} == named
    assert {key.partition(".")[2] for key in catalogue if key.startswith("doing.")} == named


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_difference_is_side_by_side_where_there_is_room_and_never_cut(columns):
    lines = difference_lines(DIFFERENCE.replace("古い行", "古い" + "長い" * 80), FakeWriter(columns))
    shown = "".join("".join(lines).split())
    assert shown.count("長") == 80
    if columns >= 120:
        assert any("   2 - 古い" in line and "│    2 + 新しい行" in line for line in lines)
        assert all(width_of(line) <= columns for line in lines)
    else:
        assert "+新しい行" in lines


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_markdown_is_drawn_within_the_width(columns):
    source = (
        "# 見出し\n\n**太字** と `code` と[リンク](http://x.y)、長い日本語の文章が続きます。" * 4
        + "\n\n1. first\n2. second with many words "
        + "word " * 30
        + "\n\n> 引用"
        + "です" * 50
        + "\n\n| 名前 | value |\n|---|---|\n| 日本語 | 1 |\n"
    )
    shown = render_text(source, columns, coloured=False)
    assert all(width_of(line) <= columns for line in shown.split("\n"))
    assert "**" not in shown
    assert "│ 引用" in shown
    assert "2. second" in shown
    assert not [line for line in shown.split("\n") if line.startswith(("。", "、"))]


def test_M4_what_was_wrong_with_a_models_answer_is_not_told_in_english_on_a_japanese_screen():
    error = ErrorReported(
        key="llm.bad_answer", values={"output": "Decision", "problem": "the answer is empty"}
    )
    assert "the answer is empty" in error_text(error)
    set_language("ja")
    assert not re.search("[A-Za-z]", error_text(error))


def test_M4_work_that_the_user_stopped_is_told_once():
    writer = FakeWriter()
    tell(writer, "agent.work", {}, text="Stopped by the user while it ran.", outcome="unknown")
    assert writer.text == "■ Stopped: agents work"


@every_row(
    ("operation", "args", "en", "ja"),
    [
        ("file_ops.search", {"pattern": "x"}, "searched for x", "検索しました: x"),
        ("file_ops.search", {"pattern": "x", "path": "."}, "searched for x", "検索しました: x"),
        (
            "file_ops.search",
            {"pattern": "x", "path": "a.py"},
            "searched a.py for x",
            "a.py を検索しました: x",
        ),
        (
            "file_ops.search",
            {"pattern": "x", "path": "src/", "glob": "*.py"},
            "searched src/*.py for x",
            "src/*.py を検索しました: x",
        ),
        ("file_ops.read_file", {"path": "a.py"}, "read a.py", "a.py を読みました"),
        (
            "file_ops.read_file",
            {"path": "a.py", "start": 5, "end": 9},
            "read a.py:5-9",
            "a.py:5-9 を読みました",
        ),
        ("file_ops.read_file", {"path": "a.py", "start": 5}, "read a.py:5-", "a.py:5- を読みました"),
        ("shell.run", {"command": "cd a\nls"}, "$ cd a ls", "$ cd a ls"),
        (
            "shell.run",
            {"command": "cat > a <<'EOF'\nlong\nEOF\nls"},
            "$ cat > a <<'EOF' …",
            "$ cat > a <<'EOF' …",
        ),
        ("shell.run", {"command": "echo $((1 << 3))\nls"}, "$ echo $((1 << 3)) ls", "$ echo $((1 << 3)) ls"),
    ],
)
def test_an_action_is_named_so_that_two_of_a_kind_differ_and_long_text_is_left_out(operation, args, en, ja):
    for language, expected in (("en", en), ("ja", ja)):
        set_language(language)
        assert action_name(operation, args, args.get("path"), done=True) == expected
