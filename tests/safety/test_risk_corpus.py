"""Several hundred commands and paths, each with its risk and the verdict of every mode (G2, G3)."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from duckflow.safety.policy.command_risk import Place, read_risks, similar_commands
from duckflow.safety.policy.policy import PolicyCase, decide
from duckflow.safety.policy.protected import is_environment_program, protection_of, within
from duckflow.safety.policy.risk import ActionFacts, assess
from fakes.rows import every_row

CORPUS = Path(__file__).parent / "corpus"
ROOT, STATE = "/home/me/project", "/home/me/.state/duckflow"
COMMANDS = {
    "low": {"plan": "deny", "ask": "ask", "edits": "ask", "auto": "ask"},
    "medium": {"plan": "deny", "ask": "ask", "edits": "ask", "auto": "ask"},
    "high": {"plan": "deny", "ask": "ask", "edits": "ask", "auto": "ask"},
    "forbidden": dict.fromkeys(("plan", "ask", "edits", "auto"), "deny"),
}
"""In a sandbox without a copy, and without a sandbox: nothing is allowed unasked, `auto` is `edits`."""
WRITES = {
    "low": {"plan": "deny", "ask": "ask", "edits": "allow", "auto": "allow"},
    "high": {"plan": "deny", "ask": "ask", "edits": "ask", "auto": "ask"},
    "forbidden": dict.fromkeys(("plan", "ask", "edits", "auto"), "deny"),
}


def cases(name: str) -> Iterator[Any]:
    for risk, reasons in tomllib.loads((CORPUS / name).read_text("utf-8")).items():
        for reason, listed in reasons.items():
            for one in listed:
                yield pytest.param(one, risk, reason, id=f"{reason}: {one!r}"[:80])


def place_of(path: str) -> Place:
    """The places of a workspace that needs no disk."""
    if path.startswith("~") or ".." in path.split("/"):
        return "outside"
    if path.startswith("/"):
        if within(path, STATE):
            return "own"
        if not within(path, ROOT):
            return "outside"
        path = path[len(ROOT) :]
    if is_environment_program(path):
        return "inside"
    return {"none": "inside", "guarded": "protected", "asks": "protected", "denied": "own"}[
        protection_of(path)
    ]


@every_row(("command", "risk", "reason"), list(cases("commands.toml")))
def test_every_command_has_its_risk_and_verdicts_G2(command: str, risk: str, reason: str):
    found = assess(ActionFacts(effect="execute", command=command), place_of, 200_000)
    assert found.risk == risk, found
    if risk == "low":
        assert read_risks(command, place_of) == ("looks",)
    else:
        assert reason in found.reasons
    for mode, verdict in COMMANDS[risk].items():
        case = PolicyCase(effect="execute", risk=found.risk, sandboxed=True)
        assert decide(mode, case).verdict == verdict
        without = decide(mode, case._replace(sandboxed=False)).verdict
        assert without == ("deny" if verdict == "deny" else "ask")


@every_row(("path", "risk", "reason"), list(cases("paths.toml")))
def test_every_path_has_its_risk_and_verdicts_G2(path: str, risk: str, reason: str):
    protection = protection_of(path)
    found = assess(
        ActionFacts(effect="write", paths=(path,), protection=protection, written="x\n"), place_of, 1000
    )
    assert found.risk == risk, found
    assert risk == "low" or reason in found.reasons
    for mode, verdict in WRITES[risk].items():
        case = PolicyCase(effect="write", risk=found.risk, protection=protection, sandboxed=True)
        assert decide(mode, case).verdict == verdict


@every_row(
    ("command", "first_words"),
    [
        ("pytest -x tests", "pytest"),
        (".venv/bin/pytest -x", ".venv/bin/pytest"),
        ("npm run build -- --fast", "npm run build"),
        ("python -m pytest -q", "python -m pytest"),
        ("make test", "make test"),
        ("git commit -m x", "git commit"),
        ("pytest && make", ""),
        ("pytest > out.txt", ""),
        ("CI=1 pytest", ""),
        ("python3 -W error tool.py", ""),
        ("python3 tool.py", "python3 tool.py"),
        ("node --require ./x.js a.js", ""),
        ("echo $X", ""),
    ],
)
def test_commands_are_known_by_program_and_first_words(command: str, first_words: str):
    """G1: what "always" covers; nothing where a command is more than one program."""
    similar = similar_commands(command)
    assert (similar.scope if similar else "") == first_words


def test_a_command_that_asks_for_the_network_is_high_whatever_it_runs():
    """G2; unless the user lets every command use it."""
    facts = ActionFacts(effect="execute", command="pytest", network=True)
    assert assess(facts, place_of, 1000).risk == "high"
    open_to_all = facts.model_copy(update={"network_open": True})
    assert assess(open_to_all, place_of, 1000).risk == "medium"


def test_look_alike_letters_in_the_name_of_a_program_ask():
    for command in ("gіt status", "ｐytest", "npm run build && сat x"):
        assert (
            "lookalike" in assess(ActionFacts(effect="execute", command=command), place_of, 1000).reasons
        ), command
