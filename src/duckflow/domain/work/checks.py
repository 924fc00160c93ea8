"""Checks: what the program ran or parsed to see whether work is right, and what came of it (SPEC J10)."""

from collections.abc import Iterable
from typing import Literal

from duckflow.domain.frozen import Frozen
from duckflow.domain.text import one_line

CheckKind = Literal["diagnostic", "example", "test"]
"""A compiler, parser or linter; a call or script with a known result; a test of the project."""

CheckState = Literal["passed", "failed", "not_run"]

_REASON = 120

PARSING = "parsing "
"""Beginning of the name of a check that only reads a file as its language does."""


class CheckResult(Frozen):
    """One check and how it ended."""

    kind: CheckKind
    name: str
    """What was checked, as a person would say it: `ruff`, `add(2, 3) == 5`, `tests/test_calc.py`."""
    state: CheckState
    detail: str = ""
    """What failed, or why it was not run."""
    path: str = ""
    """The file it speaks of."""
    binding: bool = False
    """Whether the request can't be done while it fails."""
    before: bool = False
    """Whether it failed in the same way before the request changed anything."""
    evidence_id: str = ""
    """Its id once it is part of a verdict."""

    @property
    def good(self) -> bool:
        """Whether it shows that the work is right."""
        return self.state == "passed"

    @property
    def text(self) -> str:
        """The result as evidence, in one paragraph."""
        about = f" ({self.path})" if self.path and self.path not in self.name else ""
        said = f"check of {self.name}{about}: {self.state.replace('_', ' ')}"
        if self.state == "not_run":
            return f"{said}: {one_line(self.detail, _REASON)}" if self.detail else said
        return f"{said}: {self.detail}" if self.detail else said


def settled(results: Iterable[CheckResult]) -> bool | None:
    """What running settled: False if something binding failed, True if an example or a test passed.

    None if nothing was run that could tell; that a file compiles is no sign that it does what was asked.
    """
    seen = tuple(results)
    if any(one.state == "failed" and one.binding for one in seen):
        return False
    ran = any(one.state == "passed" and one.kind != "diagnostic" for one in seen)
    return True if ran and not any(one.state == "failed" for one in seen) else None


def checks_line(results: Iterable[CheckResult]) -> str:
    """The quick checks of an edit for the model: those that found something whole, the others by name."""
    quiet: dict[str, None] = {}
    found: list[str] = []
    for one in results:
        name = "syntax" if one.name.startswith(PARSING) else one.name
        if one.state == "failed":
            found.append(one.text)
        elif one.state == "passed":
            quiet[f"{name} ok"] = None
        else:
            quiet[f"{name} could not run ({one_line(one.detail, _REASON)})"] = None
    return "\n".join([*([f"checked: {', '.join(quiet)}"] if quiet else []), *found])
