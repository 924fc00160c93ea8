"""L3: rules of the user, of the repository above the workspace, and of the folders in use."""

from pathlib import Path

from duckflow.config.places import config_dir
from duckflow.loops.thinking.rules import RulesFiles
from duckflow.safety.files.workspace import Workspace
from duckflow.ui.views.tables import context_text
from fakes.engine import decision, engine

NAMES = ("AGENTS.md", "DUCKFLOW.md")


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".md").write_text(text, "utf-8")


async def test_L3_rules_go_from_the_user_over_the_repository_to_the_folder_of_a_file(tmp_path: Path):
    """Nearest last; those of a folder come once a file there is used, and stay."""
    config_dir().mkdir(parents=True)
    write(config_dir(), AGENTS="Speak Latin.")
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "app"
    write(tmp_path, AGENTS="Of the repository.", docs__AGENTS="Elsewhere.")
    write(folder, CLAUDE="Of another agent.", lib__AGENTS="Of the library.", lib__deep__CLAUDE="Of the deep.")
    (folder / "lib" / "deep" / "a.py").write_text("x = 1\n", "utf-8")
    reading = decision("", {"operation": "file_ops.read_file", "args": {"path": "lib/deep/a.py"}})
    async with engine(folder, reading, decision("Done.")) as duck:
        before = (await duck.app.model.preview(duck.state)).request.messages[0].text
        await duck.app.chat.say("read it")
        shown = await duck.app.model.preview(duck.state)
        after = shown.request.messages[0].text
    assert "../AGENTS.md, CLAUDE.md, lib/AGENTS.md, lib/deep/CLAUDE.md" in context_text(shown, 200)
    named = [
        "[rules of the user for all projects]\nSpeak Latin.",
        "[../AGENTS.md]\nOf the repository.",
        "[CLAUDE.md]\nOf another agent.",
    ]
    nested = ["[lib/AGENTS.md]\nOf the library.", "[lib/deep/CLAUDE.md]\nOf the deep."]
    assert "\n\n".join(named) in before
    assert "Of the library" not in before
    assert "\n\n".join([*named, *nested]) in after
    assert "Elsewhere" not in after


def test_L3_mentioned_files_follow_within_the_folder_and_claude_md_is_read_only_alone(tmp_path: Path):
    folder = tmp_path / "app"
    write(tmp_path, secret="secret")
    write(folder, AGENTS="See @style.md, `@code.md`, me@style.md, @none.md and @../secret.md.", CLAUDE="No.")
    write(folder, style="Short. @more/deep.md", more__deep="Deep. @../style.md", code="No.")
    rules = RulesFiles(Workspace(folder), NAMES, 1_000).now
    assert rules.files == ("AGENTS.md", "style.md", "more/deep.md")
    assert rules.text.endswith("[style.md]\nShort. @more/deep.md\n\n[more/deep.md]\nDeep. @../style.md")
    assert not rules.problems


def test_L3_an_at_sign_in_code_mentions_no_file(tmp_path: Path):
    code = "```sh\nnpm i @in_block.md\n```\n~~~~\n```\n@in_block.md\n~~~~\n> ```\n> @in_block.md\n> ```\n"
    write(tmp_path, AGENTS=f"`npm i @in_line.md` ``a ` @in_line.md``\n{code}After: @a.md\n```\n@in_block.md")
    write(tmp_path, in_line="No.", in_block="No.", a="Yes.")
    assert RulesFiles(Workspace(tmp_path), NAMES, 1_000).now.files == ("AGENTS.md", "a.md")
