"""Checks: what Duckflow ran or parsed to verify the work, and the results (J10)."""

from collections.abc import Iterable
from typing import Literal

from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.text import one_line

CheckKind = Literal["diagnostic", "example", "test"]
"""A compiler, parser or linter; a call or script with an expected result; a test of the project."""

CheckState = Literal["passed", "failed", "not_run"]

_REASON, _ASPECT = 120, 600

PARSING = "parsing "
"""Prefix of the names of checks that only parse a file."""
DOCTESTS = "doctests of "
"""Prefix of the names of checks that run the doctests of a file."""


class CheckResult(Frozen):
    """One check and its result."""

    kind: CheckKind
    name: str
    """Name of the check, in a form that people use: `ruff`, `add(2, 3) == 5`, `tests/test_calc.py`."""
    state: CheckState
    detail: str = ""
    """Description of the failure, or the reason why the check was not run."""
    path: str = ""
    binding: bool = False
    """True if the request can't be done while the check fails."""
    before: bool = False
    """True if the check failed in the same way before the request changed anything."""
    accepted: bool = False
    """True if the user said that it may fail for now."""
    compared: bool = True
    """False if it could not be found out whether the check also failed before the request."""
    evidence_id: str = ""
    """Evidence id, once the check is part of a verdict."""

    @property
    def good(self) -> bool:
        """True if the check shows that the work is right."""
        return self.state == "passed"

    @property
    def text(self) -> str:
        """The result as evidence, in one paragraph."""
        about = f" ({self.path})" if self.path and self.path not in self.name else ""
        said = f"check of {self.name}{about}: {self.state.replace('_', ' ')}"
        detail = one_line(self.detail, _REASON) if self.state == "not_run" else self.detail
        return f"{said}: {detail}" if detail else said

    @property
    def aspect(self) -> str:
        """The failure in one line, for the list of what is missing."""
        return one_line(self.text, _ASPECT)


def accept_failure(result: CheckResult) -> CheckResult:
    """Let a failed test count for nothing, because the user said that it may fail for now."""
    if result.kind != "test" or result.state != "failed":
        return result
    return replace(result, accepted=True, binding=False)


def settled(results: Iterable[CheckResult]) -> bool | None:
    """Return False if a binding check failed, True if an example or test passed and nothing failed.

    None otherwise: that a file compiles does not show that it does what was requested.
    """
    seen = tuple(results)
    if any(one.state == "failed" and one.binding for one in seen):
        return False
    ran = any(one.state == "passed" and one.kind != "diagnostic" for one in seen)
    return True if ran and not any(one.state == "failed" for one in seen) else None


def checks_line(results: Iterable[CheckResult]) -> str:
    """Return a summary of the checks after an edit for the model: failures in full, the others by name."""
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
