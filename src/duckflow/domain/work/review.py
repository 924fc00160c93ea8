"""Reviews of changes: findings, and the proof of each (O4)."""

from typing import Literal

from duckflow.domain.frozen import Frozen
from duckflow.domain.work.agents import AgentOutcome

Severity = Literal["high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")

ProofOutcome = Literal[
    "proven", "passes", "fails_before", "could_not_run", "not_steady", "only_reads", "no_proof"
]
"""`passes`: the command finds nothing wrong. `fails_before`: without the changes it fails as well.
`not_steady`: it fails only sometimes. `only_reads`: it looks at the files instead of running them."""

BaseRun = Literal["passes", "is_new"]
"""Without the changes, the proof passes, or it can't run because it uses what they add."""


class Proof(Frozen):
    """A command that fails because of a fault, as the program saw it end."""

    command: str
    test_path: str = ""
    """Test file that the command needs; it is in the copies only."""
    test: str = ""
    """Content of that file."""
    exit_code: int | None = None
    """Exit code with the changes, None if it was stopped."""
    output: str = ""
    """Last lines of its output with the changes."""
    without: BaseRun | None = None
    """End of the command without the changes, for a proof that holds."""


class ReviewFinding(Frozen):
    """A fault in changes."""

    file: str
    line: int
    severity: Severity
    text: str
    """One sentence that says what the change breaks, and when."""
    outcome: ProofOutcome = "no_proof"
    proof: Proof | None = None

    @property
    def proven(self) -> bool:
        """True if the program saw the proof fail because of the changes."""
        return self.outcome == "proven"


class ReviewReport(Frozen):
    """Result of a review."""

    changes: str
    """The changes as the user named them; empty for uncommitted ones."""
    files: int = 0
    added: int = 0
    removed: int = 0
    """Numbers of changed files and lines."""
    left_out: tuple[str, ...] = ()
    """Changed files that the model did not get as a difference."""
    findings: tuple[ReviewFinding, ...] = ()
    """All findings, the proven ones first, then by severity."""
    outcome: AgentOutcome = "done"
    """End of the reviewing agent."""
    problem: str = ""
    """Why it stopped early."""
    reply: str = ""
    """Last words of the model."""

    @property
    def complete(self) -> bool:
        """False if the review stopped early."""
        return self.outcome in ("done", "accepted")

    @property
    def proven(self) -> int:
        """Number of proven findings."""
        return sum(one.proven for one in self.findings)


def in_order(findings: tuple[ReviewFinding, ...]) -> tuple[ReviewFinding, ...]:
    """Return the findings, proven ones first, then by severity."""
    return tuple(
        sorted(findings, key=lambda one: (not one.proven, SEVERITIES.index(one.severity), one.file, one.line))
    )
