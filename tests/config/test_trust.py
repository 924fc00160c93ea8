"""Trust is bound to the real path and the configuration, and stored in the user's state folder (SAFETY 6)."""

from pathlib import Path

import pytest

from duckflow.config.loading import load
from duckflow.config.places import state_dir
from duckflow.config.trust import TRUST_FILE, remember_trust, trust_state
from duckflow.domain.errors import UsageError
from fakes.rows import every_row


def configure(folder: Path, content: str = 'mode = "plan"\n') -> None:
    (folder / "duckflow.toml").write_text(content, "utf-8")


def test_a_folder_without_configuration_has_nothing_to_trust(folder: Path):
    assert trust_state(folder).status == "nothing"


def test_SAFETY_6_it_is_unknown_then_trusted_then_changed(folder: Path):
    configure(folder)
    first = trust_state(folder)
    assert (first.status, first.content) == ("unknown", 'mode = "plan"\n')
    remember_trust(first)
    assert trust_state(folder).status == "trusted"
    configure(folder, 'mode = "ask"\n')
    assert trust_state(folder).status == "changed"
    configure(folder)
    assert trust_state(folder).status == "trusted"


def test_SAFETY_6_it_is_bound_to_the_real_path(folder: Path, tmp_path: Path):
    configure(folder)
    remember_trust(trust_state(folder))
    (tmp_path / "alias").symlink_to(folder)
    assert trust_state(tmp_path / "alias").status == "trusted"
    other = tmp_path / "other"
    other.mkdir()
    configure(other)
    assert trust_state(other).status == "unknown"
    (tmp_path / "alias").unlink()
    (tmp_path / "alias").symlink_to(other)
    assert trust_state(tmp_path / "alias").status == "unknown"


def test_what_is_remembered_is_what_was_shown(folder: Path):
    configure(folder)
    shown = trust_state(folder)
    configure(folder, 'mode = "ask"\n')
    remember_trust(shown)
    assert trust_state(folder).status == "changed"


@every_row("broken", ["", "[]", "{", '{"x": 1}', "nul\0", "[" * 5000])
def test_a_broken_memory_trusts_nobody_and_can_be_written_again(folder: Path, broken: str):
    configure(folder)
    (state_dir() / TRUST_FILE).write_text(broken)
    assert trust_state(folder).status == "unknown"
    remember_trust(trust_state(folder))
    assert trust_state(folder).status == "trusted"


def test_SAFETY_5_it_is_for_the_user_alone(folder: Path):
    configure(folder)
    remember_trust(trust_state(folder))
    assert (state_dir() / TRUST_FILE).stat().st_mode & 0o077 == 0
    assert [path.name for path in state_dir().iterdir()] == [TRUST_FILE]


def test_a_configuration_that_can_not_be_read_is_no_configuration_to_trust(folder: Path):
    (folder / "duckflow.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError):
        trust_state(folder)


def test_SAFETY_6_another_file_than_the_trusted_one_does_not_act(folder: Path):
    """The configuration cannot be swapped between question and loading."""
    configure(folder)
    trusted = trust_state(folder).digest
    assert load(folder, trusted=True, digest=trusted, environ={}).settings.mode == "plan"
    configure(folder, "gate.many_files = 1\n")
    swapped = load(folder, trusted=True, digest=trusted, environ={})
    assert (swapped.settings.mode, swapped.settings.gate.many_files) == ("ask", 20)
    assert [notice.key for notice in swapped.notices] == ["config.project_not_trusted"]


@every_row(
    "name",
    [".agents/hooks.json", ".agents/hooks/x.sh", ".mcp.json", ".claude/commands/x.md", ".agents/agents/x.md"],
)
def test_SAFETY_6_every_file_of_a_project_that_acts_is_shown_trusted_and_asked_about_again(
    folder: Path, name: str
):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("{}")
    shown = trust_state(folder)
    assert (shown.status, shown.content) == ("unknown", f"[{name}]\n{{}}\n")
    assert not load(folder, trusted=False, digest=shown.digest, environ={}).project
    remember_trust(shown)
    assert name in load(folder, trusted=True, digest=shown.digest, environ={}).project
    (folder / name).write_text("{} ")
    assert trust_state(folder).status == "changed"
