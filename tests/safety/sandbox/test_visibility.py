"""G7: commands can't reach hidden, guarded or unlisted paths; and scans of a workspace."""

import os
from contextlib import closing

import pytest

from duckflow.safety.sandbox.child import landlock
from duckflow.safety.sandbox.view import visibility
from duckflow.safety.sandbox.view.folder_watch import FolderWatch, changed_between, look
from duckflow.safety.sandbox.view.visibility import visibility_of


def files(folder, *paths):
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("x")


def test_secrets_are_hidden_where_they_really_are(tmp_path):
    home, work = tmp_path / "home", tmp_path / "work"
    files(home, "real/keys/id", ".aws/config", ".config/duckflow/config.toml", ".netrc", "open")
    (home / ".ssh").symlink_to(home / "real" / "keys")
    work.mkdir()
    reach = visibility_of(work, tmp_path, home, (tmp_path / "missing",), ())
    inside = {path for path in reach.hidden if path.startswith(str(tmp_path))}
    assert inside == {str(home / name) for name in ("real/keys", ".aws", ".config/duckflow", ".netrc")}


def test_a_workspace_that_is_the_home_keeps_its_secrets_hidden(tmp_path):
    files(tmp_path, ".ssh/id")
    assert str(tmp_path / ".ssh") in visibility_of(tmp_path, tmp_path, tmp_path, (), ()).hidden


def test_a_workspace_inside_something_secret_can_be_used(tmp_path):
    files(tmp_path, ".codex/work/file")
    assert (
        str(tmp_path / ".codex")
        not in visibility_of(tmp_path / ".codex" / "work", tmp_path, tmp_path, (), ()).hidden
    )


def test_of_a_folder_only_what_holds_nothing_closed_is_listed(tmp_path):
    files(tmp_path, "a/1", "b/closed/x", "b/open/x", "b/file", "c/deep/er/closed/x", "c/other")
    (tmp_path / "link").symlink_to(tmp_path / "b" / "closed")
    closed = [str(tmp_path / "b" / "closed"), str(tmp_path / "c" / "deep" / "er" / "closed")]
    found = sorted(visibility.uncovered(str(tmp_path), closed, {}))
    assert found == [str(tmp_path / name) for name in ("a", "b/file", "b/open", "c/other")]
    assert list(visibility.uncovered(closed[0], closed, {})) == []


def test_protected_names_are_found_once(tmp_path):
    files(tmp_path, ".git/config", "a/b/c/d/e/.env", "sub/.git/config", ".config/git/ignore", "plain/x")
    files(tmp_path, "node_modules/x/.env", ".github/.env", "duckflow.toml")
    with closing(FolderWatch(str(tmp_path))) as watch:
        found = [path.removeprefix(f"{tmp_path}/") for path in watch.begin()]
    assert found == [".config/git", ".git", ".github", "a/b/c/d/e/.env", "duckflow.toml", "sub/.git"]


def test_a_look_that_was_cut_short_invents_no_changes(tmp_path, monkeypatch):
    files(tmp_path, *(f"{n % 7}/{n}" for n in range(50)))
    whole = look(str(tmp_path))
    monkeypatch.setattr("duckflow.safety.sandbox.view.folder_watch.MOST_FILES", 10)
    part = look(str(tmp_path))
    assert whole.complete
    assert not part.complete
    assert changed_between(part, whole) == ()
    (tmp_path / "0" / "0").write_text("other")
    assert changed_between(part, look(str(tmp_path))) in ((), ("0/0",))


def test_G7_landlocks_rules_are_made_again_when_they_would_be_others(tmp_path, monkeypatch):
    if landlock.version() < landlock.OLDEST:
        pytest.skip("this kernel has no Landlock")
    files(tmp_path, "work/.git/config", "work/a", "work/b", "temporary/own/x", "home/x")

    def reach(*guarded):
        work, home = tmp_path / "work", tmp_path / "home"
        names = [str(work / name) for name in (".git", *guarded)]
        return visibility_of(work, tmp_path / "temporary", home, (), names)

    # Other programs may change the machine's own folders meanwhile.
    monkeypatch.setattr(visibility, "_readable", lambda *_: iter(()))
    rules = visibility.LandlockRules()
    os.utime(tmp_path / "work", ns=(1, 1))  # long ago, so that another change is sure to be seen
    os.close(rules.find(reach()).descriptor)
    made = []
    monkeypatch.setattr(landlock, "make_rules", lambda *_: made.append(1) or os.dup(1))
    os.close(rules.find(reach()).descriptor)
    os.close(rules.find(reach()).descriptor)
    assert not made
    (tmp_path / "work/new").write_text("x")
    (tmp_path / "work/new").replace(tmp_path / "work/a")
    os.close(rules.find(reach()).descriptor)
    assert len(made) == 1
    os.close(rules.find(reach("b")).descriptor)
    assert len(made) == 2
    rules.close()
