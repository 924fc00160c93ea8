"""The wheel and the sdist: what is in them, and that an installation of them works far from this folder."""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

from source_tree import PACKAGE, ROOT


def build(folder: Path, kind: str, into: Path) -> Path:
    """Build one kind of package of the project in a folder, without a network."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(into)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    [made] = into.iterdir()
    return made


def installed(wheel: Path, folder: Path) -> Path:
    """A new environment with this wheel; what it depends on is found where it is installed already."""
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "install"]
    subprocess.run(
        [*pip, "--no-deps", "--no-index", "--no-compile", str(wheel)], check=True, capture_output=True
    )
    [packages] = folder.glob("lib/python3*/site-packages")
    # Only a path: the .pth file by which an editable Duckflow is found there counts nowhere else.
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n", "utf-8")
    return folder / "bin" / "duckflow"


def script(path: Path) -> Path:
    """A model that runs a command in the sandbox and is done."""
    run = {"operation": "shell.run", "args": {"command": "echo a copy of mine"}}
    said = [
        ("Decision", {"next_step": "continue", "actions": [run]}),
        ("Decision", {"next_step": "done", "reply": "It ran."}),
        ("RequirementList", {"requirements": [{"requirement": "it runs", "priority": 1}]}),
        (
            "SatisfactionEvaluation",
            {"requirement_scores": [{"requirement": "1", "score": 1, "evidence": ["e1"]}]},
        ),
    ]
    lines = [json.dumps({"for": kind, "text": json.dumps(body)}) for kind, body in said]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_packages_hold_what_they_should_and_work_where_they_are_installed(tmp_path):
    sdist = build(ROOT, "sdist", tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    source = tmp_path / sdist.name.removesuffix(".tar.gz")
    assert {path.name for path in source.iterdir()} >= {"src", "README.md", "LICENSE", "pyproject.toml"}
    assert not {"tests", "bench", "docs", "scripts"} & {path.name for path in source.iterdir()}

    wheel = build(source, "wheel", tmp_path / "wheel")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
        [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        assert "License-Expression: MIT" in archive.read(metadata).decode()
    ours = [path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert packed == {path.relative_to(PACKAGE.parent).as_posix() for path in ours}

    duckflow, folder = installed(wheel, tmp_path / "venv"), tmp_path / "elsewhere"
    folder.mkdir()
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(*words: str | Path) -> str:
        done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    where = run(duckflow.with_name("python"), "-c", "import duckflow; print(duckflow.__file__)")
    assert Path(where).is_relative_to(tmp_path)
    assert run(duckflow, "--version").strip() in wheel.name
    said = run(
        duckflow,
        "run",
        "go",
        "--mode",
        "auto",
        "--json",
        "--model",
        f"scripted:{script(tmp_path / 'script')}",
    )
    assert "a copy of mine" in said
