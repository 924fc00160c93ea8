"""G7: the same for an ordinary user, whom the kernel permits less. For where the tests run as root."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from contextlib import suppress
from pathlib import Path

import pytest

import duckflow
from duckflow.safety.sandbox import landlock

NOBODY = 65534
PROGRAM = textwrap.dedent("""
    import asyncio, json, os, sys
    from pathlib import Path
    from duckflow.config.settings import ShellSettings
    from duckflow.safety.sandbox.shell import Shell

    async def main(folder, level, commands):
        settings = ShellSettings(sandbox=level, max_processes=60)
        shell = Shell(folder / "work", settings, closed=(folder / "state",), env={"HOME": str(folder)})
        found = await shell.sandbox()
        results = [(await shell.run(one, timeout_s=300)).model_dump() for one in commands]
        await shell.aclose()
        print(json.dumps([os.getuid(), found.level, found.values, results]))

    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])))
""")
COMMANDS = [
    "echo made > sub/file; cat sub/file; id -u",
    "cat {folder}/state/secret {folder}/.ssh/id; echo x > {folder}/outside; echo x > .git/config",
    "for n in $(seq 2000); do sleep 2718281828 & done; wait",
    "grep -E '^(NoNewPrivs|CapEff)' /proc/self/status; unshare -r id && echo GOT IT; true",
]


@pytest.fixture
def users_folder():
    """A folder that belongs to nobody, where everybody can get at it."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    for name in ("work/sub", "work/.git", "state", ".ssh"):
        (folder / name).mkdir(parents=True)
    for name in ("work/.git/config", "state/secret", ".ssh/id"):
        (folder / name).write_text("SECRET\n")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


def as_nobody(command):
    paths = [
        str(Path(duckflow.__file__).parent.parent),
        *(path for path in sys.path if "site-packages" in path),
    ]
    env = {"PYTHONPATH": ":".join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    return subprocess.run(command, **who, cwd="/", env=env, capture_output=True, text=True, check=False)


def python_for_nobody():
    """This Python, or its like in a place that is open to all."""
    name = f"python3.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{name}", f"/usr/local/bin/{name}"):
        with suppress(OSError):
            if as_nobody([candidate, "-c", "import duckflow.safety.sandbox.shell"]).returncode == 0:
                return candidate
    pytest.skip("no Python here that an ordinary user may run")


@pytest.mark.skipif(os.geteuid() != 0, reason="all the other tests already run as an ordinary user")
def test_G7_the_sandbox_holds_for_an_ordinary_user(level, users_folder):
    words = [one.format(folder=users_folder) for one in COMMANDS]
    ran = as_nobody([python_for_nobody(), "-c", PROGRAM, str(users_folder), level, json.dumps(words)])
    assert ran.returncode == 0, ran.stderr
    uid, found, values, (made, refused, many, rights) = json.loads(ran.stdout)
    assert uid == NOBODY
    if level == "bubblewrap" and found == "none":
        pytest.skip(f"this system refuses bubblewrap to an ordinary user: {values}")
    if level == "landlock" and landlock.version() < landlock.OLDEST:
        pytest.skip("this kernel has no Landlock that will do")
    assert found == level
    assert (made["output"], made["changed"]) == (f"made\n{NOBODY}\n", ["sub/file"])
    assert "SECRET" not in refused["output"]
    assert not (users_folder / "outside").exists()
    assert (users_folder / "work" / ".git" / "config").read_text() == "SECRET\n"
    assert many["stopped"] == "processes"
    assert rights["output"].split()[:4] == ["CapEff:", "0" * 16, "NoNewPrivs:", "1"]
    assert "GOT IT" not in rights["output"]
