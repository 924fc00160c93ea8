"""Users' skills and commands: names in the prompt, full texts on request (L6)."""

import json
from pathlib import Path

import pytest

from duckflow.cli.plain_flags import RunFlags
from duckflow.cli.reports.task import run_with
from duckflow.config.files.markdown import read_commands, split_front
from duckflow.config.loading import load
from duckflow.config.places import config_dir
from duckflow.domain.events import ActionFinished
from duckflow.domain.extensions import CustomCommand, Skill
from duckflow.llm.tokens import estimate_tokens
from duckflow.tools.skills import _summary
from duckflow.ui.commands.table import find_custom
from fakes.engine import decision, engine, write_script
from fakes.rows import Failures, every_row

SKILL = (
    "---\nname: {name}\ndescription: >\n  How to {name},\n  step by step.\n---\n# Steps\nFirst, {secret}.\n"
)


def add_skill(root: Path, name: str, secret: str = "breathe") -> Path:
    place = root / ".agents" / "skills" / name
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(SKILL.format(name=name, secret=secret))
    return place


def read(**args: str) -> dict:
    return {"operation": "skill.read", "args": args}


async def test_L6_names_are_in_the_prompt_and_texts_come_when_called_for(folder: Path, own_home: Path):
    (add_skill(folder, "release", "tag it") / "list.md").write_text("one\ntwo\n")
    add_skill(own_home, "release", "ask me")
    (add_skill(own_home, "review") / "notes").mkdir()
    (folder / ".env").write_text("KEY=1\n")
    (add_skill(folder, "odd") / "link").symlink_to("../../../.env")
    steps = [
        decision("", read(name="release")),
        decision("", read(name="review", file="../release/SKILL.md")),
        decision("", read(name="nothing")),
        decision("", read()),
        decision("Done."),
    ]
    async with engine(folder, *steps, mode="plan") as duck:
        prompt = (await duck.app.model.preview(duck.state)).request.messages[0].text
        assert "  review: How to review, step by step." in prompt
        assert "breathe" not in prompt
        await duck.app.chat.say("go")
        one, two, three, four = duck.of(ActionFinished)
        assert "First, ask me." in one.text  # the user's own wins
        assert [one.outcome, two.outcome, three.outcome, four.outcome] == ["ok", "failed", "failed", "ok"]
        assert "There are: " in three.text
        assert four.text.splitlines() == [
            f"{name}: How to {name}, step by step." for name in ("odd", "release", "review")
        ]
    async with engine(folder, decision("", read(name="odd", file="link")), mode="auto") as duck:
        assert await duck.app.chat.say("go") == "awaiting_approval"  # protected files ask, by any name
        assert duck.state.approval.because == "protected"


async def test_L6_without_skills_nothing_is_said_of_them(folder: Path):
    async with engine(folder) as duck:
        prompt = await duck.app.model.preview(duck.state)
        assert "skill" not in prompt.request.messages[0].text


@every_row("count", [1, 20, 100, 2000])
def test_L6_names_keep_to_their_budget(count: int):
    skills = [Skill(name=f"skill-{n}", description="long " * 200, place="x") for n in range(count)]
    assert estimate_tokens(_summary(skills, 1_000)) < 1_000 + 40


@every_row(
    ("body", "typed", "said"),
    [
        ("Look at $ARGUMENTS now.", "/a x  y", "Look at x  y now."),
        ("$1 then $2, not $3.", "/a b c", "b then c, not ."),
        ("$1 then $2.", "/a 'b c' \"d e\"", "b c then d e."),
        ("$1 then $2, all $ARGUMENTS.", "/a it's b", "it's then b, all it's b."),
        ("Costs $10 or $HOME.", "/a", "Costs $10 or $HOME."),
        ("Just this.", "/a", "Just this."),
        ("Just this.", "／A more", "Just this.\n\nmore"),
        ("Just this.", "/ab", None),
        ("Just this.", "a", None),
    ],
)
def test_L6_a_command_is_the_message_it_stands_for(body, typed, said):
    commands = [CustomCommand(name="a", body=body), CustomCommand(name="help", body="mine")]
    found = find_custom(typed, commands)
    assert (found and found.body) == said
    assert find_custom("/help", commands) is None


def test_L6_commands_come_from_the_user_and_from_a_project_that_is_trusted(folder: Path):
    """SAFETY 6: a project's skills and commands count only once it is trusted."""
    for root, said in ((config_dir() / "commands", "mine"), (folder / ".agents" / "commands", "theirs")):
        (root / "git").mkdir(parents=True)
        (root / "both.md").write_text(f"---\ndescription: '{said}'\nargument-hint: [file]\n---\n{said} $1\n")
        (root / "git" / f"{said}.md").write_text(f"# About {said}\n")
        (root / "no.txt").write_text("x")
    places = config_dir() / "commands"
    untrusted = read_commands([places], load(folder, environ={}).project)
    assert {one.name: one.description for one in untrusted} == {"both": "mine", "git:mine": "About mine"}
    trusted = {
        one.name: one for one in read_commands([places], load(folder, trusted=True, environ={}).project)
    }
    assert {name: one.own for name, one in trusted.items()} == {
        "both": False,
        "git:mine": False,
        "git:theirs": True,
    }
    assert (trusted["both"].body, trusted["both"].takes) == ("mine $1", "[file]")


async def test_L6_skills_of_another_agent_count_and_scripts_of_the_users_run_in_the_sandbox(
    folder: Path, own_home: Path
):
    for root in (folder, own_home):
        add_skill(root, f"of-{root.name}")
        (root / ".agents").rename(root / ".claude")
    script = own_home / ".claude" / "skills" / f"of-{own_home.name}" / "say.sh"
    script.write_text("echo from the skill\n", "utf-8")
    run = decision("", {"operation": "shell.run", "args": {"command": f"sh {script}"}})
    asks = [decision("", read(name=f"of-{root.name}")) for root in (own_home, folder)]
    (folder / ".claude/skills" / f"of-{folder.name}" / "list.md").write_text("x\n")
    async with engine(folder, run, *asks, decision("Done."), mode="auto") as duck:
        assert {one.name for one in duck.app.extensions.skills} == {
            f"of-{folder.name}",
            f"of-{own_home.name}",
        }
        if (await duck.app.shell.sandbox()).level not in ("namespaces", "bubblewrap"):
            pytest.skip("no namespaces here")
        await duck.app.chat.say("go")
        ran, mine, theirs = duck.of(ActionFinished)
        assert "from the skill" in ran.text
        assert f"Other files of this skill, in {script.parent}: say.sh" in mine.text
        assert f"Other files of this skill, in .claude/skills/of-{folder.name}: list.md" in theirs.text


def test_L6_with_seventeen_skills_the_descriptions_still_tell_them_apart():
    start = "Use this skill whenever the user wants to work with files of the kind "
    skills = [Skill(name=f"kind-{n}", description=f"{start}number {n}. " * 5, place="x") for n in range(17)]
    assert all(f"{start}number {n}" in _summary(skills, 1_000) for n in range(17))


def test_L6_lines_of_a_command_run_before_its_message_and_allowed_tools_is_said_to_have_no_effect(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (own := Path.home() / ".claude" / "commands").mkdir(parents=True)
    (own / "greet.md").write_text("---\nallowed-tools: Bash(echo:*)\n---\nSay it: !`echo for-$1`")
    script = write_script(tmp_path / "script.jsonl", [decision("Hello.")])
    told = RunFlags(task="/greet Ann", workspace=folder, model=f"scripted:{script}", json=True)
    assert run_with(told) == 0
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    kinds = [one["type"] for one in said]
    assert kinds.index("action_finished") < kinds.index("user_message")
    assert "for-Ann" in next(one for one in said if one["type"] == "action_finished")["text"]
    message = next(one for one in said if one["type"] == "user_message")
    assert message["text"] == "Say it: `echo for-Ann` (its output is above)"
    assert "skills.allows" in [one.get("key") for one in said]


def test_L6_a_command_works_without_a_terminal(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (config_dir() / "commands").mkdir(parents=True)
    (config_dir() / "commands" / "greet.md").write_text("Say hello to $1.")
    script = write_script(tmp_path / "script.jsonl", [decision("Hello.")])
    told = RunFlags(task="/greet Ann", workspace=folder, model=f"scripted:{script}", json=True)
    assert run_with(told) == 0
    assert "Say hello to Ann." in capsys.readouterr().out


def test_what_stands_at_the_top_is_read_with_care():
    failures = Failures()
    rows = {
        "": {},
        "---": {},
        "---\na: 1\n": {},
        "---\na: 1\n---": {"a": "1"},
        "---\r\na: 'x'\r\n---\r\nb": {"a": "x"},
        "---\na: \"say \\\"x\\\", \\\\y\"\nb: 'it''s'\n---": {"a": 'say "x", \\y', "b": "it's"},
        "---\n- a\nb:\n  c\n---\n": {"b": "c"},
    }
    for content, said in rows.items():
        with failures.of(json.dumps(content)):
            assert split_front(content)[0] == said
    failures.report()
