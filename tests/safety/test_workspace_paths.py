"""An attacker's paths, for both ways of opening (SAFETY 2, 3, 4; G4)."""

import hashlib
import sys
import tomllib
from pathlib import Path

import pytest

from duckflow.domain.errors import ToolError, UsageError
from duckflow.safety.files.confined_open import kernel_resolves, open_resolved, open_walking
from duckflow.safety.files.workspace import Workspace
from fakes.rows import every_row

CORPUS = tomllib.loads((Path(__file__).parent / "paths.toml").read_text("utf-8"))
OPENERS = {"kernel": open_resolved, "walk": open_walking}
SECRET = "the secret nobody may read"


def build(base: Path) -> Path:
    root = base / "ws"
    for folder in (root / "docs", root / "日本語", root / ".git", base / "outside", base / "ws_evil"):
        folder.mkdir(parents=True)
    (root / "docs/note.txt").write_text("a note")
    (root / "日本語/メモ.txt").write_text("a note")
    (root / ".git/config").write_text(SECRET)
    (root / ".env").write_text(SECRET)
    (base / "outside/secret.txt").write_text(SECRET)
    (base / "ws_evil/secret.txt").write_text(SECRET)
    for link in CORPUS["link"]:
        (root / link["name"]).symlink_to(link["target"].format(base=base))
    return root


def fingerprint(base: Path) -> str:
    """Everything that must not change: what is outside, and what is protected inside."""
    found = hashlib.sha256()
    for folder in ("outside", "ws_evil", "ws/.git", "ws/.env"):
        for path in sorted([base / folder, *(base / folder).rglob("*")]):
            found.update(str(path).encode() + (path.read_bytes() if path.is_file() else b""))
    return found.hexdigest()


WAYS = ["kernel", "walk"] if sys.platform.startswith("linux") else ["walk"]
"""openat2 is Linux's."""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="openat2 is Linux's")
def test_the_kernels_own_check_is_chosen_on_linux():
    assert kernel_resolves()


@every_row("way", WAYS)
@every_row("case", CORPUS["case"], ids=lambda case: ascii(case["path"]))
def test_a_path_reads_what_is_inside_or_is_refused(tmp_path, way, case):
    root = build(tmp_path)
    workspace = Workspace(root, opener=OPENERS[way])
    path = case["path"].format(base=tmp_path) if "{base}" in case["path"] else case["path"]
    if case.get(way, "refused") == "reads":
        assert workspace.read_text(path) == "a note"
        assert workspace.protection(path) == "none"
        return
    with pytest.raises(ToolError) as refusal:
        workspace.read_text(path)
    assert SECRET not in str(refusal.value)
    assert case.get("says", "") in str(refusal.value)


HARMLESS_NEW = {"....//....//outside/secret.txt", "%2e%2e/outside/secret.txt", "file:///etc/passwd"}
HARMLESS_NEW |= {"~root/.bashrc", "$HOME/secret.txt"}
"""Odd, but names like any other: they may be made, inside."""


@every_row("way", WAYS)
@every_row("case", CORPUS["case"], ids=lambda case: ascii(case["path"]))
def test_a_path_writes_moves_and_deletes_nothing_outside(tmp_path, way, case):
    root = build(tmp_path)
    workspace = Workspace(root, opener=OPENERS[way])
    path = case["path"].format(base=tmp_path) if "{base}" in case["path"] else case["path"]
    before = fingerprint(tmp_path)
    refused = 0
    attempts = (
        lambda: workspace.write_text(path, "written"),
        lambda: workspace.move("docs/note.txt", path),
        lambda: workspace.delete(path),
        lambda: workspace.list(path),
    )
    for attempt in attempts:
        try:
            attempt()
        except ToolError:
            refused += 1
    assert fingerprint(tmp_path) == before
    assert not (tmp_path / "outside/new.txt").exists()
    if case.get(way, "refused") == "refused" and case["path"] not in HARMLESS_NEW | {"docs", ".", "./"}:
        assert refused >= 3


@every_row("way", WAYS)
def test_a_name_of_more_than_255_bytes_is_refused(tmp_path, way):
    workspace = Workspace(tmp_path, opener=OPENERS[way])
    with pytest.raises(ToolError, match="at most 255 bytes"):
        workspace.write_text("あ" * 86, "x")
    workspace.write_text("あ" * 85, "x")
    with pytest.raises(ToolError, match="too long"):
        workspace.read_text("a/" * 2500 + "a")


def test_half_a_surrogate_pair_is_refused_in_a_name_and_in_content(tmp_path):
    workspace = Workspace(tmp_path)
    with pytest.raises(ToolError, match=r"U\+D800"):
        workspace.write_text("a\ud800", "x")
    with pytest.raises(ToolError, match=r"U\+D800"):
        workspace.write_text("a", "x\ud800")


def test_links_inside_are_written_through_with_the_kernel_and_named_without(tmp_path):
    root = build(tmp_path)
    Workspace(root, opener=open_resolved).write_text("inner_link.txt", "new")
    assert (root / "inner_link.txt").is_symlink()
    assert (root / "docs/note.txt").read_text() == "new"
    with pytest.raises(ToolError, match="link"):
        Workspace(root, opener=open_walking).write_text("inner_link.txt", "newer")


@every_row("way", WAYS)
def test_the_root_stays_the_same_folder_when_its_name_is_given_to_another(tmp_path, way):
    root = tmp_path / "ws"
    root.mkdir()
    (root / "a.txt").write_text("mine")
    workspace = Workspace(root, opener=OPENERS[way])
    root.rename(tmp_path / "moved")
    root.mkdir()
    (root / "a.txt").write_text("another's")
    assert workspace.read_text("a.txt") == "mine"
    workspace.write_text("b.txt", "new")
    assert (tmp_path / "moved/b.txt").exists()


@every_row("way", WAYS)
def test_a_root_given_through_a_link_is_known_by_both_names(tmp_path, way):
    (tmp_path / "real").mkdir()
    (tmp_path / "real/a.txt").write_text("a")
    (tmp_path / "alias").symlink_to("real")
    workspace = Workspace(tmp_path / "alias", opener=OPENERS[way])
    assert workspace.root == tmp_path / "real"
    assert workspace.read_text(f"{tmp_path}/alias/a.txt") == "a"
    assert workspace.read_text(f"{tmp_path}/real/a.txt") == "a"


@every_row(("name", "key"), [("none", "workspace.missing"), ("file", "workspace.not_a_folder")])
def test_a_root_that_is_no_folder_is_a_usage_error(tmp_path, name, key):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError) as error:
        Workspace(tmp_path / name)
    assert error.value.key == key
