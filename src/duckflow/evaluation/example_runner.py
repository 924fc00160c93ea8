"""Separate script that runs examples in a copy of the workspace. Standard library only.

Its argument is a JSON object: `path` of a Python file, `calls` as [call, expected, raises], and whether to
run its `doctests` and `tests`. Its last line of output is `mark` and a JSON list of [state, detail].
"""

import ast
import doctest
import importlib
import io
import json
import math
import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from types import FrameType, FunctionType, ModuleType
from typing import Any

_SECONDS = 10
_LONGEST = 200
_FOREIGN = (ModuleNotFoundError, SystemExit, EOFError, TimeoutError)
"""Errors during an import that the code is not to blame for."""


def main() -> None:
    """Run the examples that the argument describes."""
    wanted: dict[str, Any] = json.loads(sys.argv[1])
    signal.signal(signal.SIGALRM, _too_long)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        results = _results(wanted)
    sys.stdout.write("\n" + wanted["mark"] + json.dumps(results) + "\n")
    sys.stdout.flush()
    os._exit(0)  # do not wait for threads that the code has started


def _results(wanted: dict[str, Any]) -> list[tuple[str, str]]:
    checks = [partial(_call, *call) for call in wanted["calls"]]
    checks += [partial(check) for name, check in _OTHERS.items() if wanted[name]]
    try:
        with _time_limit():
            module = _load(wanted["path"])
    except _FOREIGN as error:
        return [("not_run", f"the file can't be imported here: {_said(error)}")] * len(checks)
    except BaseException as error:  # noqa: BLE001 - whatever the code does
        # Errors of other types come from a framework that is not set up; its tests need their own runner.
        ours = not wanted["tests"] or type(error).__module__ == "builtins"
        return [("failed" if ours else "not_run", f"importing the file fails: {_said(error)}")] * len(checks)
    return [check(module) for check in checks]


@contextmanager
def _time_limit() -> Generator[None]:
    signal.alarm(_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def _load(path: str) -> ModuleType:
    """Import the module under its full name, including its packages."""
    folder, file = os.path.split(os.path.abspath(path))  # noqa: PTH100 - links stay links
    names = [file.removesuffix(".py")]
    while os.path.exists(os.path.join(folder, "__init__.py")):  # noqa: PTH110, PTH118 - as above
        folder, name = os.path.split(folder)
        names.insert(0, name)
    if names[-1] == "__init__":
        names.pop()
    sys.path[:0] = [folder, os.getcwd()]  # noqa: PTH109 - as above
    sys.argv = [path]
    return importlib.import_module(".".join(names))


def _call(call: str, expected: str, raises: bool, module: ModuleType) -> tuple[str, str]:  # noqa: FBT001
    try:
        with _time_limit():
            found: object = eval(call, dict(vars(module)))  # noqa: S307 - a call of its own with literals
    except TimeoutError:
        return "failed", f"no result after {_SECONDS} s"
    except BaseException as error:  # noqa: BLE001 - whatever the code does
        if raises and expected in [kind.__name__ for kind in type(error).__mro__]:
            return "passed", ""
        return "failed", f"raised {_said(error)}"
    if not raises and _same(found, ast.literal_eval(expected)):
        return "passed", ""
    return "failed", f"came to {_shown(found)}"


def _same(found: object, wanted: object) -> bool:
    try:
        if isinstance(found, float) and isinstance(wanted, int | float) and not isinstance(wanted, bool):
            return math.isclose(found, wanted, rel_tol=1e-6, abs_tol=1e-9)
        if isinstance(wanted, bool) or wanted is None:
            return found is wanted
        return bool(found == wanted)
    except Exception:  # noqa: BLE001 - a comparison of the code's own
        return False


def _doctests(module: ModuleType) -> tuple[str, str]:
    output = io.StringIO()
    try:
        with _time_limit(), redirect_stdout(output):
            failed, tried = doctest.testmod(module)
    except BaseException as error:  # noqa: BLE001 - whatever the code does
        return "failed", f"raised {_said(error)}"
    if not tried:
        return "not_run", "there are none that run"
    return ("failed", output.getvalue()[:3_000]) if failed else ("passed", f"{tried} of them")


def _tests(module: ModuleType) -> tuple[str, str]:
    named = [one for name, one in vars(module).items() if name.startswith("test")]
    tests = [one for one in named if isinstance(one, FunctionType) and not one.__code__.co_argcount]
    for test in tests:
        try:
            with _time_limit():
                test()
        except BaseException as error:  # noqa: BLE001 - whatever the code does
            return "failed", f"{test.__name__}: {_said(error)}"
    return ("passed", f"{len(tests)} of them") if tests else ("not_run", "pytest is not installed")


_OTHERS = {"doctests": _doctests, "tests": _tests}


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:_LONGEST].rstrip(": ")


def _shown(value: object) -> str:
    try:
        return repr(value)[:_LONGEST]
    except Exception:  # noqa: BLE001 - its repr is the code's own
        return f"a {type(value).__name__}"


def _too_long(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"no end after {_SECONDS} s")


if __name__ == "__main__":
    main()
