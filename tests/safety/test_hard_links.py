"""A hard link gives a secret a harmless name: the strongest of all its names counts (SAFETY 4, L3, G7)."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from duckflow.domain.errors import ToolError
from duckflow.loops.thinking.rules import RulesFiles
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.sandbox.view.secret_index import SecretIndex
from duckflow.tools.skills import find_skills


@pytest.fixture
def workspace(folder: Path):
    (folder / "sub").mkdir()
    for path, text in {".env": "A=SECRET\n", "sub/.env": "B=SECRET\n", "plain.md": "Be kind.\n"}.items():
        (folder / path).write_text(text)
    opened = Workspace(folder)
    yield opened
    opened.close()


def test_a_file_tool_treats_another_name_of_a_secret_as_the_secret(workspace: Workspace):
    os.link(workspace.root / "sub/.env", workspace.root / "notes.txt")
    os.link(workspace.root / "plain.md", workspace.root / "sub/same.md")
    assert workspace.protection("notes.txt") == "asks"
    with pytest.raises(ToolError, match="protected"):
        workspace.read_text("notes.txt")
    assert workspace.protection("sub/same.md") == "none"
    assert workspace.read_text("sub/same.md") == "Be kind.\n"


def test_names_that_come_and_go_later_are_noticed(workspace: Workspace):
    (workspace.root / "a.txt").write_text("x")
    os.link(workspace.root / "a.txt", workspace.root / "b.txt")
    assert workspace.protection("b.txt") == "none"
    (workspace.root / "a.txt").rename(workspace.root / "prod.key")
    assert workspace.protection("b.txt") == "asks"


@pytest.mark.parametrize(
    "name", [".env", "sub/../.env", "./sub/.env", "deploy.key", ".git/config", "duckflow.toml"]
)
def test_L3_rules_never_come_from_a_place_for_secrets(workspace: Workspace, name: str):
    (workspace.root / "deploy.key").write_text("SECRET")
    (workspace.root / "duckflow.toml").write_text("SECRET")
    (workspace.root / ".git").mkdir()
    (workspace.root / ".git/config").write_text("SECRET")
    rules = RulesFiles(workspace, [name, "plain.md"], 1_000).now
    assert "SECRET" not in rules.text + rules.short
    assert "Be kind." in rules.text
    assert [one.key for one in rules.problems] == ["rules.unreadable"]


@pytest.mark.parametrize("secret", [".env", "sub/.env", "../outside.txt"])
def test_L3_rules_are_no_other_name_of_a_secret(workspace: Workspace, secret: str):
    (workspace.root.parent / "outside.txt").write_text("SECRET")
    os.link(workspace.root / secret, workspace.root / "AGENTS.md")
    (workspace.root / "link.md").symlink_to("sub/.env")
    rules = RulesFiles(workspace, ["AGENTS.md", "link.md"], 1_000).now
    assert "SECRET" not in rules.text + rules.short
    assert [one.key for one in rules.problems] == ["rules.unreadable"] * 2


@pytest.mark.parametrize("secret", [".env", "../outside.txt"])
def test_L6_a_skill_of_the_project_is_no_other_name_of_a_secret(workspace: Workspace, secret: str):
    (workspace.root.parent / "outside.txt").write_text("SECRET")
    place = workspace.root / ".agents/skills/x"
    place.mkdir(parents=True)
    os.link(workspace.root / secret, place / "SKILL.md")
    assert find_skills(workspace, workspace.root.parent / "home") == ()


def test_L3_rules_of_the_repository_above_lead_to_no_folder_of_duckflow(workspace: Workspace):
    above = workspace.root.parent
    (above / ".git").mkdir()
    (workspace.root / "state").mkdir()
    (workspace.root / "state/notes.md").write_text("SECRET")
    (above / "AGENTS.md").write_text(f"See @{workspace.root.name}/state/notes.md")
    with closing(Workspace(workspace.root, denied=[workspace.root / "state"])) as folder:
        rules = RulesFiles(folder, ["AGENTS.md"], 1_000).now
    assert "See @" in rules.text
    assert "SECRET" not in rules.text


def test_L3_rules_may_have_two_names_in_the_folder(workspace: Workspace):
    os.link(workspace.root / "plain.md", workspace.root / "CLAUDE.md")
    assert "Be kind." in RulesFiles(workspace, ["plain.md"], 1_000).now.text


def test_G7_commands_see_every_name_of_a_secret_empty(workspace: Workspace):
    (workspace.root / ".ssh").mkdir()
    (workspace.root / ".ssh/id").write_text("SECRET")
    os.link(workspace.root / ".env", workspace.root / "sub/notes.txt")
    os.link(workspace.root / ".ssh/id", workspace.root / "more.txt")
    index = SecretIndex(str(workspace.root))
    assert {path.removeprefix(f"{workspace.root}/") for path in index.find()} == {
        ".env",
        "sub/.env",
        "sub/notes.txt",
        ".ssh",
        "more.txt",
    }
    index.close()
