"""G7: without a copy, guarded and changed files are known without another scan of the folder."""

from duckflow.safety.sandbox.view.folder_watch import FolderWatch


def test_G7_what_is_guarded_and_what_changed_is_known_without_another_look(folder, monkeypatch):
    for path in ("a/file", "a/b/gone", ".vscode/tasks.json", "node_modules/x/y"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("old")
    watch = FolderWatch(str(folder))
    assert watch.begin() == (str(folder / ".vscode"),)
    monkeypatch.setattr(watch._names, "_begin", None)
    (folder / "a/file").write_text("new")
    (folder / "a/b/gone").unlink()
    (folder / "new/deep").mkdir(parents=True)
    (folder / "new/deep/.env").write_text("x")
    (folder / "passing").write_text("x")
    (folder / "passing").unlink()
    (folder / "a/.git").mkdir()
    assert watch.end() == ("a/b/gone", "a/file", "new/deep/.env")
    assert set(watch.begin()) >= {str(folder / path) for path in (".vscode", "new/deep/.env", "a/.git")}
    assert watch.end() == ()
    watch.close()


def test_G7_after_a_folder_was_moved_all_is_looked_at_again(folder):
    (folder / "a/b").mkdir(parents=True)
    watch = FolderWatch(str(folder))
    watch.begin()
    (folder / "a").rename(folder / "c")
    watch.end()
    (folder / "c/b/.env").write_text("x")
    assert str(folder / "c/b/.env") in watch.begin()
    watch.close()


def test_G7_where_the_kernel_can_not_tell_of_all_every_command_looks(folder, monkeypatch):
    watch = FolderWatch(str(folder))
    monkeypatch.setattr(
        watch._names._events, "watch", lambda *_: setattr(watch._names._events, "complete", False)
    )
    assert watch.begin() == ()
    (folder / ".env").write_text("x")
    assert watch.end() == (".env",)
    assert watch.begin() == (str(folder / ".env"),)
    watch.close()
