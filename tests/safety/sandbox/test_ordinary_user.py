"""G7: the same for an ordinary user, whom the kernel permits less, if the tests run as root."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

import duckflow
from duckflow.safety.sandbox.child import landlock
from source_tree import ROOT

NOBODY = 65534
PROGRAM = textwrap.dedent("""
    import asyncio, json, os, sys
    from pathlib import Path
    from duckflow.config.settings import ShellSettings
    from duckflow.safety.sandbox.shell import Shell

    async def main(folder, level, commands):
        settings = ShellSettings(sandbox=level, max_processes=60)
        copies = folder / "state" / "copies" if sys.argv[4] else None
        env = {"HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
        kept = {"closed": (folder / "state",), "env": env, "copies": copies}
        shell = Shell(folder / "work", settings, **kept)
        found = await shell.sandbox()
        results = []
        for one in commands:
            result = await shell.run(one, timeout_s=300)
            results.append(result.model_dump(mode="json"))
            if result.copy_id:
                results[-1]["left"] = list(await shell.apply(result.copy_id, result.effects))
        if copies:
            assert found.copies, found
            await shell.start("sleep 1000")
            changed = await shell.run("chmod 600 unreadable; echo more > unreadable")
            await shell.discard(changed.copy_id)  # nobody may read what should be shown instead
            await shell.start("echo made > server; sleep 1000")
            results.append((await shell.run("until [ -s server ]; do sleep 0.01; done; cat server")).output)
            results.append((await shell.end_background()).effects.model_dump(mode="json"))
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
    """Return a folder that all users can reach, of the user `nobody`."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    for name in ("work/sub", "work/.git", "state", ".ssh"):
        (folder / name).mkdir(parents=True)
    for name in ("work/.git/config", "state/secret", ".ssh/id"):
        (folder / name).write_text("SECRET\n")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


def as_nobody(command, **more):
    paths = [
        str(Path(duckflow.__file__).parent.parent),
        str(ROOT / "tests"),
        *(path for path in sys.path if "site-packages" in path),
    ]
    env = {"PYTHONPATH": ":".join(paths), "PYTHONDONTWRITEBYTECODE": "1", **more}
    who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    return subprocess.run(command, **who, cwd="/", env=env, capture_output=True, text=True, check=False)


@cache
def python_for_nobody():
    """Return this Python, or a similar one in a place that is open to all users."""
    name = f"python3.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{name}", f"/usr/local/bin/{name}"):
        with suppress(OSError):
            if as_nobody([candidate, "-c", "import duckflow.safety.sandbox.shell"]).returncode == 0:
                return candidate
    pytest.skip("no Python here that an ordinary user may run")


@pytest.mark.skipif(os.geteuid() != 0, reason="all the other tests already run as an ordinary user")
def test_G7_the_sandbox_holds_for_an_ordinary_user(level, users_folder):
    words = [one.format(folder=users_folder) for one in COMMANDS]
    ran = as_nobody([python_for_nobody(), "-c", PROGRAM, str(users_folder), level, json.dumps(words), ""])
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


DONE = [
    "echo more >> sub/file; mkdir -p a/b; echo new > a/b/new; rm -r gone; mv old moved; chmod 700 bits;id -u",
    "git init -q; git config user.email a@b; git config user.name a; git add -A; git commit -qm x;"
    "git log --format=%s",
    "mkdir closed; echo in > closed/file; chmod 000 closed; echo x > unreadable; chmod 000 unreadable",
    "chmod u+s moved; ln -s /root out; mkfifo pipe; mknod null c 0 0",
    'python3 -c \'import os; os.rename("sub", "other"); os.rename("other", "sub")\'; cat sub/file',
]


@pytest.mark.skipif(os.geteuid() != 0, reason="all the other tests already run as an ordinary user")
def test_G9_an_ordinary_user_works_on_a_copy(copying, users_folder):
    work = users_folder / "work"
    shutil.rmtree(work / ".git")
    (work / "gone").mkdir()
    for name in ("sub/file", "gone/file", "old", "bits"):
        (work / name).write_text(f"{name}\n")
    for path in (work, *work.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    ran = as_nobody([python_for_nobody(), "-c", PROGRAM, str(users_folder), copying, json.dumps(DONE), "yes"])
    assert ran.returncode == 0, ran.stderr
    _, found, _, (first, git, closed, dropped, renamed, served, rest) = json.loads(ran.stdout)
    assert found == copying
    assert (first["output"], first["left"], git["output"]) == (f"{NOBODY}\n", [], "x\n")
    assert {path.name for path in work.iterdir()} == {
        *("sub", "a", "moved", "bits", ".git", "closed", "unreadable"),
    }
    assert (work / "sub" / "file").read_text() == "sub/file\nmore\n"
    assert (work / "closed" / "file").read_text() == "in\n"
    assert ((work / "closed").stat().st_mode & 0o777, (work / "bits").stat().st_mode & 0o777) == (0, 0o700)
    assert {one.stat().st_uid for one in work.rglob("*")} == {NOBODY}
    assert {one["reason"] for one in dropped["effects"]["dropped"]} == {"set_id", "link_out", "pipe"}
    assert renamed["output"] == "sub/file\nmore\n"
    assert served == "made\n"
    assert [one["path"] for one in rest["effects"]] == ["server", "unreadable"]
    assert not closed["left"]


CLOSED = textwrap.dedent("""
    import asyncio, json, os, sys
    from pathlib import Path
    from duckflow.config.settings import ShellSettings
    from duckflow.safety.sandbox.shell import Shell

    async def main(folder, level):
        settings = ShellSettings(sandbox=level, disk_mb=1)
        shell = Shell(folder / "work", settings, copies=folder / "state" / "copies",
                      closed=(folder / "state",), env={"HOME": str(folder), "PATH": os.environ["PATH"]})
        result = await shell.run("mkdir d; truncate -s 900K d/1 d/2; chmod 0 d")
        await shell.aclose()
        print(json.dumps([os.getuid(), result.stopped]))

    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
""")


@pytest.mark.skipif(os.geteuid() != 0, reason="all the other tests already run as an ordinary user")
def test_G7_files_in_a_closed_folder_count_for_an_ordinary_user(copying, users_folder):
    ran = as_nobody([python_for_nobody(), "-c", CLOSED, str(users_folder), copying], PATH=os.environ["PATH"])
    assert json.loads(ran.stdout) == [NOBODY, "disk_mb"], ran.stderr


LIVE = textwrap.dedent("""
    import asyncio, hashlib, json, os, sys
    from pathlib import Path
    from duckflow.config.settings import ShellSettings
    from duckflow.safety.sandbox.shell import Shell

    async def main(folder, level):
        shell = Shell(folder / "work", ShellSettings(sandbox=level), copies=folder / "state" / "copies",
                      closed=(folder / "state",), env={"HOME": str(folder), "PATH": os.environ["PATH"]})
        await shell.start("exec python3 swap.py")
        await shell.start("exec python3 resist.py")
        await shell.start("exec python3 grow.py")
        await shell.run("until [ -e ready ] && [ -s woken ] && [ -s grown ]; do sleep 0.01; done")
        secret = hashlib.sha256(b"SECRET\\n").hexdigest()
        wrong = []
        for _ in range(20):
            result = await shell.run("true")
            copy = await shell.copy(result.copy_id)
            seen = {one for effect in result.effects.effects for one in (effect.before, effect.after)}
            wrong += ["read"] if secret in seen else []
            wrong += ["shown"] if b"SECRET" in (copy.content("real/id", 100) or b"") else []
            shown = {one.path: one.after for one in result.effects.effects}
            content = copy.content("grown", 64_000_000)
            wrong += [] if hashlib.sha256(content).hexdigest() == shown["grown"] else ["hashed"]
            async with shell._live.frozen():
                sizes = {os.stat(Path(copy.upper, "grown")).st_size for _ in range(100)}
            wrong += ["not held"] if len(sizes) > 1 else []
        left = await shell.apply(result.copy_id, result.effects)
        await shell.aclose()
        written = hashlib.sha256((folder / "work" / "grown").read_bytes()).hexdigest() == shown["grown"]
        print(json.dumps([os.getuid(), wrong, left, written]))

    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
""")
"""Program that reads the effects of commands that swap folders, keep writing, and resume themselves."""

SWAP = """
import ctypes, os
libc = ctypes.CDLL(None)
os.mkdir("real"); open("real/id", "w").write("mine"); os.mkdir("real/closed"); os.chmod("real/closed", 0o300)
os.symlink("../.ssh", "link"); open("ready", "w").write("x")
while True:
    libc.renameat2(-100, b"real", -100, b"link", 2)
"""
RESIST = """
import ctypes, struct
libc = ctypes.CDLL(None)
timer = ctypes.c_int()
assert libc.timer_create(1, struct.pack("Qii48x", 0, 18, 0), ctypes.byref(timer)) == 0
assert libc.timer_settime(timer, 0, struct.pack("4q", 0, 100_000, 0, 100_000), None) == 0
while True:
    open("woken", "w").write("x")
"""
GROW = "while True: open('grown', 'a').write('x')"


@pytest.mark.skipif(os.geteuid() != 0, reason="all the other tests already run as an ordinary user")
def test_G11_the_commands_of_an_ordinary_user_are_held_while_they_are_read(copying, users_folder):
    work = users_folder / "work"
    for name, words in (("swap.py", SWAP), ("resist.py", RESIST), ("grow.py", GROW)):
        (work / name).write_text(words)
    private = users_folder / ".ssh"
    (private / "closed").mkdir(mode=0o700)
    for path in (private, *private.rglob("*"), *work.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    modes = [path.stat().st_mode for path in (private, *private.rglob("*"))]
    ran = as_nobody(
        [python_for_nobody(), "-c", LIVE, str(users_folder), copying],
        PATH=os.environ["PATH"],
    )
    assert ran.returncode == 0, ran.stderr
    uid, wrong, left, written = json.loads(ran.stdout)
    assert (uid, wrong, left, written) == (NOBODY, [], {}, True)
    assert [path.stat().st_mode for path in (private, *private.rglob("*"))] == modes


EVERY = {"bubblewrap": 3}
"""Tries only every third attack, to save time; `python -m fakes.attacking` tries all."""


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="all the other tests already run as an ordinary user")
def test_G7_attacks_of_an_ordinary_user_get_nowhere(level):
    try:
        folder = Path(tempfile.mkdtemp(prefix="duckflow-tests-", dir="/var/lib"))
    except OSError as exc:
        pytest.skip(f"attacks need a folder outside /tmp that everybody can get at: {exc}")
    try:
        os.chown(folder, NOBODY, NOBODY)
        env = {"PATH": os.environ["PATH"], "HOME": str(folder), "DUCKFLOW_TEST_CACHE": str(folder / "cache")}
        words = [python_for_nobody(), "-m", "fakes.attacking", level, str(EVERY.get(level, 1))]
        ran = as_nobody(words, **env)
    finally:
        shutil.rmtree(folder)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    if level != "namespaces" and found["level"] == "none":
        pytest.skip(f"this system has no {level} for an ordinary user: {found['values']}")
    assert found["level"] == level, found
    assert found["wrong"] == {}
    assert found["tried"] > 50
