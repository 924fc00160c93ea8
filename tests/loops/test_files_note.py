"""The note about a folder: the files of a small one, the layout of a large one."""

from pathlib import Path

from duckflow.loops.thinking.files_note import LONGEST, files_note
from duckflow.safety.files.listing import ListedEntry, Listing
from duckflow.safety.files.workspace import Workspace


def note(*paths: str, complete: bool = True) -> list[str]:
    entries = (ListedEntry(path, "file") for path in sorted(paths))
    return files_note(Listing(tuple(entries), complete)).splitlines()


def test_a_small_folder_is_told_file_by_file():
    assert note() == ["Files here: none"]
    assert note("a", "b/c.py", "b/__pycache__/c.pyc") == ["Files here: a, b/c.py"]


def test_a_large_folder_begins_with_its_source_code_and_then_what_else_is_notable():
    files = [f"tests/test_{n}.py" for n in range(60)]
    files += [f"src/pkg/{part}/m{n}.py" for part in ("core", "web") for n in range(9)]
    files += [f"docs/p{n}.md" for n in range(30)] + [".github/ci.yml", "lib/one.js", "lib/two.js"]
    files += [
        "LICENSE",
        "README.md",
        "pyproject.toml",
        "zoo.txt",
        ".venv/lib/x.py",
        "src/pkg.egg-info/PKG-INFO",
    ]
    assert note(*files) == [
        "Files here (115 files):",
        "src/pkg/ 18: core/ 9, web/ 9",
        "lib/ one.js, two.js",
        "tests/ 60",
        "also .github/ 1, docs/ 30",
        "at the top README.md, pyproject.toml, LICENSE, zoo.txt",
    ]
    assert note(*files, complete=False)[0] == "Files here (over 115 files, not all of them counted):"


def test_the_note_stays_short_whatever_the_names_are():
    files = [f"{'folder' * 12}{n}/{'deep' * 20}{m}/x.py" for n in range(30) for m in range(5)]
    told = "\n".join(note(*files, *(f"{'top' * 40}{n}" for n in range(30))))
    assert len(told) <= LONGEST
    assert told.startswith("Files here (180 files):\nfolder")


def test_a_folder_with_very_many_files_hides_no_other(tmp_path: Path):
    for name in ("data", "src"):
        (tmp_path / name).mkdir()
    for number in range(50):
        (tmp_path / f"data/{number:03}.bin").touch()
        (tmp_path / f"src/m{number}.py").touch()
    listing = Workspace(tmp_path).list(".", depth=8, limit=200, each=20)
    assert not listing.complete
    assert files_note(listing).splitlines()[1:] == ["src/ 20", "also data/ 20"]
