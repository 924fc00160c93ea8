"""Evidence is kept once, named by id, and never taken for current when it is old (F5, N)."""

from pathlib import Path
from typing import Any

from duckflow.domain.events import ActionFinished
from duckflow.domain.state import TranscriptEntry
from fakes.engine import action, decision, engine

READ = decision("", action("read_file", path="a.txt"))


async def test_evidence_ids_count_through_a_session(tmp_path: Path):
    (tmp_path / "a.txt").write_text("one\n")
    async with engine(tmp_path, READ, decision("ok"), READ, decision("ok")) as duck:
        await duck.app.chat.say("read")
        await duck.app.chat.say("read again")
        assert [found.evidence_id for found in duck.of(ActionFinished)] == ["e1", "e2"]


async def test_the_same_thing_is_kept_once(tmp_path: Path):
    (tmp_path / "a.txt").write_text("one\n" * 50)
    async with engine(tmp_path, READ, READ, decision("ok")) as duck:
        await duck.app.chat.say("read")
        assert duck.of(ActionFinished)[1].text == "a.txt is unchanged: see [e1]."


async def test_an_edited_file_is_never_taken_for_current_in_its_old_version(tmp_path: Path):
    (tmp_path / "a.txt").write_text("one\n")
    edit = decision("", action("edit_file", path="a.txt", edits=[{"find": "one", "replace": "two"}]))
    async with engine(tmp_path, READ, edit, READ, decision("ok")) as duck:
        await duck.app.chat.say("edit")
        entries = {entry.evidence_id: entry for entry in duck.state.transcript if entry.evidence_id}
        assert entries["e1"].stale
        assert "Older now, do not rely on it: e1" in entries["e2"].text
        assert "two" in entries["e3"].text
        assert not entries["e3"].stale


async def test_a_file_somebody_else_changed_is_shown_anew_before_the_next_decision(tmp_path: Path):
    (tmp_path / "a.txt").write_text("one\n")
    async with engine(tmp_path, READ, decision("Noted."), decision("Aha.")) as duck:
        await duck.app.chat.say("read")
        (tmp_path / "a.txt").write_text("changed by hand\n")
        await duck.app.chat.say("and now?")
        last = duck.of(ActionFinished)[-1]
        assert "changed by hand" in last.text
        assert [entry.stale for entry in duck.state.transcript if entry.path == "a.txt"] == [True, False]


async def test_a_file_that_did_not_change_is_not_read_again(tmp_path: Path):
    (tmp_path / "a.txt").write_text("one\n")
    async with engine(tmp_path, READ, decision("Noted."), decision("Aha.")) as duck:
        await duck.app.chat.say("read")
        await duck.app.chat.say("and now?")
        assert len(duck.of(ActionFinished)) == 1


def results(duck: Any) -> dict[str, TranscriptEntry]:
    """The results in the transcript, by id."""
    return {entry.evidence_id: entry for entry in duck.state.transcript if entry.evidence_id}


async def test_F5_another_part_of_a_file_does_not_make_the_first_part_old(tmp_path: Path):
    (tmp_path / "a.txt").write_text("".join(f"line {number}\n" for number in range(100)))
    parts = [decision("", action("read_file", path="a.txt", start=at, end=at + 9)) for at in (1, 40, 1)]
    edit = decision("", action("edit_file", path="a.txt", edits=[{"find": "line 3\n", "replace": "three\n"}]))
    async with engine(tmp_path, *parts[:2], edit, parts[2], decision("ok")) as duck:
        await duck.app.chat.say("read it")
        found = results(duck)
        assert [found[one].stale for one in ("e1", "e2", "e4")] == [True, True, False]
        assert "Older now" not in found["e2"].text
        assert "Older now, do not rely on it: e1, e2" in found["e3"].text


async def test_F5_what_a_pointer_points_to_stays_current(tmp_path: Path):
    (tmp_path / "a.txt").write_text("one\n" * 50)
    async with engine(tmp_path, READ, READ, decision("ok")) as duck:
        await duck.app.chat.say("read")
        found = results(duck)
        assert (found["e1"].stale, found["e2"].same_as) == (False, "e1")
        assert "Older now" not in found["e2"].text


async def test_F3_a_newer_look_at_the_same_thing_replaces_the_older_one(tmp_path: Path):
    (tmp_path / "a.txt").write_text("one\n")
    search = decision("", action("search", pattern="one"))
    other = decision("", action("search", pattern="two"))
    write = decision("", action("write_file", path="b.txt", content="one\n"))
    async with engine(tmp_path, search, other, write, search, decision("ok")) as duck:
        await duck.app.chat.say("search")
        assert [entry.stale for entry in results(duck).values()] == [True, False, False, False]


async def test_J10_an_edit_says_which_quick_checks_ran(tmp_path: Path):
    write = decision("", action("write_file", path="a.json", content="{}"))
    async with engine(tmp_path, write, decision("ok"), checks={"before_verdict": False}) as duck:
        await duck.app.chat.say("write it")
        assert duck.of(ActionFinished)[0].text == "created a.json (1 lines)\nchecked: syntax ok"


async def test_a_result_that_is_shown_in_part_says_so_and_can_be_read_by_its_id(tmp_path: Path):
    """SAFETY 14: what is kept of it holds no secret."""
    token = "ghp_" + "a1B2" * 9
    command = f"seq 40000; echo {token} >&2; echo last"
    long = decision("", {"operation": "shell.run", "args": {"command": command}})
    read, late, wrong = (
        decision("", {"operation": "shell.read", "args": args})
        for args in (
            {"id": "e1", "start": 20_000, "end": 20_001},
            {"id": "e1", "start": 40_001},
            {"id": "e7"},
        )
    )
    async with engine(tmp_path, long, read, late, wrong, decision("ok"), mode="auto") as duck:
        await duck.app.chat.say("count")
        cut, middle, end, none = duck.of(ActionFinished)
        assert cut.text.splitlines()[:2] == [
            "exit code 0",
            "(only the beginning and the end of 228,940 characters in 40,002 lines are shown; "
            'shell.read(id="e1", start, end) shows others)',
        ]
        assert "\n499\n500\n… " in cut.text
        assert middle.text == "result e1 (lines 20000-20001 of 40002)\n20000\n20001"
        assert end.text.endswith("\nlast")
        assert token not in end.text
        kept = duck.app.kept.output(duck.state.session_id, "e1")
        assert kept is not None
        assert token not in kept
        assert none.outcome == "failed"
        assert none.text == "e7 was shown whole, or is no longer kept: look at it again."
