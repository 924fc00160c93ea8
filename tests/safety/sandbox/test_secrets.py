"""G7: commands do not see secrets in the workspace, the home folder, or anything not on the allow-list."""

import os
import subprocess
from contextlib import closing

import pytest

from duckflow.config.settings import GateSettings
from duckflow.loops.acting.file_versions import of_command
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.policy.effects import assess_effects
from duckflow.safety.sandbox.view.secret_index import SecretIndex
from duckflow.safety.sandbox.view.toolchains import ToolchainSearch
from fakes.home import NO_SYSTEM_GIT

KEY = "-----BEGIN RSA PRIVATE KEY-----\nSECRET\n"


def files(folder, texts):
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def found(index, folder):
    return {os.path.relpath(path, folder) for path in index.find()}


@pytest.fixture
def index(folder):
    made = SecretIndex(str(folder))
    yield made
    made.close()


def test_G7_secrets_are_known_by_name_and_keys_by_content(folder, index):
    files(folder, {".env": "A=SECRET", ".env.example": "A=", "a/b/.env.local": "x", "server.key": KEY})
    files(folder, {"ca.pem": "-----BEGIN CERTIFICATE-----", ".npmrc": "save-exact=true", "id_rsa": "x"})
    files(folder, {"id_rsa.pub": "x", "sub/.npmrc": "//r/:_authToken=SECRET", ".aws/credentials": "x"})
    files(folder, {".venv/pyvenv.cfg": "", ".venv/lib/x.key": KEY, "node_modules/p/.env": "", "readme": ""})
    expected = {".env", "a/b/.env.local", "server.key", "id_rsa", "sub/.npmrc", ".aws"}
    assert found(index, folder) == expected


def test_G7_no_file_makes_the_secrets_beside_it_visible(folder, index):
    files(
        folder, {"pyvenv.cfg": "", ".env": "SECRET", "a/pyvenv.cfg": "", "a/.env": "x", "a/bin/python": "x"}
    )
    files(folder, {".ssh/pyvenv.cfg": "", ".ssh/id": "SECRET", "a/b/CACHEDIR.TAG": "", "a/b/server.key": KEY})
    assert found(index, folder) == {".env", "a/.env", ".ssh", "a/b/server.key"}


def test_G7_the_environment_the_user_has_activated_is_not_a_secret_by_its_name(folder):
    files(folder, {".env/bin/python": "x", ".env/pyvenv.cfg": "", "a/.env/bin/python": "x"})
    index = SecretIndex(str(folder), active=str(folder / ".env"))
    assert found(index, folder) == {"a/.env"}
    index.close()


def test_G7_secrets_that_appear_later_are_known_without_another_look(folder, index, monkeypatch):
    files(folder, {"a/file": ""})
    assert found(index, folder) == set()
    monkeypatch.setattr(index._names, "_begin", None)
    files(folder, {"a/.env": "x", "new/deep/down/.env": "x", "later.key": "no key"})
    assert found(index, folder) == {"a/.env", "new/deep/down/.env"}
    (folder / "later.key").write_text(KEY)
    (folder / "a" / ".env").unlink()
    (folder / "a" / "file").rename(folder / "a" / ".netrc")
    assert found(index, folder) == {"a/.netrc", "new/deep/down/.env", "later.key"}


def test_G7_a_folder_that_was_moved_is_looked_at_again(folder, index):
    files(folder, {"a/b/.env": "x"})
    assert found(index, folder) == {"a/b/.env"}
    (folder / "a").rename(folder / "c")
    files(folder, {"c/b/d/.env": "x"})
    assert found(index, folder) == {"c/b/.env", "c/b/d/.env"}


def test_G7_where_the_kernel_can_not_tell_of_all_every_command_looks_again(folder, index, monkeypatch):
    files(folder, {"a/file": ""})
    monkeypatch.setattr(
        index._names._events, "watch", lambda *_: setattr(index._names._events, "complete", False)
    )
    assert found(index, folder) == set()
    files(folder, {"a/.env": ""})
    assert found(index, folder) == {"a/.env"}


async def test_G7_a_command_sees_secrets_empty_unless_it_is_granted_them(
    folder, tmp_path, copying, open_shell
):
    files(folder, {".env": "SECRET", "a/server.key": KEY, ".ssh/id": "SECRET", "plain": "open"})
    shell = await open_shell(folder, copying, copies=tmp_path / "copies")
    looks = (
        "cat .e* .env a/* .ssh/* plain 2>&1; grep -r SECRET . ; tar c . | grep -a SECRET; cp -r . /tmp/all"
    )
    result = await shell.run(f"{looks}; cat /tmp/all/.env; mv .env x; rm -f .env; ln .env hard; cat hard x")
    assert "SECRET" not in result.output
    assert "open" in result.output
    assert (await shell.run("cat .env", secrets=(".env",))).output == "SECRET"
    assert (folder / ".env").read_text() == "SECRET"


async def test_G7_nothing_of_the_home_is_seen_but_tool_chains(folder, tmp_path, copying, open_shell):
    home = tmp_path / "home"
    files(home, {"notes.txt": "SECRET", ".ssh/id": "SECRET", ".cargo/credentials.toml": "SECRET"})
    files(home, {".cargo/bin/tool": "#!/bin/sh\necho tool", ".cargo/registry/x": "", "envs/x/pyvenv.cfg": ""})
    files(home, {"envs/x/bin/program": "#!/bin/sh\necho program", "other/file": "SECRET"})
    for path in (".cargo/bin/tool", "envs/x/bin/program"):
        (home / path).chmod(0o755)
    env = {"HOME": str(home), "PATH": f"{home}/.cargo/bin:{home}/envs/x/bin:/usr/bin:/bin"}
    shell = await open_shell(folder, copying, copies=tmp_path / "copies", env=env)
    result = await shell.run(
        f"tool; program; cat ~/notes.txt ~/.ssh/id ~/.cargo/credentials.toml {home}/other/file; ls -A ~;"
        "echo x > ~/.cargo/bin/new; echo mine > ~/own; ls /home /root /mnt /work 2>&1"
    )
    assert "SECRET" not in result.output
    assert result.output.startswith("tool\nprogram\n")
    assert not (home / ".cargo" / "bin" / "new").exists()
    assert not (home / "own").exists()
    assert (await shell.run("cat ~/own")).output == "mine\n"


GITCONFIG = """
[user]
    name = "Ä \\"B\\" C"
    email = a@b
[credential]
    helper = store
[commit]
    gpgsign = true
[alias]
    st = status
    bad = !sh
"""


async def test_G10_who_commits_is_known_and_how_one_logs_in_is_not(folder, tmp_path, copying, open_shell):
    home = tmp_path / "home"
    files(home, {".gitconfig": GITCONFIG})
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", **NO_SYSTEM_GIT}
    shell = await open_shell(folder, copying, copies=tmp_path / "copies", env=env)
    result = await shell.run("git init -q; git commit -q --allow-empty -m x && git log --format='%an %ae'")
    assert result.output == 'Ä "B" C a@b\n'
    assert (await shell.run("git config --global --list")).output.splitlines() == [
        "core.checkstat=minimal",
        "core.excludesfile=~/.gitignore-secrets",
        'user.name=Ä "B" C',
        "user.email=a@b",
        "alias.st=status",
    ]


NOTHING_OF_IT = (
    "git status --short; git commit -qam x; git stash -q; git stash pop -q; git reset -q --hard; git gc -q",
    "echo y > other; git add -A; git commit -qm y; git checkout -q -b side; git show --stat --format= | cat",
)


async def test_G7_git_takes_a_masked_secret_that_it_tracks_as_unchanged(
    folder, tmp_path, copying, open_shell
):
    """A file that the user has changed is hidden: git records no mask, and the secret is not lost."""
    files(folder, {".env": "A=SECRET\n", "sub/.env": "B=SECRET\n", "other": "x\n"})
    for path in (".env", "sub/.env"):
        os.utime(folder / path, (1_700_000_000, 1_700_000_000))
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=folder, check=True)
    (folder / "sub" / ".env").write_text("B=ANOTHER SECRET\n")
    files(folder, {"a [b]/.env": "SECRET"})
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "GIT_AUTHOR_NAME": "a", **NO_SYSTEM_GIT}
    (tmp_path / ".gitconfig").write_text("[user]\nname = a\nemail = a@b\n")
    shell = await open_shell(folder, copying, copies=tmp_path / "copies", env=env)
    for command in NOTHING_OF_IT:
        result = await shell.run(command)
        assert ".env" not in result.output, result.output
        if result.copy_id:
            await shell.apply(result.copy_id, result.effects)
    assert (folder / ".env").read_text() == "A=SECRET\n"
    assert (folder / "sub" / ".env").read_text() == "B=ANOTHER SECRET\n"
    shown = subprocess.run(
        [*git, "show", "side:.env", "side:sub/.env"], cwd=folder, capture_output=True, text=True
    )
    assert shown.stdout == "A=SECRET\nB=SECRET\n"
    # A link that a command put there is not followed.
    (tmp_path / "mine").write_text("mine")
    await shell.run(f"rm ~/.gitignore-secrets; ln -s {tmp_path}/mine ~/.gitignore-secrets")
    files(folder, {"new/.env": "x"})
    assert "new" not in (await shell.run("git status --short -uall")).output
    assert (tmp_path / "mine").read_text() == "mine"
    # If git reads it all the same, the user is asked.
    result = await shell.run("git update-index --really-refresh; touch -d @1 x; git hash-object -w sub/.env")
    with closing(Workspace(folder)) as workspace:
        copy = await shell.copy(result.copy_id)
        contents = of_command(workspace, copy, result.effects, shell.git_places)
        assert "mask" in assess_effects(result.effects, contents, GateSettings()).reasons


def repository(folder, *words):
    """Make a folder a repository, or run these git commands in it."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
    for one in words or (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
        subprocess.run([*git, *one], cwd=folder, check=True, env={"PATH": "/usr/bin:/bin", "HOME": "/"})


def test_G7_what_git_tracks_is_left_as_it_is(folder, tmp_path, index):
    """Each repository is asked for its own files; a file that differs from its version is hidden."""
    files(tmp_path / "library", {"own.key": KEY, "changed.key": KEY})
    repository(tmp_path / "library")
    files(folder, {"tests/cert.pem": KEY, "tests/crlf.pem": KEY.replace("\n", "\r\n"), ".env": "A=b"})
    files(folder, {".aws/config": "fixture", "changed/.env": "A=1", ".gitignore": ".env.local"})
    repository(folder)
    repository(folder, ("submodule", "--quiet", "add", str(tmp_path / "library"), "sub"))
    files(folder, {"changed/.env": "A=SECRET", "sub/changed.key": KEY + "SECRET", "sub/new.key": KEY})
    files(folder, {".env.local": "A=b", ".aws/credentials": "SECRET", ".ssh/id": "SECRET"})
    files(folder, {"inner/.env": "A=c", "inner/other/.env": "A=d"})
    repository(folder / "inner", ("init", "-q"), ("add", ".env"))
    hidden = {"changed/.env", "sub/changed.key", "sub/new.key", ".env.local", ".aws/credentials", ".ssh"}
    assert found(index, folder) == {*hidden, "inner/other/.env"}
    (folder / ".git" / "index").write_bytes(b"no index")
    assert found(index, folder) >= {".env", "tests/cert.pem", "tests/crlf.pem", ".aws"}


def test_G7_a_fixture_stays_visible_while_the_work_changes_it(folder, index):
    files(folder, {"tests/cert.pem": KEY})
    repository(folder)
    assert found(index, folder) == set()
    files(folder, {"tests/cert.pem": KEY + "another"})
    assert found(index, folder) == set()
    repository(folder, ("rm", "-q", "--cached", "tests/cert.pem"))
    assert found(index, folder) == {"tests/cert.pem"}


TRACKED_BY_FORCE = (
    "git add -f .env sub/.env; git commit -qm x",
    "git add -fN .env sub/.env; git update-index --assume-unchanged .env",
    "for p in .env sub/.env; do git update-index --add --cacheinfo 100644,"
    "$(echo x | git hash-object -w --stdin),$p; done; git commit -qm y",
    "cd sub && git init -q && git add -f .env && git commit -qm z",
)


async def test_G7_a_command_can_not_make_git_track_a_secret_to_see_it(folder, tmp_path, copying, open_shell):
    """The change to git's index is applied, but visibility depends on the content."""
    files(folder, {".env": "A=SECRET", "sub/.env": "A=SECRET", "other": "x"})
    repository(folder, ("init", "-q"), ("add", "other"), ("commit", "-qm", "first"))
    (tmp_path / ".gitconfig").write_text("[user]\nname = a\nemail = a@b\n")
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    shell = await open_shell(folder, copying, copies=tmp_path / "copies", env=env)
    for command in TRACKED_BY_FORCE:
        result = await shell.run(command)
        await shell.apply(result.copy_id, result.effects)
        looked = await shell.run("cat .env sub/.env; git show :.env; git diff")
        assert "SECRET" not in looked.output, command
    assert subprocess.check_output(["git", "ls-files", ".env"], cwd=folder) == b".env\n"


async def test_G7_a_result_names_the_hidden_files_that_its_command_opened(
    folder, tmp_path, copying, open_shell
):
    files(folder, {".env": "SECRET", "a/.env": "SECRET", ".ssh/id": "SECRET", "plain": "open"})
    shell = await open_shell(folder, copying, copies=tmp_path / "copies")
    for command, opened in (
        ("ls -la . a; stat .env; cat plain a/plain", ()),
        ("cat a/.env", ("a/.env",)),
        ("echo later", ()),
        ("grep -r x . >/dev/null", (".env", ".ssh", "a/.env")),
    ):
        assert (await shell.run(command)).hidden == opened, command
    assert (await shell.run("cat .env", secrets=(".env",))).hidden == ()
    server = await shell.start("cat .env; echo up; sleep 600")
    assert (await shell.read(server, 60)).hidden == (".env",)
    await shell.run("cat a/.env")
    assert "a/.env" in (await shell.stop(server)).hidden


async def test_G7_a_branch_with_another_version_of_a_masked_file_is_refused_by_git(
    folder, tmp_path, copying, open_shell
):
    files(folder, {".env": "A=1\n"})
    repository(folder)
    repository(folder, ("checkout", "-qb", "side"))
    files(folder, {".env": "A=2\n"})
    repository(folder, ("commit", "-qam", "two"), ("checkout", "-q", "-"))
    files(folder, {".env": "A=SECRET\n"})
    shell = await open_shell(folder, copying, copies=tmp_path / "copies")
    result = await shell.run("git checkout side; git branch --show-current; cat .env")
    assert (folder / ".env").read_text() == "A=SECRET\n"
    assert "would be overwritten" in result.output
    assert "SECRET" not in result.output
    assert "\nside\n" not in result.output


def test_G7_a_tool_chain_is_found_through_links_and_scripts(tmp_path):
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    files(home, {".local/share/tools/black/pyvenv.cfg": "", ".local/share/tools/black/bin/black": ""})
    files(home, {"pythons/3.12/lib/x": "", "pythons/3.12/bin/python": "", "private/x": ""})
    files(home, {".local/bin/script": f"#!{home}/pythons/3.12/bin/python\n", ".local/state/duckflow/db": ""})
    (home / ".local/bin/black").symlink_to(home / ".local/share/tools/black/bin/black")
    (home / "link").symlink_to(home / "private")
    env = {"PATH": f"{home}/.local/bin:{work}/bin:relative:{home}", "GOPATH": str(home), "JAVA_HOME": "/"}
    shown = ToolchainSearch(str(home), str(work), ("/usr",)).find(env)
    assert {os.path.relpath(path, home) for path in shown} == {
        ".local/bin",
        ".local/share/tools/black",
        "pythons/3.12",
    }
