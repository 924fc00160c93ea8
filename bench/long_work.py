"""Runs twenty loops of a strong model in a git repository of 1,800 files, mode `auto`, then `/undo all`.

    .venv/bin/python bench/long_work.py [--files N]

The model is scripted; all else is real: `duckflow run --json` and `duckflow --continue` as processes. Fails
if the program asked anything, a command or the tests failed, or a path differs afterwards. For every path,
`.git` included, kind, permission bits, content hash and link target are compared, but not times.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fakes.long_work import LOOPS, work_and_undo, wrong_with


def main() -> None:
    """Work, undo, and compare the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--files", type=int, default=1800)
    files = parser.parse_args().files
    with tempfile.TemporaryDirectory() as folder:
        places = {f"DUCKFLOW_{name}_DIR": f"{folder}/{name}" for name in ("STATE", "CONFIG", "CACHE")}
        worked = work_and_undo(Path(folder), files, {"HOME": folder, "LANG": "C.UTF-8", **places})
    print(f"{files} files, {len(LOOPS)} loops: {worked.outcome}, questions: {len(worked.questions)}")
    print(f"work {worked.seconds:.1f} s, undo {worked.undo_seconds:.1f} s", flush=True)
    wrong = wrong_with(worked)
    print("\n".join(wrong) or "Every path is as it was.")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
