"""Counts how often a mode asks about ordinary commands that coding agents run.

    .venv/bin/python bench/questions.py [bubblewrap | namespaces]

Each command of `tests/safety/sandbox/ordinary_commands.txt` runs in a separate session and git repository,
and every question is answered with yes. Fails if `auto` asks about more than 3 in 100 commands, if `ask` asks
about one that changed nothing, or if `ask` does not ask about one that did. A change is a difference in path,
kind, mode or content, `.git` included.
"""

import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path

from duckflow.domain.events import ApprovalRequested
from duckflow.domain.questions.approval import AnswerApproval

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "safety" / "sandbox"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from test_ordinary_commands import COMMANDS, make_template

from fakes.engine import decision, engine
from fakes.long_work import run, tree

BOUND = 3
LEVEL = sys.argv[1] if len(sys.argv) > 1 else "auto"


async def ask_about(command: str, mode: str, template: Path, folder: Path) -> tuple[list[str], list[str]]:
    """Run a command. Return the reasons for questions about it, and the paths that it changed."""
    shutil.copytree(template, folder, symlinks=True)
    before = tree(folder)
    answers = decision("", run(command)), *[decision("Done.")] * 3
    async with engine(folder, *answers, mode=mode, shell={"sandbox": LEVEL}) as duck:
        assert LEVEL in ("auto", (await duck.app.shell.sandbox()).level)
        outcome = await duck.app.chat.say("go")
        while outcome == "awaiting_approval":
            outcome = await duck.app.chat.answer(AnswerApproval(yes=True))
        asked = [f"{one.approval.because}: {one.approval.reasons}" for one in duck.of(ApprovalRequested)]
    after = tree(folder)
    shutil.rmtree(folder)
    return asked, sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


async def count(mode: str, base: Path) -> bool:
    """Run all commands in one mode. Return True if it asked as it should."""
    asked_about, wrong = [], []
    for number, command in enumerate(COMMANDS):
        asked, changed = await ask_about(command, mode, base / "template", base / f"{mode}{number}")
        if asked:
            asked_about.append(f"  {command!r} {asked}")
        if mode == "ask" and bool(asked) != bool(changed):
            wrong.append(f"  {'asked, changed nothing' if asked else 'not asked'}: {command!r} {changed[:3]}")
    share = 100 * len(asked_about) / len(COMMANDS)
    print(f"{mode}: asked about {len(asked_about)} of {len(COMMANDS)} commands ({share:.1f} in 100)")
    print("\n".join(wrong if mode == "ask" else asked_about), flush=True)
    return not wrong and (mode != "auto" or share <= BOUND)


def main() -> None:
    """Try both modes."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        places = {f"DUCKFLOW_{name}_DIR": str(base / name) for name in ("STATE", "CONFIG", "CACHE")}
        os.environ.update({"HOME": str(base), **places})
        (base / "template").mkdir()
        make_template(base / "template")
        good = [asyncio.run(count(mode, base)) for mode in ("auto", "ask")]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
