"""G9, G10: files that a command leaves behind to run later are asked about, or never applied."""

import subprocess
from pathlib import Path

import pytest

from duckflow.config.settings import GateSettings
from duckflow.safety.policy.effects import FileVersions, assess_effects
from duckflow.safety.policy.git_config import GitPlaces
from duckflow.safety.sandbox.view.git_settings import read_objects

ATTACKS = [
    line
    for line in Path(__file__).with_name("effect_attacks.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]
LIMITS = GateSettings(many_files=20, large_bytes=200_000)
GIT = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com"]


def project(folder: Path) -> None:
    for path in ("src/a.py", ".env.secret", ".venv/pyvenv.cfg", ".venv/bin/activate", ".venv/bin/python"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("x = 1\n")
    for number in range(30):
        (folder / f"many/{number}").parent.mkdir(exist_ok=True)
        (folder / f"many/{number}").write_text(f"{number}\n")
    (folder / ".venv/lib").mkdir()
    for command in (["init", "-q", "-b", "main"], ["add", "src"], ["commit", "-qm", "first"]):
        subprocess.run([*GIT, *command], cwd=folder, check=True, capture_output=True)


def reader(folder: Path):
    def read(path: str) -> bytes | None:
        file = folder / path
        return file.read_bytes() if file.is_file() else None

    return read


@pytest.mark.long
async def test_G9_what_would_run_later_asks_or_is_never_taken_over(folder, tmp_path, open_shell):
    """One sandbox is enough here: ordinary commands have the same effects in each."""
    project(folder)
    options = {"copies": tmp_path / "copies", "file_mb": 50}
    try:
        shell = await open_shell(folder, "namespaces", **options)
    except pytest.skip.Exception:
        shell = await open_shell(folder, "bubblewrap", **options)
    missed, asked = [], 0
    for command in ATTACKS:
        result = await shell.run(command, timeout_s=300)
        effects = result.effects
        if effects is None or effects.nothing:
            continue
        copy = await shell.copy(result.copy_id)
        contents = FileVersions(
            reader(folder),
            lambda path, copy=copy: copy.content(path, 4_000_000),
            GitPlaces(root=str(folder)),
            read_objects,
        )
        found = assess_effects(effects, contents, LIMITS)
        asked += 1
        if found.risk not in ("high", "forbidden"):
            missed.append(
                (command, found.reasons, [one.path for one in effects.effects][:5], result.output[-200:])
            )
        await shell.discard(result.copy_id)
    assert missed == []
    assert asked >= 100, "most of them do change something"
    assert (folder / "src/a.py").read_text() == "x = 1\n"


def test_there_are_a_hundred():
    assert len(set(ATTACKS)) >= 100
