"""Operation of a reviewing agent: reports a finding, and runs its proof with the changes and without (O4).

The program alone decides what is proven: what fails with the changes, passes without them, and fails again.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, NamedTuple

from pydantic import Field

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.text import cut, head_and_tail
from duckflow.domain.work.review import BaseRun, Proof, ProofOutcome, ReviewFinding, Severity
from duckflow.evaluation.check_copies import CheckCopies
from duckflow.evaluation.facts import CANT_START, failing_lines
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import FileStatus
from duckflow.safety.policy.command_risk import only_reads
from duckflow.safety.sandbox.command_result import CommandResult
from duckflow.safety.sandbox.copy.copies import PlacedFile
from duckflow.tools.catalogue import Tool, ToolResult

OPERATION = "review.report_finding"

_FILES, _ORDER, _FOUND = "base", "order.json", "findings.jsonl"
_NO_TESTS = 5
"""pytest's exit code if it found no tests."""

_TIMED_OUT = (124, 137)
"""Exit codes of `timeout`, and of a command that was killed."""

_SHOWN_LINES, _SHOWN = 12, 2_000
_CANT_RUN = lazy_regex(
    r"\b(?:ModuleNotFoundError|ImportError|SyntaxError|IndentationError|TabError)\b|No module named"
    r"|can't open file|file or directory not found|fixture '\w+' not found|Cannot find module"
    r"|unrecognized arguments"
)
"""Failures of the proof itself rather than of what it tests."""

_ABSENT = lazy_regex(
    r"cannot import name|No module named|has no attribute|is not defined|unexpected keyword argument"
    r"|is not a function|Cannot find module|undefined|cannot find|No such file|not found"
    r"|unrecognized arguments|no such option|invalid choice|takes \d+ positional"
)
"""Messages of failures caused by a missing module, name or file."""

_WORD = lazy_regex(r"[A-Za-z_]\w+")
_FRAME = lazy_regex(r'(?m)^\s*File "([^"]+)", line \d+|^(\S+):\d+: (?:[A-Z]\w+|in .*)?$')
"""Place in a traceback of Python or pytest."""

_MISUSE = lazy_regex(r"(?m)^(?:E\s+)?(?:TypeError|NameError|AttributeError|UnboundLocalError)\b")


class ReviewOrder(Frozen):
    """Facts about the changes under review, for the session of the agent."""

    base: dict[str, str]
    """For each changed file, the name of the file with its content without the changes; empty for none."""
    executable: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    """Words that only the changes introduce."""
    seconds: float = 120.0


class ReportFinding(Frozen):
    """Arguments of review.report_finding."""

    file: Annotated[str, Field(min_length=1, max_length=1_000)]
    line: Annotated[int, Field(ge=1)] = Field(description="in the file with the changes")
    severity: Severity
    text: Annotated[str, Field(min_length=1, max_length=1_500)] = Field(
        description="one sentence: what breaks, and when"
    )
    command: Annotated[str, Field(max_length=10_000)] = Field(
        default="",
        description="exits 0 without the changes and fails with them; empty if no proof is possible",
    )
    test_path: Annotated[str, Field(max_length=500)] = Field(
        default="", description="new file that the command needs"
    )
    test: Annotated[str, Field(max_length=20_000)] = Field(default="", description="its content")


class Tried(NamedTuple):
    """Outcome of a proof, with the words about it for the model."""

    outcome: ProofOutcome
    proof: Proof
    told: str


def save_order(place: Path, base: Mapping[str, PlacedFile], added: Sequence[str], seconds: float) -> None:
    """Store the facts about the changes for the agent's session. Blocking."""
    (place / _FILES).mkdir(parents=True)
    names = {
        path: str(number) if one.content is not None else ""
        for number, (path, one) in enumerate(base.items())
    }
    for path, one in base.items():
        if one.content is not None:
            (place / _FILES / names[path]).write_bytes(one.content)
    order = ReviewOrder(
        base=names,
        executable=tuple(path for path, one in base.items() if one.executable),
        links=tuple(path for path, one in base.items() if one.link),
        added=tuple(added),
        seconds=seconds,
    )
    (place / _ORDER).write_text(json.dumps(order.model_dump()), "ascii")  # for names that are not UTF-8


def read_findings(place: Path) -> tuple[ReviewFinding, ...]:
    """Return the reported findings; of several about one line, a proven one or else the last."""
    try:
        lines = (place / _FOUND).read_text("utf-8").splitlines()
    except FileNotFoundError:
        return ()
    found: dict[tuple[str, int], ReviewFinding] = {}
    for said in lines:
        one = ReviewFinding.model_validate(json.loads(said))
        known = found.get((one.file, one.line))
        if known is None or one.proven or not known.proven:
            found[one.file, one.line] = one
    return tuple(found.values())


def finding_tool(place: Path, copies: CheckCopies) -> Tool[ReportFinding]:
    """Return the operation of an agent that reviews the changes whose facts lie in this folder."""
    prover = Prover(place, copies)

    async def report(args: ReportFinding, access: Access) -> ToolResult:
        if fault := prover.fault_of(args, access):
            return ToolResult(text=f"Not reported. {fault}")  # no failure, which would end the review early
        tried = await prover.try_proof(args) if args.command.strip() else None
        if tried is not None and tried.outcome == "passes":
            return ToolResult(text=tried.told)
        finding = ReviewFinding(
            file=args.file,
            line=args.line,
            severity=args.severity,
            text=args.text,
            outcome=tried.outcome if tried else "no_proof",
            proof=tried.proof if tried else None,
        )
        prover.keep(finding)
        return ToolResult(text=tried.told if tried else "Reported as unproven.")

    return Tool(
        operation=OPERATION,
        args=ReportFinding,
        summary="reports a fault; the program runs the command with the changes and without them",
        effect="read",
        run=report,
    )


class Prover:
    """Runs proofs on copies of the folder, with the changes under review and without them."""

    def __init__(self, place: Path, copies: CheckCopies) -> None:
        self._place = place
        self._copies = copies
        self._order = ReviewOrder.model_validate(json.loads((place / _ORDER).read_text("ascii")))

    def fault_of(self, args: ReportFinding, access: Access) -> str:
        """Return what is wrong with a report itself, empty if nothing is."""
        if args.file not in self._order.base and _status(args.file, access) is None:
            return f"There is no file {args.file[:200]}: name it by its path in the folder."
        if bool(args.test_path) != bool(args.test):
            return "test_path and test belong together: the path of a new file, and its content."
        if args.test and not args.command.strip():
            return "A test needs a command that runs it."
        if not args.test_path:
            return ""
        path = PurePosixPath(args.test_path)
        if path.is_absolute() or ".." in path.parts:
            return "test_path is a path in the folder."
        if self._order.base.get(str(path)) or _status(args.test_path, access) is not None:
            return f"{path} exists. Give the test a path at which there is no file."
        return ""

    async def try_proof(self, args: ReportFinding) -> Tried:
        """Run a proof and decide what it proves."""
        proof = Proof(command=args.command, test_path=args.test_path, test=args.test)
        if only_reads(args.command):
            return Tried("only_reads", proof, _UNPROVEN.format(why=_READS))
        added = {str(PurePosixPath(args.test_path)): PlacedFile(args.test.encode())} if args.test_path else {}
        after = await self._run(args.command, added)
        proof = replace(proof, exit_code=after.exit_code, output=_last_lines(after.output))
        shown = f"With the changes (exit code {after.exit_code}):\n{proof.output or '(no output)'}"
        if after.exit_code == 0:
            return Tried("passes", proof, f"{_PASSES}\n{shown}")
        if (why := _not_run(after)) is not None:
            return Tried("could_not_run", proof, f"{_UNPROVEN.format(why=why)}\n{shown}")
        before = await self._run(args.command, {**self._base(), **added})
        without: BaseRun = "passes"
        if before.exit_code != 0:
            why = self._failure_without(before, after)
            if why is not None:
                told = f"Without them (exit code {before.exit_code}):\n{_last_lines(before.output)}"
                outcome: ProofOutcome = "could_not_run" if why == _CANT else "fails_before"
                return Tried(outcome, proof, f"{_UNPROVEN.format(why=why)}\n{shown}\n{told}")
            if _is_misuse(after.output, args.test_path):
                return Tried("could_not_run", proof, f"{_UNPROVEN.format(why=_MISUSED)}\n{shown}")
            without = "is_new"
        again = await self._run(args.command, added)
        if again.exit_code == 0 or _not_run(again) is not None:
            return Tried("not_steady", proof, f"{_UNPROVEN.format(why=_UNSTEADY)}\n{shown}")
        how = "it passes without them" if without == "passes" else "without them there is nothing to run"
        return Tried("proven", replace(proof, without=without), f"Reported as proven: {how}.\n{shown}")

    def keep(self, finding: ReviewFinding) -> None:
        """Store a finding for the session that asked for the review."""
        with (self._place / _FOUND).open("a", encoding="utf-8") as file:
            file.write(f"{finding.model_dump_json()}\n")

    def _base(self) -> dict[str, PlacedFile]:
        order = self._order
        return {
            path: PlacedFile(
                (self._place / _FILES / name).read_bytes() if name else None,
                executable=path in order.executable,
                link=path in order.links,
            )
            for path, name in order.base.items()
        }

    async def _run(self, command: str, files: Mapping[str, PlacedFile]) -> CommandResult:
        async with self._copies.copy(changed=self._order.base, files=files) as copy:
            return await copy.run(command, seconds=self._order.seconds)

    def _failure_without(self, before: CommandResult, after: CommandResult) -> str | None:
        """Return why a failure without the changes refutes a proof; None if only something new is missing."""
        if before.exit_code is None or before.exit_code in _TIMED_OUT:
            return "without the changes it did not end in time"
        wrong = _CANT_RUN.search("\n".join(failing_lines(after.output)) + _last_lines(after.output))
        missing = [line for line in before.output.splitlines() if _ABSENT.search(line)]
        if not wrong and any(word in self._order.added for line in missing for word in _WORD.findall(line)):
            return None
        return _CANT if wrong else "it fails without the changes as well"


def _status(path: str, access: Access) -> FileStatus | None:
    try:
        return access.workspace.status(path)
    except ToolError:
        return None


_PASSES = (
    "Not reported: the command succeeds with the changes, so it shows no fault. If the fault is real, report "
    "it again with a proof that fails (does it run the code of this folder?); else drop it."
)
_UNPROVEN = (
    "Reported as unproven: {why}. To replace it, report the same file and line again with a better proof."
)
_CANT = "the proof itself can't run, with the changes or without them"
_MISUSED = "the test itself uses what is new in a way that it does not offer"
_READS = "the command only looks at files; a proof must run the code"
_UNSTEADY = "the second run with the changes ended otherwise than the first"


def _not_run(ended: CommandResult) -> str | None:
    """Return why a command with this end proves nothing, None if it failed in order."""
    if ended.exit_code is None:
        return f"it was stopped at a limit ({ended.stopped or 'unknown'})"
    if ended.exit_code in _TIMED_OUT:
        return "it did not end in time; to prove that something hangs, let a test fail after a few seconds"
    if ended.exit_code in CANT_START:
        return "the program can't be started"
    if ended.exit_code == _NO_TESTS and "no tests ran" in ended.output:
        return "it ran no tests"
    return None


def _is_misuse(output: str, test_path: str) -> bool:
    """Return whether the test itself, not the code that it calls, fails with an error of its own use.

    Where there is nothing to run without the changes, such an error says nothing about them.
    """
    places = [found[1] or found[2] for found in _FRAME.finditer(output)]
    if not places or not _MISUSE.search(output):
        return False
    return places[-1] == "<string>" or (bool(test_path) and Path(places[-1]).name == Path(test_path).name)


def _last_lines(output: str) -> str:
    lines = [cut(line, 300) for line in output.rstrip().split("\n") if line.strip()]
    return head_and_tail("\n".join(lines[-_SHOWN_LINES:]), _SHOWN)
