"""Hooks: the user's commands around actions and requests, in the form that is known elsewhere (L5)."""

import json
import os
import sys
from pathlib import Path

import pytest

from duckflow.config.files.hooks import parse_hooks
from duckflow.config.loading import load
from duckflow.config.places import config_dir
from duckflow.domain.decision import Action
from duckflow.domain.errors import UsageError
from duckflow.domain.events import ActionFinished, HookRan, UserMessage
from duckflow.domain.extensions import Hook
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.domain.questions.consultation import ChooseWay
from duckflow.loops.hooks.known_tools import fits, known_as, matches
from duckflow.loops.hooks.verdicts import HookEnd, HookShell, read_verdict
from duckflow.store.audit.log import read_entries
from duckflow.tools import programs
from fakes.engine import action, decision, engine
from fakes.rows import Failures, every_row

GUARD = """
import json, sys
command = json.load(sys.stdin)["tool_input"].get("command", "")
if "rm -rf" in command:
    print("no rm -rf here", file=sys.stderr)
    sys.exit(2)
"""
DENIES = """
import json, sys
path = json.load(sys.stdin)["tool_input"]["file_path"]
if path.endswith("/locked.txt"):
    said = {"permissionDecision": "deny", "permissionDecisionReason": "locked"}
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **said}}))
"""
KEEPS = "import sys; open({place!r}, 'a').write(sys.stdin.read() + '\\n')"


def write_hooks(tmp_path: Path, *rows: tuple[str, str, str], place: Path | None = None, **more) -> None:
    """A hook file with Python scripts: event, matcher, script (or a plain command after a `$`)."""
    events: dict[str, list] = {}
    for number, (event, matcher, script) in enumerate(rows):
        command = script.removeprefix("$")
        if not script.startswith("$"):
            file = tmp_path / f"hook{number}.py"
            file.write_text(script)
            command = f"{sys.executable} -I -S {file}"
        hook = {"type": "command", "command": command, **more}
        events.setdefault(event, []).append({"matcher": matcher, "hooks": [hook]})
    place = place or config_dir() / "hooks.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps({"hooks": events}))


def kept(place: Path) -> list[dict]:
    return [json.loads(line) for line in place.read_text().splitlines()] if place.exists() else []


def run(command: str) -> dict:
    return {"operation": "shell.run", "args": {"command": command}}


async def test_L5_the_same_file_refuses_the_same_command_and_the_model_reads_why(
    folder: Path, tmp_path: Path
):
    """A matcher, a script that reads tool_input.command, exit code 2: nothing runs, in any mode."""
    write_hooks(tmp_path, ("PreToolUse", "Bash", GUARD), ("PreToolUse", "Edit|Write", DENIES))
    (folder / "keep").mkdir()
    steps = (
        decision("", run("rm -rf keep")),
        decision("", action("write_file", path="locked.txt", content="x")),
        decision("", action("write_file", path="open.txt", content="x")),
        decision("I give up."),
    )
    async with engine(folder, *steps, mode="auto") as duck:
        await duck.app.chat.say("clean up")
        ended = [one for one in duck.of(ActionFinished) if one.operation != "shell.take_over"]
        assert [one.outcome for one in ended] == ["refused", "refused", "ok"]
        assert "no rm -rf here" in ended[0].text
        assert "locked" in ended[1].text
        outcomes = [(one.hook, one.tool, one.outcome) for one in duck.of(HookRan)]
        assert outcomes == [
            ("PreToolUse", "Bash", "blocked"),
            ("PreToolUse", "Write", "blocked"),
            ("PreToolUse", "Write", "ok"),
        ]
        kinds = [json.loads(entry.body) for entry in read_entries(duck.app.log.database)]
        assert [one["outcome"] for one in kinds if one["kind"] == "hook"] == ["blocked", "blocked", "ok"]
    assert (folder / "keep").is_dir()
    assert not (folder / "locked.txt").exists()


SAYS_NO = '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "%s"}}'
SETTINGS = {
    "permissions": {"allow": ["Bash(ls:*)"]},
    "hooks": {
        "PreToolUse": [
            {
                "matcher": "Bash",
                "hooks": [
                    {"type": "command", "command": '"$CLAUDE_PROJECT_DIR"/.claude/hooks/no-push.sh'},
                    {"type": "command", "command": "cat > /dev/null", "timeout": 5},
                ],
            },
            {"matcher": "WebFetch", "hooks": [{"type": "command", "command": f"echo '{SAYS_NO % 'stay'}'"}]},
            {
                "matcher": "MultiEdit",
                "hooks": [
                    {
                        "type": "command",
                        "command": """grep -q '"old_string": "b"' && echo no b >&2 && exit 2""",
                    }
                ],
            },
            {
                "matcher": "Write|NotebookEdit",
                "hooks": [
                    {"type": "command", "command": """echo '{"decision": "block", "reason": "read only"}'"""}
                ],
            },
        ]
    },
}
NO_PUSH = """#!/usr/bin/env bash
if [[ $(cat) =~ '"command": "git push' ]]; then echo "people push" >&2; exit 2; fi
"""


async def test_L5_a_settings_file_of_another_agent_works_unchanged(folder: Path, own_home: Path):
    """With all three ways to say no, and scripts that it names by the project's folder."""
    for place, content in (
        (own_home / ".claude/settings.json", json.dumps(SETTINGS)),
        (folder / ".claude/hooks/no-push.sh", NO_PUSH),
    ):
        place.parent.mkdir(parents=True)
        place.write_text(content)
        place.chmod(0o755)
    (folder / "a.txt").write_text("a b\n")
    refused = [
        (run("git push -f"), "people push"),
        ({"operation": "web.fetch", "args": {"url": "http://127.0.0.1:9/"}}, "stay"),
        (action("edit_file", path="a.txt", edits=[{"find": "b", "replace": "c"}]), "no b"),
        (action("write_file", path="a.txt", content="x"), "read only"),
    ]
    allowed = [run("echo git pull"), action("edit_file", path="a.txt", edits=[{"find": "a", "replace": "x"}])]
    steps = [decision("", step) for step in (*(step for step, _ in refused), *allowed)]
    more = {"hooks": {"files": ["~/.claude/settings.json"]}, "web": {"fetch": True}, "max_loops": 20}
    async with engine(folder, *steps, decision("Done."), mode="auto", **more) as duck:
        await duck.app.chat.say("go")
        while duck.state.consultation is not None:
            await duck.app.chat.choose(ChooseWay(choice=duck.state.consultation.choices[-1]))
        ended = [one for one in duck.of(ActionFinished) if one.operation != "shell.take_over"]
        assert [one.outcome for one in ended] == ["refused"] * len(refused) + ["ok"] * len(allowed)
        failures = Failures()
        for one, (_, reason) in zip(ended, refused, strict=False):
            with failures.of(reason):
                assert reason in one.text
        failures.report()
    with pytest.raises(UsageError):  # a guard that is named and gone
        async with engine(folder, hooks={"files": ["~/.claude/other.json"]}):
            pass


async def test_L5_what_a_hook_is_told_has_the_known_names(folder: Path, tmp_path: Path):
    place = tmp_path / "told.jsonl"
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Notification", "Stop")
    write_hooks(tmp_path, *((one, "", KEEPS.format(place=str(place))) for one in (*events, "SessionEnd")))
    step = decision("", action("write_file", path="a.txt", content="hello\n"))
    async with engine(folder, step, decision("Done."), mode="ask") as duck:
        await duck.app.chat.say("write it")
        await duck.app.chat.answer(AnswerApproval(yes=True))
        session = duck.state.session_id
    told = {one["hook_event_name"]: one for one in kept(place)}
    assert set(told) == {*events, "SessionEnd"}
    assert len([one for one in kept(place) if one["hook_event_name"] == "PreToolUse"]) == 1
    before, after = told["PreToolUse"], told["PostToolUse"]
    assert (before["session_id"], before["cwd"]) == (session, str(folder))
    assert (before["permission_mode"], before["tool_name"]) == ("default", "Write")
    assert before["tool_input"] == {"file_path": f"{folder}/a.txt", "content": "hello\n"}
    assert after["tool_response"]["success"] is True
    assert after["tool_response"]["filePath"] == f"{folder}/a.txt"
    assert told["UserPromptSubmit"]["prompt"] == "write it"
    assert told["Stop"]["stop_hook_active"] is False
    assert told["SessionStart"]["source"] == "startup"


async def test_L5_a_question_tells_its_hooks(folder: Path, tmp_path: Path):
    place = tmp_path / "told.jsonl"
    write_hooks(tmp_path, ("Notification", "permission_prompt", KEEPS.format(place=str(place))))
    step = decision("", action("write_file", path="a.txt", content="hello\n"))
    async with engine(folder, step, mode="ask") as duck:
        await duck.app.chat.say("write it")  # and the session ends at once, as without a terminal
    assert [one["notification_type"] for one in kept(place)] == ["permission_prompt"]


async def test_L5_a_hook_ends_when_it_ends_whatever_it_left_in_the_background(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """Also something that left the hook's group, and so outlives it with the output open."""
    monkeypatch.setattr(programs, "_GRACE_S", 0.05)
    shell = HookShell("/bin/sh", str(folder), dict(os.environ))
    for left in ("sleep 60", "setsid sleep 5"):
        end = await shell.run(f"echo hi; {left} & exit 3", b"", 60.0)
        assert (end.exit_code, end.output) == (3, "hi"), left


async def test_L5_hooks_tighten_and_never_loosen(folder: Path, tmp_path: Path):
    """An `allow` changes nothing; an `ask` asks in every mode; silence before an action asks, too."""
    says = '$echo \'{{"hookSpecificOutput": {{"permissionDecision": "{}"}}}}\''
    step = decision("", action("write_file", path="a.txt", content="hello\n"))
    rows = [("ask", says.format("allow"), {}, "awaiting_approval"), ("auto", says.format("ask"), {}, "")]
    rows += [("auto", "$sleep 60", {"timeout": 0.1}, ""), ("auto", "$exit 1", {}, "done")]
    rows += [("auto", "$exit 1", {"onFailure": "block"}, "refused")]
    failures = Failures()
    for number, (mode, script, more, wanted) in enumerate(rows):
        with failures.of((mode, script, more)):
            work = folder / str(number)
            work.mkdir()
            write_hooks(tmp_path, ("PreToolUse", "Write", script), **more)
            async with engine(work, step, decision("Done."), mode=mode) as duck:
                outcome = await duck.app.chat.say("go")
                if wanted == "refused":
                    assert duck.of(ActionFinished)[0].outcome == "refused"
                else:
                    assert outcome == (wanted or "awaiting_approval")
                    assert wanted or duck.state.approval.because == "hook"
                    assert (work / "a.txt").exists() == (wanted == "done")
                if mode == "auto" and not wanted:
                    assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "done"
                    assert (work / "a.txt").exists()
    failures.report()


async def test_L5_a_message_can_be_refused_or_added_to(folder: Path, tmp_path: Path):
    script = "import json, sys\nsaid = json.load(sys.stdin)['prompt']\n"
    script += "print('The branch is main.') if said != 'secret' else sys.exit('no secrets') or 0\n"
    write_hooks(tmp_path, ("UserPromptSubmit", "", script.replace("sys.exit('no secrets')", "sys.exit(2)")))
    async with engine(folder, decision("Hello."), mode="ask") as duck:
        assert await duck.app.chat.say("secret") == "stopped"
        assert not duck.of(UserMessage)
        assert await duck.app.chat.say("hi") == "done"
        assert "The branch is main." in duck.of(UserMessage)[0].added
        assert "The branch is main." in duck.state.transcript[0].text


async def test_L5_a_hook_at_the_end_can_want_more_and_one_after_an_action_is_heard(folder, tmp_path):
    once = "import json, sys\nif not json.load(sys.stdin)['stop_hook_active']:\n"
    once += "    print(json.dumps({'decision': 'block', 'reason': 'write b.txt too'}))\n"
    heard = '$echo \'{"decision": "block", "reason": "use tabs"}\''
    write_hooks(tmp_path, ("Stop", "", once), ("PostToolUse", "Write", heard))
    steps = (
        decision("", action("write_file", path="a.txt", content="x")),
        decision("Done."),
        decision("", action("write_file", path="b.txt", content="x")),
        decision("Done, both."),
    )
    async with engine(folder, *steps, mode="auto") as duck:
        assert await duck.app.chat.say("go") == "done"
        told = "\n".join(entry.text for entry in duck.state.transcript)
        assert "write b.txt too" in told
        assert "use tabs" in duck.of(ActionFinished)[0].text
    assert (folder / "b.txt").exists()


async def test_L5_hooks_of_a_project_run_only_once_it_is_trusted(folder: Path, tmp_path: Path):
    """SAFETY 6: and as they were when they were trusted."""
    place = folder / ".agents" / "hooks.json"
    write_hooks(tmp_path, ("PreToolUse", "Bash", "$exit 2"), place=place)
    untrusted = load(folder, environ={})
    assert not untrusted.project
    assert [one.key for one in untrusted.notices] == ["config.project_not_trusted"]
    trusted = load(folder, trusted=True, environ={})
    for project, wanted in ((untrusted.project, "ok"), (trusted.project, "refused")):
        async with engine(folder, decision("", run("true")), decision("Ok."), project=project) as duck:
            await duck.app.chat.say("go")
            assert duck.of(ActionFinished)[0].outcome == wanted


@every_row(
    ("matcher", "name", "wanted"),
    [
        ("", "Bash", True),
        ("*", "Bash", True),
        ("Bash", "BashOutput", False),
        ("Edit|Write", "Write", True),
        ("Edit, Write", "Write", True),
        ("Edit.*", "MultiEdit", True),
        ("^Edit$", "MultiEdit", False),
        ("mcp__memory", "mcp__memory__add", False),
        ("mcp__memory__.*", "mcp__memory__add", True),
        ("(", "Bash", True),
    ],
)
def test_L5_matchers_mean_what_they_mean_elsewhere(matcher, name, wanted):
    assert matches(matcher, name) is wanted


def test_L5_operations_have_the_names_that_hooks_know():
    failures = Failures()
    rows = [
        ("shell.run", {"command": "ls"}, [("Bash", "command", "ls")]),
        ("file_ops.read_file", {"path": "a"}, [("Read", "file_path", "/w/a")]),
        (
            "file_ops.delete_file",
            {"path": "a b"},
            [("Bash", "command", "rm 'a b'"), ("Write", "content", "")],
        ),
        ("file_ops.search", {"pattern": "x"}, [("Grep", "pattern", "x")]),
        ("mcp.git.log", {"n": 1}, [("mcp__git__log", "n", 1)]),
        ("memory.remember", {"text": "x"}, [("memory.remember", "text", "x")]),
        (
            "file_ops.edit_file",
            {"path": "b/../a", "edits": [{"find": "1", "replace": "2"}]},
            [("Edit", "file_path", "/w/a"), ("MultiEdit", "edits", [{"old_string": "1", "new_string": "2"}])],
        ),
        ("web.fetch", {"url": "http://a.b"}, [("WebFetch", "url", "http://a.b")]),
    ]
    for operation, args, wanted in rows:
        with failures.of(operation):
            known = known_as(Action(operation=operation, args=args), "/w")
            assert [
                (one.name, key, one.input[key]) for one, (_, key, _) in zip(known, wanted, strict=True)
            ] == (wanted)
    failures.report()


def test_L5_conditions_narrow_a_hook():
    hook = Hook(event="PreToolUse", condition="Bash(git push *)", command="x", origin="x")
    (push,) = known_as(Action(operation="shell.run", args={"command": "cd x && git push -f"}), "/w")
    (pull,) = known_as(Action(operation="shell.run", args={"command": "git pull"}), "/w")
    assert fits(hook, push)
    assert not fits(hook, pull)


@every_row(
    "content",
    ["{", "[]", '{"hooks": []}', '{"hooks": {"Stop": [{}]}}', '{"hooks": {"Stop": [{"hooks": [{}]}]}}'],
)
def test_L5_a_broken_file_is_told_and_never_skipped(content):
    with pytest.raises(UsageError):
        parse_hooks(content, "hooks.json")


def test_L5_what_is_not_used_here_is_named():
    groups = [{"hooks": [{"type": "prompt", "prompt": "?"}, {"type": "command", "command": "x"}]}]
    listed = parse_hooks(json.dumps({"hooks": {"Stop": groups, "PreCompact": groups}, "model": "x"}), "f")
    assert [hook.command for hook in listed.hooks] == ["x"]
    assert listed.unused == ("Stop: prompt", "PreCompact")


def test_L5_what_a_hook_prints_is_bounded_and_read_with_care():
    hook = Hook(event="PreToolUse", command="x", origin="x")
    failures = Failures()
    for output, wanted in (("{" * 5000, "ok"), ("{}", "ok"), ('{"decision": 1}', "ok"), ("[1]", "ok")):
        with failures.of(output[:20]):
            assert read_verdict(hook, HookEnd(0, output)).outcome == wanted
    assert len(read_verdict(hook, HookEnd(2, "", "x" * 100_000)).reason) <= 2_000
    failures.report()


async def test_L5_a_hook_can_end_the_work_on_a_message(folder: Path, tmp_path: Path):
    """`continue: false` before or after an action: the model is not asked again until the user speaks."""
    says = """$echo '{"continue": false, "stopReason": "enough"}'"""
    write = decision("", action("write_file", path="a.txt", content="x"))
    failures = Failures()
    for event, written in (("PreToolUse", False), ("PostToolUse", True)):
        with failures.of(event):
            work = folder / event
            work.mkdir()
            write_hooks(tmp_path, (event, "Write", says))
            async with engine(work, write, decision("Hello."), mode="auto") as duck:
                assert await duck.app.chat.say("go") == "stopped"
                assert (work / "a.txt").exists() is written
                assert await duck.app.chat.say("and you?") == "done"
    failures.report()
