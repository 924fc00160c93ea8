"""Redraws docs/pictures from a real conversation in a real terminal, in both languages.

    .venv/bin/python scripts/pictures.py [--model embedded|scripted] [--language en|ja]

Without --model, the embedded model answers if it is installed, and a script otherwise. Needs the developer
environment (`make test` sets it up). The user's own settings are neither changed nor shown.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import pyte  # noqa: E402 - after the path is set
from terminal_svg import draw, still  # noqa: E402

from fakes.conversation import ready  # noqa: E402
from fakes.terminal import Terminal  # noqa: E402

DUCKFLOW = [sys.executable, "-m", "duckflow"]
COLUMNS, ROWS = 94, 60
PATIENCE_S = 900
STATS = "def mean(values):\n    return sum(values) / len(values)\n"
BETTER = f"{STATS}\n\ndef median(values):\n    ordered = sorted(values)\n    middle = len(ordered) // 2\n"
BETTER += "    if len(ordered) % 2:\n        return ordered[middle]\n"
BETTER += "    return (ordered[middle - 1] + ordered[middle]) / 2\n"


class Talk(NamedTuple):
    """Messages of the user in one language, and answers of the scripted model."""

    question: str
    answer: str
    wish: str
    announcement: str
    ask: str


TALKS = {
    "en": Talk(
        question="What does stats.py do?",
        answer="stats.py has one function, mean, which returns the average of a list of numbers.",
        wish="Add a function median(values) to stats.py",
        announcement="I'll add the function median to stats.py.",
        ask="Allow it?",
    ),
    "ja": Talk(
        question="stats.py は何をするファイルですか？",
        answer="stats.py には関数 mean があり、数値のリストの平均を返します。",
        wish="stats.py に関数 median(values) を追加して",
        announcement="stats.py に関数 median を追加します。",
        ask="許可しますか？",
    ),
}


class Coloured(pyte.HistoryScreen):
    """Screen that shows faint text as grey."""

    def select_graphic_rendition(self, *attributes: int) -> None:
        """Set the attributes of the following text."""
        super().select_graphic_rendition(*(90 if one == 2 else one for one in attributes))


def main() -> None:
    """Draw the pictures of the chosen languages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", choices=["embedded", "scripted"])
    parser.add_argument("--language", choices=list(TALKS), nargs="*", default=list(TALKS))
    options = parser.parse_args()
    model = options.model or ("embedded" if installed() else "scripted")
    for language in options.language:
        picture = ROOT / "docs" / "pictures" / f"conversation-{language}.svg"
        picture.write_text(converse(language, model), "utf-8")
        sys.stdout.write(f"{picture.relative_to(ROOT)} ({model})\n")


def installed() -> bool:
    """Return True if the embedded model can be used."""
    return subprocess.run([*DUCKFLOW, "model", "path"], capture_output=True, check=False).returncode == 0


def converse(language: str, model: str) -> str:
    """Hold the conversation and return its picture."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "project"
        folder.mkdir()
        (folder / "stats.py").write_text(STATS, "utf-8")
        command = [*DUCKFLOW, "--workspace", str(folder), "--model", named(model, language, Path(home))]
        with Terminal(command, columns=COLUMNS, rows=ROWS, env=environment(home, language)) as terminal:
            terminal.screen = Coloured(COLUMNS, ROWS)
            terminal._stream.attach(terminal.screen)
            stills = list(speak(terminal, TALKS[language]))
            return draw(stills, COLUMNS, len(terminal.shown), "duckflow")


def speak(terminal: Terminal, talk: Talk) -> Iterator[list[str]]:
    """Ask a question, request a change and allow it. Yield the screen after each step."""

    def seen() -> list[str]:
        return still(terminal.screen, len(terminal.shown))

    wait_for_prompt(terminal)
    terminal.type(talk.question)
    terminal.wait_for(f"> {talk.question}")
    yield seen()
    terminal.type("\r")
    wait_for_prompt(terminal)
    terminal.type(talk.wish)
    terminal.wait_for(f"> {talk.wish}")
    yield seen()
    terminal.type("\r")
    terminal.wait_for(talk.ask, PATIENCE_S)
    terminal.settle()
    yield seen()
    terminal.type("y\r")
    terminal.wait_for("→ ")
    wait_for_prompt(terminal)
    yield seen()


def wait_for_prompt(terminal: Terminal) -> None:
    """Read until the prompt is empty, the program is idle and no more output comes."""
    ready(terminal, PATIENCE_S)
    terminal.settle()
    ready(terminal, PATIENCE_S)


def environment(home: str, language: str) -> dict[str, str]:
    """Return an environment with a temporary home but the installed models."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return {"HOME": home, "XDG_CACHE_HOME": cache, "DUCKFLOW_LANGUAGE": language, "NO_COLOR": ""}


def named(model: str, language: str, home: Path) -> str:
    """Return the value for --model, after writing the script for a scripted model."""
    if model == "embedded":
        return "embedded"
    talk, script = TALKS[language], home / "script.jsonl"
    read = {"operation": "file_ops.read_file", "args": {"path": "stats.py"}}
    write = {"operation": "file_ops.write_file", "args": {"path": "stats.py", "content": BETTER}}
    decisions = [
        {"next_step": "continue", "task_profile": "simple_question", "actions": [read]},
        {"next_step": "done", "task_profile": "simple_question", "reply": talk.answer},
        {
            "next_step": "done",
            "reply": talk.announcement,
            "actions": [{**write, "reasoning": talk.announcement}],
        },
    ]
    lines = [{"for": "Decision", "text": json.dumps(one, ensure_ascii=False)} for one in decisions]
    requirement = {"requirement": talk.wish, "priority": 1}
    score = {"requirement": talk.wish, "score": 1.0, "evidence": ["e2"]}
    verdict = {"requirement_scores": [score], "completion_recommendation": True}
    lines += [{"for": "RequirementList", "text": json.dumps({"requirements": [requirement]})}] * 2
    lines.append({"for": "SatisfactionEvaluation", "text": json.dumps(verdict)})
    script.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    return f"scripted:~/{script.name}"


if __name__ == "__main__":
    main()
