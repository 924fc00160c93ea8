"""Twenty loops of a strong model in a git repository, as a real process, and what must hold afterwards."""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fakes.engine import action, decision, write_script
from fakes.repository import git

DUCKFLOW = (sys.executable, "-m", "duckflow")
TIME_LIMIT_S = 600
_PER_PACKAGE = 30

_TESTS = """import sys
sys.path.insert(0, ".")
from shop.package0 import module0
failed = [n for n in range(5) if module0.value(n) != n + {offset}]
print("failed" if failed else "5 passed", *failed)
sys.exit(bool(failed))
"""


class Worked(NamedTuple):
    """How a session went."""

    outcome: str
    questions: list[str]
    failed: list[str]
    """Commands that ended badly, with what they wrote."""
    texts: list[str]
    seconds: float
    undo_seconds: float
    said: str
    not_restored: list[str]
    """Paths that are not as they were: content, kind, permission bits, target of a link."""


def make_project(folder: Path, files: int) -> None:
    """A repository of so many files, with a branch, an ignored folder and something not committed."""
    git(folder, "init", "--quiet", "--initial-branch=main")
    for key, value in {"user.name": "A", "user.email": "a@example.com", "gc.auto": "0"}.items():
        git(folder, "config", key, value)
    for number in range(files - 4):
        path = folder / "shop" / f"package{number // _PER_PACKAGE}" / f"module{number % _PER_PACKAGE}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"def value(n):\n    return n + {number}  # TODO\n")
    (folder / "run_tests.py").write_text(_TESTS.format(offset=0))
    (folder / "README.md").write_text("# Shop\n")
    (folder / ".gitignore").write_text("build/\n__pycache__/\n")
    (folder / "start.sh").write_text("#!/bin/sh\nexec python3 run_tests.py\n")
    (folder / "start.sh").chmod(0o755)
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", "first")
    git(folder, "branch", "old")
    with (folder / "README.md").open("a") as readme:
        readme.write("Not committed.\n")


def run(command: str, **more: Any) -> dict[str, Any]:
    """A command, as a model asks for it."""
    return {"operation": "shell.run", "args": {"command": command, **more}}


_FIND = [{"find": "    return n + 0  # TODO\n", "replace": "    return n + 1\n"}]
LOOPS: tuple[tuple[dict[str, Any], ...], ...] = (
    (run("git status --short; git log --oneline | head -5; ls"),),
    (run("grep -rn TODO shop | wc -l"), action("read_file", path="shop/package0/module0.py")),
    (run("python3 run_tests.py"),),
    (run("git stash && git stash pop"),),
    (run("git checkout -q -b feature"),),
    (action("edit_file", path="shop/package0/module0.py", edits=_FIND),),
    (run("python3 run_tests.py || echo as expected"),),
    (run("sed -i 's/n + 0)/n + 1)/; s/n + 0]/n + 1]/; s/!= n + 0/!= n + 1/' run_tests.py && ./start.sh"),),
    (run("cat > reproduce.py <<'END'\nimport shop.package0\nprint(1)\nEND\npython3 reproduce.py"),),
    (run("""python3 -c "open('notes.txt', 'w').write('n\\n' * 3)" && wc -l notes.txt"""),),
    (run("for f in shop/package1/*.py; do sed -i 's/  # TODO//' \"$f\"; done; git diff --stat | tail -1"),),
    (run("find shop/package0 -name '*.py' -exec sed -i 's/  # TODO//' {} \\;"),),
    (run("mkdir -p build && for i in $(seq 20); do echo $i > build/$i.o; done"),),
    (run("git diff > /tmp/all.patch"), run("test -s /tmp/all.patch && rm reproduce.py")),
    (action("write_file", path="shop/new/made.py", content="NEW = 1\n"), run("git mv start.sh tests.sh")),
    (run("git add -A && git commit -q -m 'Values begin at one' && git log --oneline | head -1"),),
    (run("git checkout -q main && echo more > main.txt && git add main.txt && git commit -q -m 'On main'"),),
    (run("git merge -q -m merged feature && git branch -d feature && git log --oneline | head -3"),),
    (run("chmod 600 README.md && ln -s README.md LINK && rm -r build && git tag done"),),
    (run("python3 run_tests.py && git status --short"),),
)  # fmt: skip
"""What is done, loop by loop."""

SHORT = tuple(LOOPS[number] for number in (4, 5, 7, 8, 10, 12, 13, 14, 15, 16, 17, 18, 19))
"""Enough of them to have a bit of everything, in a test."""


def tree(folder: Path) -> dict[str, str]:
    """Every path below the folder, `.git` included: kind and bits, and the hash of the content."""
    found: dict[str, str] = {}
    for base, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(base, name)
            mode = path.lstat().st_mode
            data = b"" if path.is_dir() else path.read_bytes()
            content = f"-> {path.readlink()}" if path.is_symlink() else hashlib.sha256(data).hexdigest()
            found[str(path.relative_to(folder))] = f"{mode:o} {content}"
    return found


def without_objects(files: dict[str, str]) -> dict[str, str]:
    """The files without git's objects, which an undo keeps."""
    return {path: found for path, found in files.items() if ".git/" not in path or "/objects" not in path}


def work_and_undo(
    base: Path, files: int, env: dict[str, str], loops: Sequence[Sequence[dict[str, Any]]] = LOOPS
) -> Worked:
    """One session in a new project below `base`, then `/undo all` in another process."""
    folder = base / "project"
    folder.mkdir(parents=True)
    make_project(folder, files)
    before = tree(folder)
    answers = [decision("", *one, step="EXECUTION") for one in loops]
    script = write_script(base / "script.jsonl", [*answers, decision("All is done.")])
    flags = ["--model", f"scripted:{script}", "--mode", "auto", "--workspace", str(folder)]
    done, seconds = _call(["run", "Let values begin at one", "--json", "--max-loops", "40", *flags], env)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    ended = [event for event in events if event["type"] == "action_finished"]
    undone, undo_seconds = _call([*flags, "--continue"], env, "/undo all\n/exit\n")
    before, after = without_objects(before), without_objects(tree(folder))
    return Worked(
        outcome=events[-1].get("outcome", "") if events else done.stderr,
        questions=[json.dumps(event) for event in events if event["type"] == "approval_requested"],
        failed=[event["text"] for event in ended if event["outcome"] != "ok" or event.get("exit_code")],
        texts=[event["text"] for event in ended],
        seconds=seconds,
        undo_seconds=undo_seconds,
        said=undone.stdout + undone.stderr,
        not_restored=sorted(
            name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
        ),
    )


def _call(
    words: list[str], env: dict[str, str], said: str = ""
) -> tuple[subprocess.CompletedProcess[str], float]:
    begun = time.perf_counter()
    done = subprocess.run(
        [*DUCKFLOW, *words],
        input=said,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **env},
        timeout=TIME_LIMIT_S,
        check=False,
    )
    return done, time.perf_counter() - begun


def wrong_with(worked: Worked) -> list[str]:
    """What a session should not have done, or not have left out."""
    written = "\n".join(worked.texts)
    wanted = ("exit code 0\n5 passed", "Values begin at one", "merged", "deleted reproduce.py")
    return [
        *([] if worked.outcome == "done" else [f"outcome: {worked.outcome}"]),
        *(f"asked: {question}" for question in worked.questions),
        *(f"failed: {text}" for text in worked.failed),
        *(f"not seen: {word}" for word in wanted if word not in written),
        *([] if "↩" in worked.said else [f"not undone: {worked.said}"]),
        *(f"not as it was: {name}" for name in worked.not_restored),
    ]
