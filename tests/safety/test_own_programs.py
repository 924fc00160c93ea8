"""Programs and folders of our own: never from the workspace, never with keys (SAFETY 18, 21)."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import duckflow
from duckflow import Session
from duckflow.config.places import cache_dir, checkouts_dir, data_dirs, state_dir
from duckflow.domain.errors import UsageError, UserError
from duckflow.domain.files.programs import find_program, program_environment
from duckflow.safety.files.workspace import Workspace, refuse_unsuitable_folder
from duckflow.safety.sandbox.view.git_settings import ignored_paths
from duckflow.tools.searching.ripgrep import find_ripgrep
from duckflow.ui.input.editor import find_editor
from fakes.engine import decision, write_script


def plant(file: Path, text="#!/bin/sh\ntouch planted\n") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    for name in ("vi", "rg", "git", "less"):
        plant(root / ".venv/bin" / name)
    return root


@pytest.fixture
def elsewhere(tmp_path):
    return plant(tmp_path / "bin/vi").parent


def test_SAFETY_18_no_program_is_taken_from_the_workspace(project, elsewhere, tmp_path):
    (tmp_path / "alias").symlink_to(project / ".venv/bin")
    (tmp_path / "outer").mkdir()
    (tmp_path / "outer/rg").symlink_to(project / ".venv/bin/rg")
    env = {"PATH": f"{project}/.venv/bin:{tmp_path}/alias:{tmp_path}/outer:.venv/bin::.:{elsewhere}"}
    assert find_program("vi", project, env) == str(elsewhere / "vi")
    assert find_program("less-of-the-project", project, env) is None
    for name in (
        str(project / ".venv/bin/vi"),
        ".venv/bin/vi",
        "./vi",
        f"{elsewhere}/../project/.venv/bin/vi",
    ):
        assert find_program(name, project, env) is None, name
    found = find_ripgrep(project)
    assert found is None or not found.is_relative_to(project)


def test_SAFETY_18_the_editor_is_not_the_one_of_an_active_environment(project, elsewhere):
    env = {"PATH": f"{project}/.venv/bin:{elsewhere}", "EDITOR": "vi -n"}
    assert find_editor(project, env) == (str(elsewhere / "vi"), "-n")
    assert find_editor(project, {**env, "VISUAL": f"{project}/.venv/bin/vi"}) == ()
    assert find_editor(project, {"PATH": env["PATH"]}) == ()


def test_SAFETY_18_our_programs_see_no_keys_and_find_nothing_in_the_workspace(project, elsewhere):
    env = {
        "PATH": f"{project}/.venv/bin:{elsewhere}:relative",
        "HOME": "/home/ada",
        "LC_ALL": "C.UTF-8",
        "ANTHROPIC_API_KEY": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "LD_PRELOAD": "x.so",
        "PYTHONPATH": "x",
        "VIRTUAL_ENV": str(project / ".venv"),
    }
    assert program_environment(project, env) == {
        "PATH": str(elsewhere),
        "HOME": "/home/ada",
        "LC_ALL": "C.UTF-8",
    }


def test_SAFETY_21_home_and_what_is_above_it_are_refused(tmp_path):
    home = tmp_path / "home/ada"
    project = home / "project"
    project.mkdir(parents=True)
    (tmp_path / "alias").symlink_to(home)
    for wide in (home, home.parent, tmp_path / "alias", Path("/"), project / ".."):
        with pytest.raises(UsageError) as refused:
            refuse_unsuitable_folder(wide, {"HOME": str(home)}, ())
        assert refused.value.key == "workspace.too_wide"
    refuse_unsuitable_folder(project, {"HOME": str(home)}, (project / "state",))
    refuse_unsuitable_folder(project, {}, ())


def test_SAFETY_21_folders_of_duckflow_are_refused(tmp_path):
    state = tmp_path / "state"
    (state / "copies").mkdir(parents=True)
    (tmp_path / "alias").symlink_to(state)
    for ours in (state, state / "copies", tmp_path / "alias/copies"):
        with pytest.raises(UsageError) as refused:
            refuse_unsuitable_folder(ours, {}, (tmp_path / "cache", tmp_path / "alias"))
        assert refused.value.key == "workspace.own_folder"


async def test_SAFETY_21_of_the_data_folder_only_the_fleets_copies_are_no_folders_of_duckflow(
    tmp_path, monkeypatch, own_home
):
    data, moved = own_home / ".local/share/duckflow", tmp_path / "servers"
    monkeypatch.setenv("DUCKFLOW_SERVERS_DIR", str(moved))
    for ours in (data, data / "mcp/a", data / "fleet", moved / "a"):
        ours.mkdir(parents=True, exist_ok=True)
        with pytest.raises(UsageError) as refused:
            refuse_unsuitable_folder(ours, {}, data_dirs(), checkouts_dir())
        assert refused.value.key == "workspace.own_folder"
    refuse_unsuitable_folder(checkouts_dir() / "r1/project", {}, data_dirs(), checkouts_dir())
    script = write_script(tmp_path / "script", [decision("Hello.")])
    with pytest.raises(UsageError) as refused:
        async with Session(data, model=f"scripted:{script}"):
            pass
    assert refused.value.key == "workspace.own_folder"


@pytest.mark.parametrize(
    ("variable", "place"), [("DUCKFLOW_STATE_DIR", state_dir), ("DUCKFLOW_CACHE_DIR", cache_dir)]
)
def test_SAFETY_21_our_folders_are_no_links_and_nobody_else_writes_there(
    tmp_path, monkeypatch, variable, place
):
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(real)
    monkeypatch.setenv(variable, str(tmp_path / "link"))
    with pytest.raises(UserError) as refused:
        place()
    assert refused.value.key == "places.is_link"
    real.chmod(0o777)
    monkeypatch.setenv(variable, str(real))
    with pytest.raises(UserError) as refused:
        place()
    assert refused.value.key == "places.others_write"
    real.chmod(0o700)
    assert place() == real
    monkeypatch.setenv(variable, str(tmp_path / "new/deep"))
    assert place().stat().st_mode & 0o777 == 0o700


def _run_as_module(folder: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    places = {f"DUCKFLOW_{name}_DIR": str(tmp_path / name) for name in ("STATE", "CONFIG", "CACHE")}
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **places}
    command = [sys.executable, "-m", "duckflow", "audit", "verify"]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_python_m_duckflow_imports_nothing_from_a_hostile_folder(tmp_path):
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in ("pydantic", "typer", "sqlite3", "platformdirs", "json", "click"):
        (folder / f"{name}.py").write_text("open('planted', 'w')\n")
    done = _run_as_module(folder, tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (folder / "planted").exists()


@pytest.mark.xfail(strict=True, reason="Python itself prefers a package of that name in the current folder")
def test_python_m_duckflow_is_not_a_package_of_that_name_in_the_folder(tmp_path):
    folder = tmp_path / "hostile"
    (folder / "duckflow").mkdir(parents=True)
    (folder / "duckflow/__init__.py").write_text("open('planted', 'w')\n")
    _run_as_module(folder, tmp_path)
    assert not (folder / "planted").exists()


def test_a_file_tool_does_not_write_through_a_hard_link(tmp_path):
    (tmp_path / "ws").mkdir()
    outside = tmp_path / "outside"
    outside.write_text("theirs\n")
    os.link(outside, tmp_path / "ws/inside")
    Workspace(tmp_path / "ws").write_text("inside", "mine\n")
    assert outside.read_text() == "theirs\n"
    assert (tmp_path / "ws/inside").read_text() == "mine\n"


STARTS = re.compile(
    r"create_subprocess_(?:exec|shell)|\bPopen\(|subprocess\.(?:run|call|check_\w+|getoutput)\("
    r"|os\.(?:exec|spawn|posix_spawn)\w*\(|os\.(?:system|popen)\(|pty\.spawn"
)
PLACES = {
    "agents/process.py": "our own Python for an agent, which needs the keys as this process does",
    "agents/joining.py": "git from outside the folder, with files of our own, no keys",
    "fleet/publishing.py": "the user's git, to push when they ask for it, with their settings and logins",
    "safety/sandbox/child/on_copy.py": "our own Python, in place of the process itself",
    "cli/web/launch.py": "the browser: found outside the workspace, no keys",
    "llm/local/process.py": "our own Python, not from the current folder",
    "llm/weights/wheels.py": "pip, pinned and with a hash",
    "safety/sandbox/child/prepared_process.py": "the command itself",
    "safety/sandbox/launcher_client.py": "our own Python",
    "safety/sandbox/probe.py": "bubblewrap of the system, no environment",
    "safety/sandbox/view/git_settings.py": "git of the system, hardened",
    "tools/programs.py": "ripgrep from outside the workspace and our own Python, no environment; the user's "
    "hooks, no keys",
    "ui/input/pastes.py": "what prints the clipboard, found outside the workspace, no keys",
    "ui/input/editor.py": "the user's editor, found outside the workspace, no keys",
}


def test_SAFETY_18_programs_are_started_in_known_places_only():
    """A new one belongs in one of them, or here with the reason why it is safe."""
    top = Path(duckflow.__file__).parent
    found = {
        str(path.relative_to(top)) for path in top.rglob("*.py") if STARTS.search(path.read_text("utf-8"))
    }
    assert found == set(PLACES)


def test_SAFETY_17_a_repository_that_lacks_an_object_makes_our_git_run_nothing(tmp_path):
    """Git would fetch the object, with the program that the repository's settings name."""
    folder, evil = tmp_path / "work", tmp_path / "evil"
    folder.mkdir()
    (folder / ".gitignore").write_text("ignored/\n")
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    evil.chmod(0o755)

    def git(*words):
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        return subprocess.run(
            ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
        ).stdout

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "x")
    assert ignored_paths(str(folder), ["ignored/", "src/"]) == {"ignored/"}
    blob = git("rev-parse", ":.gitignore").strip()
    git("update-index", "--skip-worktree", ".gitignore")
    (folder / ".gitignore").unlink()
    (folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    settings = {
        "remote.origin.url": "ssh://h/x",
        "remote.origin.promisor": "true",
        "core.sshCommand": str(evil),
    }
    settings |= {"extensions.partialClone": "origin", "core.repositoryformatversion": "1"}
    for name, value in settings.items():
        git("config", name, value)
    ignored_paths(str(folder), ["ignored/", "src/"])
    assert not (tmp_path / "ran").exists()
