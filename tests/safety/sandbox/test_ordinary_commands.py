"""G9: ordinary commands do on a copy what they do in a plain shell: same output, same files."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from duckflow.domain.files.effects import Effects
from duckflow.safety.sandbox.command_result import CommandResult
from duckflow.safety.sandbox.view.environment import command_environment
from fakes.home import NO_SYSTEM_GIT

COMMANDS = [
    line.replace("~", "\n")
    for line in Path(__file__).with_name("ordinary_commands.txt").read_text("utf-8").splitlines()
]
"""One command a line; `~` stands for a line break."""

FILES = {
    "README.md": "# Title\n",
    "notes.txt": "one\ntwo\nthree\n",
    "data.json": '{"name": "x"}\n',
    "src/app.py": 'def greet():\n    """>>> greet()\n    \'hello\'\n    """\n    return "hello"\n',
    "src/other.py": "def other():\n    pass  # TODO\n",
    "docs/guide.md": "guide\n",
    "docs/sub/page.md": "page\n",
    "tests/test_app.py": "import unittest\n\n\nclass T(unittest.TestCase):\n    def test(self): pass\n",
    "script.sh": '#!/bin/sh\necho "script $1"\n',
    "vars.sh": "VALUE=from-a-file\n",
    "prog.c": "int main(void) { return 0; }\n",
    "Makefile": "all: build/o\nbuild/o: notes.txt\n\tmkdir -p build; cp $< $@\nclean:\n\trm -rf build\n",
    "x.tmp": "temporary\n",
}
GIT = (
    "git init -q --template= && git config user.email a@b && git config user.name a && git add -A"
    " && git commit -qm first && echo changed >> notes.txt && echo new > untracked.txt && mkdir -p empty"
)


def make_template(folder):
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "script.sh").chmod(0o755)
    env = {"PATH": os.environ["PATH"], "HOME": "/", **NO_SYSTEM_GIT}
    subprocess.run(["bash", "-c", GIT], cwd=folder, check=True, env=env)


class Project:
    """Folder that commands work in. `reset` restores the template, without touching unchanged files."""

    def __init__(self, folder, template):
        self.folder, self._template, self._copied = folder, template, {}
        make_template(template)
        self.reset()
        self.clean = tree(folder)

    def reset(self):
        for name in {path.name for place in (self.folder, self._template) for path in place.iterdir()}:
            source, target = self._template / name, self.folder / name
            if os.path.lexists(target):
                if marks(target) == self._copied.get(name):
                    continue
                shutil.rmtree(target) if target.is_dir() and not target.is_symlink() else target.unlink()
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True)
            elif source.exists():
                shutil.copy2(source, target)
            else:
                continue
            self._copied[name] = marks(target)


def below(folder):
    """Return every path in a folder with its status, without following links."""
    for entry in os.scandir(folder):
        yield entry.path, entry.stat(follow_symlinks=False)
        if entry.is_dir(follow_symlinks=False):
            yield from below(entry.path)


def marks(path):
    """Return a value that differs after any write at this path or below."""
    found = [(path, os.lstat(path)), *below(path)] if path.is_dir() else [(path, os.lstat(path))]
    return {str(one): (seen.st_ino, seen.st_mode, seen.st_ctime_ns) for one, seen in found}


def tree(folder):
    """Return kind, bits and content of everything except git's own files, which contain times."""
    found = {}
    for full, seen in below(folder):
        name = full.removeprefix(f"{folder}/")
        if name.startswith(".git/") or name.endswith(".pyc"):
            continue
        link, packed = stat.S_ISLNK(seen.st_mode), name.endswith((".tgz", ".gz", ".zip", ".sqlite"))
        content = b""
        if link or (stat.S_ISREG(seen.st_mode) and not packed):
            content = Path(full).readlink() if link else Path(full).read_bytes()
        found[name] = (0 if link else seen.st_mode, content)
    return found


def run_plainly(command, folder, env):
    return subprocess.run(
        ["/bin/bash", "-c", command],
        cwd=folder,
        env=command_environment(env, "/tmp", network=False, own_home=True),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@pytest.fixture
def project(folder, tmp_path):
    template = tmp_path / "template"
    template.mkdir()
    return Project(folder, template)


@pytest.fixture
def env(tmp_path):
    (tmp_path / "home").mkdir()
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "LANG": "C.UTF-8", **NO_SYSTEM_GIT}


PARTS = 4
"""Split the commands, so that they can run side by side."""


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
async def test_G9_ordinary_commands_do_what_they_do_in_a_plain_shell(
    project, tmp_path, env, open_shell, part
):
    """Run each command in a plain shell and in plain namespaces, and a third of them in bubblewrap."""
    shells, missing = {}, []
    for level in ("bubblewrap", "namespaces"):
        try:
            shells[level] = await open_shell(project.folder, level, copies=tmp_path / level, env=env)
        except pytest.skip.Exception as exc:
            missing.append(str(exc))
    if not shells:
        pytest.skip(" ".join(missing))
    wrong = []
    for number, command in enumerate(COMMANDS[part::PARTS]):
        project.reset()
        plain = run_plainly(command, project.folder, env)
        expected = tree(project.folder)
        for level, shell in shells.items():
            if level == "bubblewrap" and number % 3 and "namespaces" in shells:
                continue
            project.reset()
            wrong += [
                f"{level}: {command}: {said}"
                for said in await differ(project, shell, command, plain, expected)
            ]
    assert len(COMMANDS) >= 150
    assert not wrong, "\n".join(wrong)


def _code(result: CommandResult) -> int | None:
    """Return the exit code that the shell itself reported."""
    return 0 if result.ran_through else result.exit_code


async def differ(project, shell, command, plain, expected):
    """Return the differences between a command on a copy and in a plain shell."""
    wrong = []
    result = await shell.run(command, timeout_s=60)
    found = tree(project.folder)
    if found != project.clean:
        wrong.append("changed the folder before it was taken over")
    if result.copy_id:
        left = await shell.apply(result.copy_id, result.effects)
        wrong += [f"left {left}"] if left else []
        found = tree(project.folder)
    if (_code(result), result.output) != (plain.returncode, plain.stdout):
        wrong.append(f"{_code(result)} {result.output!r}, not {plain.returncode} {plain.stdout!r}")
    if found != expected:
        names = sorted(n for n in found.keys() | expected.keys() if found.get(n) != expected.get(n))
        wrong.append(f"files differ: {names[:5]}")
    if expected == project.clean and result.effects != Effects() and "git" not in command:
        told = [one.path for one in result.effects.effects]
        wrong += [f"changed nothing and told of {told}"] if told else []
    return wrong


RENAMES = """
import os
os.mkdir("made"); os.rename("made", "docs/made"); os.rename("docs/made", "pure")
os.rename("docs", "manual"); os.chdir("manual"); os.rename("../src", "../source"); os.chdir("..")
here = os.open("source", os.O_RDONLY); os.rename("../manual", "deep", src_dir_fd=here, dst_dir_fd=here)
for wrong in (("nothing", "x"), ("source", "source/deep/x"), ("source", "README.md"), ("pure", "source")):
    try: os.rename(*wrong)
    except OSError as exc: print(exc.errno)
"""


async def test_G9_a_folder_is_renamed_in_one_step(project, tmp_path, env, copying, open_shell):
    folder = project.folder
    shell = await open_shell(folder, copying, copies=tmp_path / "copies", env=env)
    for command in (f"python3 -c '{RENAMES}'", "git mv docs manual && git status --short && ls manual"):
        project.reset()
        plain = run_plainly(command, folder, env)
        expected = tree(folder)
        project.reset()
        result = await shell.run(command)
        assert (_code(result), result.output) == (plain.returncode, plain.stdout)
        assert await shell.apply(result.copy_id, result.effects) == {}
        assert tree(folder) == expected


async def test_G7_a_folder_with_a_secret_is_not_renamed_from_under_its_mask(
    folder, copying, open_shell, tmp_path
):
    (folder / "sub").mkdir()
    (folder / "sub" / ".env").write_text("SECRET")
    (folder / "sub" / "a").write_text("a")
    shell = await open_shell(folder, copying, copies=tmp_path / "copies")
    moved = 'python3 -c \'import os; os.rename("sub", "open")\'; mv sub other; cat */.env'
    await shell.start("sleep 1000")
    assert "SECRET" not in (await shell.run(moved)).output + (await shell.run("cat */.env; ls *")).output


INSIDE = (
    'cd docs && python3 -c \'import os; os.rename("../docs", "../manual"); print(sorted(os.listdir(".")))\''
)
KNOWN_GAPS = {
    "a program can not rename the folder it stands in in one step": ("true", INSIDE),
    "git's directory elsewhere, without a link back, is not seen": (
        "git init -q --separate-git-dir ../apart",
        "git status --short",
    ),
    "git add -f of a masked file that git does not know records the mask": (
        "echo SECRET > .env",
        "git add -f .env && git diff --cached --stat",
    ),
}


@pytest.mark.parametrize(
    ("before", "command"),
    [
        pytest.param(*rows, marks=pytest.mark.xfail(strict=True, reason=why))
        for why, rows in KNOWN_GAPS.items()
    ],
    ids=["cwd", "apart", "mask"],
)
async def test_G9_what_a_copy_does_not_do_yet(project, tmp_path, env, copying, open_shell, before, command):
    folder, outputs = project.folder, []
    shell = await open_shell(folder, copying, copies=tmp_path / "copies", env=env)
    for on_copy in (False, True):
        project.reset()
        assert run_plainly(before, folder, env).returncode == 0
        ran = await shell.run(command) if on_copy else None
        outputs.append(ran.output if ran else run_plainly(command, folder, env).stdout)
        shutil.rmtree(folder.parent / "apart", ignore_errors=True)
    assert outputs[0] == outputs[1]
