"""Small everyday requests to the embedded model, in English and Japanese, judged by running the result.

    .venv/bin/python bench/small_requests.py [--only NAME,NAME] [--model FILE.gguf]
        [--results small_requests.json] [--threads N] [--jobs N] [--limit SECONDS] [--mode auto]

Each request runs in a temporary folder and a new process. Afterwards a program checks the folder or the
reply: it imports, calls functions or runs the tests. Results that exist already are not measured again. Needs
`duckflow model install` or a model's file.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from exercises import LIMIT_S, installed, keep, side_by_side

CALC = "def add(a, b):\n    return a + b\n\n\ndef subtract(a, b):\n    return a - b\n"
BUGGY = "def mean(values):\n    return sum(values) / (len(values) + 1)\n"
TEST_MEAN = "from stats import mean\n\n\ndef test_mean():\n    assert mean([1, 2, 3]) == 2\n"
SHOP = (
    'PRICES = {"apple": 3, "pear": 4}\n\n\ndef total(names):\n    return sum(PRICES[one] for one in names)\n'
)
README = "# Pond\n\nA small game about ducks.\n"
CONFIG = '{\n  "name": "pond",\n  "port": 8000\n}\n'
LOOP = "def countdown(n):\n    while n > 0:\n        print(n)\n"
GREET = 'def greet(name):\n    return "Hello, " + name\n'
KEPT = "import calc; assert calc.add(2, 3) == 5 and calc.subtract(5, 3) == 2"
JAPANESE = "import re; assert re.search('[ぁ-んァ-ヶ一-龠]', reply), reply"


class SmallRequest(NamedTuple):
    """A request, its files, and the program that judges the result; it runs in the folder and knows
    `reply`."""

    asked: str
    right: str
    files: Mapping[str, str] = {}


def out(command: str, expected: str) -> str:
    """Return a program that runs a script and compares its output."""
    return (
        f"import subprocess, sys; p = subprocess.run([sys.executable, *{command.split()!r}], "
        f"capture_output=True, text=True, timeout=20); assert p.stdout.strip() == {expected!r}, p"
    )


def same(*paths: str) -> str:
    """Return a program that checks that these files are unchanged."""
    return "; ".join(f"assert open({path!r}).read() == before[{path!r}]" for path in paths)


TESTS_PASS = (
    "import subprocess, sys; assert subprocess.run([sys.executable, '-m', 'pytest', '-q', '-p', "
    "'no:cacheprovider'], capture_output=True, timeout=60).returncode == 0"
)
REQUESTS: dict[str, SmallRequest] = {
    "hello": SmallRequest("Create hello.py that prints hello", out("hello.py", "hello")),
    "hello_ja": SmallRequest(
        "「こんにちは」と表示する hello.py を作ってください", out("hello.py", "こんにちは")
    ),
    "stack": SmallRequest(
        "Create stack.py with a class Stack that has push, pop and is_empty",
        "import stack; s = stack.Stack(); assert s.is_empty(); s.push(1); s.push(2); assert s.pop() == 2",
    ),
    "add_function": SmallRequest(
        "Add a function multiply(a, b) to calc.py",
        f"{KEPT}; assert calc.multiply(3, 4) == 12",
        {"calc.py": CALC},
    ),
    "add_function_ja": SmallRequest(
        "calc.py に割り算をする関数 divide(a, b) を追加してください",
        f"{KEPT}; assert calc.divide(8, 2) == 4",
        {"calc.py": CALC},
    ),
    "raise_error": SmallRequest(
        "Make total in shop.py raise ValueError for a name that has no price",
        "import shop\nassert shop.total(['apple', 'pear']) == 7\ntry: shop.total(['fig'])\n"
        "except ValueError: pass\nelse: raise AssertionError",
        {"shop.py": SHOP},
    ),
    "fix_test": SmallRequest(
        "The test in test_stats.py fails. Fix stats.py",
        f"{TESTS_PASS}; {same('test_stats.py')}",
        {"stats.py": BUGGY, "test_stats.py": TEST_MEAN},
    ),
    "fix_test_ja": SmallRequest(
        "test_stats.py のテストが失敗します。stats.py を直してください",
        f"{TESTS_PASS}; {same('test_stats.py')}",
        {"stats.py": BUGGY, "test_stats.py": TEST_MEAN},
    ),
    "fix_loop": SmallRequest(
        "countdown in loop.py never ends. Fix it",
        "import io, contextlib, loop\nb = io.StringIO()\n"
        "with contextlib.redirect_stdout(b): loop.countdown(3)\nassert b.getvalue().split() == list('321')",
        {"loop.py": LOOP},
    ),
    "rename_file": SmallRequest(
        "Rename calc.py to arithmetic.py",
        "import os, arithmetic; assert arithmetic.add(2, 3) == 5 and not os.path.exists('calc.py')",
        {"calc.py": CALC},
    ),
    "rename_file_ja": SmallRequest(
        "notes.txt の名前を memo.txt に変えてください",
        "import os; assert open('memo.txt').read() == 'milk\\n' and not os.path.exists('notes.txt')",
        {"notes.txt": "milk\n"},
    ),
    "rename_function": SmallRequest(
        "Rename the function greet in greet.py to say_hello",
        "import greet; assert greet.say_hello('Duck') == 'Hello, Duck' and not hasattr(greet, 'greet')",
        {"greet.py": GREET},
    ),
    "delete": SmallRequest(
        "Delete old.log",
        "import os; assert not os.path.exists('old.log') and os.path.exists('calc.py')",
        {"old.log": "x\n", "calc.py": CALC},
    ),
    "delete_ja": SmallRequest(
        "tmp.txt を削除して", "import os; assert not os.path.exists('tmp.txt')", {"tmp.txt": "x\n"}
    ),
    "explain": SmallRequest(
        "Explain what shop.py does",
        f"assert 'pric' in reply.lower() or 'total' in reply.lower(), reply; {same('shop.py')}",
        {"shop.py": SHOP},
    ),
    "explain_ja": SmallRequest(
        "shop.py は何をするプログラムですか？",
        f"{JAPANESE}; assert '価格' in reply or '合計' in reply, reply; {same('shop.py')}",
        {"shop.py": SHOP},
    ),
    "question": SmallRequest("What is a Python list?", "assert len(reply) > 20 and 'list' in reply.lower()"),
    "question_beside_files": SmallRequest(
        "What is a dictionary in Python?",
        f"assert 'key' in reply.lower(), reply; {same('shop.py')}",
        {"shop.py": SHOP, "greet.py": GREET},
    ),
    "how_to": SmallRequest(
        "How do I reverse a list in Python?",
        f"assert 'reverse' in reply.lower() or '[::-1]' in reply, reply; {same('calc.py')}",
        {"calc.py": CALC},
    ),
    "how_to_ja": SmallRequest(
        "Git でコミットを取り消すにはどうすればいいですか？",
        f"{JAPANESE}; assert 'git' in reply.lower(), reply; {same('calc.py')}",
        {"calc.py": CALC},
    ),
    "question_ja": SmallRequest("Python の辞書とは何ですか？", JAPANESE),
    "which_port": SmallRequest(
        "Which port is set in config.json?",
        f"assert '8000' in reply, reply; {same('config.json')}",
        {"config.json": CONFIG},
    ),
    "change_port": SmallRequest(
        "Change the port in config.json to 9000",
        "import json; assert json.load(open('config.json')) == {'name': 'pond', 'port': 9000}",
        {"config.json": CONFIG},
    ),
    "change_port_ja": SmallRequest(
        "config.json のポートを 9000 に変更してください",
        "import json; assert json.load(open('config.json')) == {'name': 'pond', 'port': 9000}",
        {"config.json": CONFIG},
    ),
    "docstring": SmallRequest(
        "Add a docstring to the function greet in greet.py",
        "import greet; assert greet.greet.__doc__ and greet.greet('A') == 'Hello, A'",
        {"greet.py": GREET},
    ),
    "readme": SmallRequest(
        "Add a section Install to README.md that says: run pip install pond",
        "t = open('README.md').read(); assert 'A small game about ducks.' in t and 'pip install pond' in t",
        {"README.md": README},
    ),
    "readme_ja": SmallRequest(
        "README.md に「使い方」という見出しを追加してください",
        "t = open('README.md').read(); assert 'A small game about ducks.' in t and '使い方' in t",
        {"README.md": README},
    ),
    "write_test": SmallRequest(
        "Write test_calc.py with tests for add and subtract of calc.py",
        f"{TESTS_PASS}; assert 'def test' in open('test_calc.py').read(); {same('calc.py')}",
        {"calc.py": CALC},
    ),
    "fizzbuzz": SmallRequest(
        "Write fizzbuzz.py with a function fizzbuzz(n) that returns a list of strings from 1 to n, so that "
        "fizzbuzz(5) == ['1', '2', 'Fizz', '4', 'Buzz']",
        "from fizzbuzz import fizzbuzz as f; assert f(15)[-1] == 'FizzBuzz' and f(3)[-1] == 'Fizz'",
    ),
    "csv": SmallRequest(
        "Write total.py that reads sales.csv and prints the sum of the column amount",
        out("total.py", "12"),
        {"sales.csv": "name,amount\na,5\nb,7\n"},
    ),
    "shell_script": SmallRequest(
        "Create count.sh that prints the numbers from 1 to 3, one a line",
        "import subprocess; assert subprocess.run(['bash', 'count.sh'], capture_output=True).stdout.split() "
        "== [b'1', b'2', b'3']",
    ),
}


def run_one(name: str, wanted: SmallRequest, options: argparse.Namespace) -> dict[str, Any]:
    """Run one request in a temporary folder and judge it by its program."""
    with tempfile.TemporaryDirectory() as room:
        work = Path(room) / "work"
        work.mkdir()
        for path, content in wanted.files.items():
            (work / path).write_text(content, "utf-8")
        env = {
            **os.environ,
            "DUCKFLOW_STATE_DIR": f"{work}.state",
            "DUCKFLOW_LLM__EMBEDDED__THREADS": str(options.threads),
            "DUCKFLOW_LLM__TIME_LIMIT_S": str(options.limit),
        }
        command = [sys.executable, "-m", "duckflow", "run", wanted.asked, "--json", "--mode", options.mode]
        command += ["--workspace", str(work), "--model", f"embedded:{options.model}"]
        start = time.perf_counter()
        try:
            done = subprocess.run(
                command, env=env, capture_output=True, text=True, timeout=options.limit, check=False
            )
            code, lines, said = done.returncode, done.stdout.splitlines(), done.stderr[-500:]
        except subprocess.TimeoutExpired:
            code, lines, said = "timeout", [], ""
        took = time.perf_counter() - start
        events = [json.loads(line) for line in lines]
        reply = "\n".join(event["text"] for event in events if event["type"] == "reply")
        wrong = judge(wanted, reply, work)
        files = {str(one.relative_to(work)): one.read_text("utf-8", "replace") for one in _files(work)}
    kinds = [event["type"] for event in events]
    return {
        "name": name, "good": not wrong, "wrong": wrong, "exit": code, "seconds": round(took, 1),
        "asked": [kind for kind in kinds if kind in ("consultation_requested", "approval_requested")],
        "decisions": kinds.count("decision"), "reply": reply, "files": files, "said": said,
    }  # fmt: skip


def judge(wanted: SmallRequest, reply: str, work: Path) -> str:
    """Return the fault in the folder or the reply, or an empty text."""
    told = f"reply, before = {reply!r}, {dict(wanted.files)!r}\n{wanted.right}\n"
    try:
        ran = subprocess.run(
            [sys.executable, "-B", "-c", told],
            cwd=work, capture_output=True, text=True, timeout=90, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "it does not end"
    return ran.stderr.strip().rpartition("\n")[2][:300] if ran.returncode else ""


def summary(results: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores"
    yield "| request | right | exit | s |"
    yield "|---|---|---|---|"
    for one in results:
        right = "yes" if one["good"] else "no"
        yield f"| {one['name']} | {right} | {one['exit']} | {one['seconds']:.0f} |"
    right = sum(one["good"] for one in results)
    asked = sum(bool(one["asked"]) and one["good"] for one in results)
    middle = statistics.median(one["seconds"] for one in results) if results else 0.0
    yield f"{right} of {len(results)} right, {asked} of them yet asked; median {middle:.0f} s"


def _files(work: Path) -> Iterator[Path]:
    return (path for path in work.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def main() -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--mode", default="auto")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--limit", type=float, default=LIMIT_S)
    parser.add_argument("--results", type=Path, default=Path("small_requests.json"))
    options = parser.parse_args()
    options.model = (options.model or installed()).resolve()
    results = json.loads(options.results.read_text("utf-8")) if options.results.exists() else []
    known = {one["name"] for one in results}
    chosen = [name for name in options.only.split(",") if name] or list(REQUESTS)
    options.threads = options.threads or max(1, len(os.sched_getaffinity(0)) // options.jobs)
    kept = threading.Lock()

    def request(name: str) -> None:
        one = run_one(name, REQUESTS[name], options)
        with kept:
            results.append(one)
            keep(options.results, results)
            print(f"{name:<20}{one['wrong'] or 'right':<60}{one['seconds']:>7.1f} s", flush=True)

    side_by_side(options.jobs, request, [one for one in chosen if one not in known])
    print(*summary(results), sep="\n")


if __name__ == "__main__":
    main()
