"""Assess the risk of an action by rules, not by a model (G2). Each finding has a fixed risk."""

import re
from collections.abc import Iterable, Iterator

from pydantic import Field

from duckflow.domain.files.changes import ToolEffect
from duckflow.domain.frozen import Frozen
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.questions.approval import Risk
from duckflow.safety.paths import fold
from duckflow.safety.policy.command_risk import Places, read_risks
from duckflow.safety.policy.homoglyphs import is_lookalike
from duckflow.safety.policy.protected import Protection
from duckflow.safety.redaction.patterns import lower, patterns_for

HIGHER: dict[Risk, int] = {"low": 0, "medium": 1, "high": 2, "forbidden": 3}

_FINDINGS: dict[Risk, str] = {
    "low": "read write consent looks",
    "medium": "delete foreign fetch runs built dropped",
    "high": """
        outside protected executable lookalike
        many_files large shebang pipe_to_shell private_key secret
        network removes discards rights installs inline_code secrets environment unknown_program unclear
        mass_deletion git_program repository mask overlooked conflict unseen unkept""",
    "forbidden": "own secret_place",
}
RISKS: dict[str, Risk] = {finding: risk for risk, found in _FINDINGS.items() for finding in found.split()}
"""Risk of each finding. The risk of an action is the highest one of its findings."""

_OPAQUE = frozenset(("inline_code", "unknown_program", "unclear", "environment"))
"""Findings about commands whose words do not say what they do."""

EXECUTABLE = lazy_regex(
    r".*\.(sh|bash|zsh|fish|ksh|csh|command|ps1|psm1|bat|cmd|exe|com|msi|scr|vbs|desktop|appimage|run|so|dylib|dll"
    r"|pyd|jar|app|action|workflow|scpt|reg|hta|wsf|pif|cpl|msp|jse|vbe|wsh|sct|lnk|scf|ps1xml|cdxml|tool|terminal"
    r"|inetloc|fileloc|flatpakref)"
)
"""Names of files that a system or a program runs."""

_SHEBANG = lazy_regex(r"^#!\s*/", re.MULTILINE)
_FETCH = r"\b(?:curl|wget|fetch|iwr|invoke-webrequest|irm|invoke-restmethod|aria2c|lwp-request)\b"
_OPTIONS = r"(?:\s{1,99}-\S{1,99}){0,5}\s{1,99}"
_PATH = r"(?:[\w.~/-]{0,99}/)?"
_RUN = rf"\s{{0,99}}(?:sudo{_OPTIONS})?(?:{_PATH}env{_OPTIONS})?{_PATH}"
_SHELL = r"(?:ba|z|da|k|fi|c|tc|a)?sh\b"
_LANGUAGE = r"\b(?:python[\d.]{0,6}|perl|ruby|node|php)"
_BARE = rf"{_LANGUAGE}(?:\s{{1,99}}-)?\s{{0,99}}(?:$|[;&|)\"'`])"
"""Interpreters that run what they read, which they only do without the name of a module or file."""

_READ = r"[\"']?(?:<\(|\$\(|`)\s{0,99}"
_STAGES = r"[^\n|;&]{0,200}(?:\|[^\n|;&]{0,80}){0,3}"
_FORMS = (
    rf"{_FETCH}{_STAGES}[|;&]{{1,9}}{_RUN}{_SHELL}",
    rf"{_FETCH}{_STAGES}\|{_RUN}{_BARE}",
    rf"\b(?:{_SHELL}|{_LANGUAGE})\s{{1,99}}(?:-[a-z]{{1,9}}\s{{1,99}})?{_READ}{_FETCH}",
    rf"(?:\b(?:eval|source)|(?:^|[\s;&|])\.)\s{{1,99}}{_READ}{_FETCH}",
    rf"\biex\s{{0,99}}\({{0,2}}\s{{0,99}}(?:{_FETCH}|new-object\s{{1,99}}\S{{0,40}}webclient)",
    r"\|\s{0,99}iex\b",
    rf"base64\s{{1,99}}(?:-d|--decode|-D)[^\n|]{{0,200}}\|{_RUN}{_SHELL}",
)
_PIPE_TO_SHELL = lazy_regex("|".join(_FORMS), re.IGNORECASE | re.MULTILINE)
_CONTINUED = lazy_regex(r"[ \t]{0,99}[\\`]\r?\n[ \t]{0,99}")
"""End of a line that continues in the next one."""

_FETCHING = ("curl", "wget", "fetch", "iwr", "invoke-", "irm", "iex", "base64", "aria2c", "lwp-request")
"""Words without which that pattern matches nothing. Looking for them takes a hundredth of its time."""

_PRIVATE_KEY = lazy_regex(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY|PuTTY-User-Key-File|AGE-SECRET-KEY-1")


class Assessment(Frozen):
    """Risk of an action, and the reasons for it."""

    risk: Risk
    reasons: tuple[str, ...] = ()
    by_path: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Only for the effects of a command: the reasons why a path is risky, by path."""
    in_git: dict[str, bytes] = Field(default_factory=dict)
    """Contents of risky files that git would write at a later checkout, by path."""


class ActionFacts(Frozen):
    """Facts about an action, known before it runs."""

    effect: ToolEffect
    paths: tuple[str, ...] = ()
    protection: Protection = "none"
    outside: bool = False
    secret_place: bool = False
    """True for a path outside the workspace where keys and the like are kept."""
    executable: bool = False
    """True if one of the files has an executable bit."""
    written: str = ""
    """New text that would be written to files."""
    around: tuple[str, str] = ("", "")
    """Text before and after the change, with the lines around it, which new ones may complete."""
    many_files: bool = False
    command: str | None = None
    network: bool = False
    network_open: bool = False
    """True if the user lets every command use the network."""
    contained: bool = False
    """True if the user has declared the whole machine to be the sandbox."""
    findings: tuple[str, ...] = ()
    """Findings of other rules."""


def assess(facts: ActionFacts, places: Places, large_bytes: int) -> Assessment:
    """Return the risk of an action."""
    found = [*facts.findings, *_by_place(facts), *_by_content(facts, large_bytes)]
    if facts.effect == "execute":
        found += read_risks(facts.command or "", places)
    else:
        found.append(facts.effect)
    if facts.network:
        found.append("network")
    if facts.network_open:
        found = [one if one != "network" else "runs" for one in found]
    if facts.contained:
        found = ["runs" if one in _OPAQUE else one for one in found]
    return rate(found)


def rate(found: Iterable[str]) -> Assessment:
    """Return the highest risk of the findings, and the findings above low risk. Unknown findings are high."""
    risks: dict[str, Risk] = {finding: RISKS.get(finding, "high") for finding in found}
    risk = max(risks.values(), key=lambda one: HIGHER[one]) if risks else "low"
    return Assessment(risk=risk, reasons=tuple(one for one, rated in risks.items() if rated != "low"))


def _by_place(facts: ActionFacts) -> Iterator[str]:
    if facts.protection == "denied":
        yield "own"
    if facts.secret_place:
        yield "secret_place"
    if facts.outside:
        yield "outside"
    if facts.protection == "asks" or (facts.protection == "guarded" and facts.effect != "read"):
        yield "protected"
    changes = facts.effect in ("write", "delete")
    if changes and (facts.executable or any(EXECUTABLE.fullmatch(fold(path)) for path in facts.paths)):
        yield "executable"
    if any(is_lookalike(path) for path in facts.paths):
        yield "lookalike"
    if facts.many_files:
        yield "many_files"


def _by_content(facts: ActionFacts, large_bytes: int) -> Iterator[str]:
    written = facts.written
    if not written:
        return
    if len(written.encode("utf-8", "surrogatepass")) > large_bytes:
        yield "large"
    if _SHEBANG.search(written):
        yield "shebang"
    yield from content_reasons(written)
    before, after = facts.around
    yield from completed_reasons(before, after)


def completed_reasons(before: str, after: str) -> Iterator[str]:
    """Yield reasons to ask that lie in a text as a whole, but not in the text before the change."""
    known = set(content_reasons(before))
    yield from (one for one in content_reasons(after) if one not in known)


def content_reasons(written: str) -> Iterator[str]:
    """Yield reasons to ask that lie in new text itself, wherever it is written."""
    lowered = lower(written)
    if any(word in lowered for word in _FETCHING) and _PIPE_TO_SHELL.search(_CONTINUED.sub(" ", written)):
        yield "pipe_to_shell"
    if _PRIVATE_KEY.search(written):
        yield "private_key"
    secrets = (one for one in patterns_for(written) if one.kind != "private-key")
    if any(any(pattern.find(written, lowered)) for pattern in secrets):
        yield "secret"


def added_text(difference: str) -> str:
    """Return the lines that a diff adds, without the plus signs."""
    return "\n".join(line[1:] for line in changed_lines(difference) if line.startswith("+"))


def text_around(difference: str) -> tuple[str, str]:
    """Return the text that a diff shows, before and after the change."""
    lines = _lines_of(difference)
    before, after = ("\n".join(one[1:] for one in lines if one.startswith((" ", sign))) for sign in "-+")
    return before, after


def changed_lines(difference: str) -> list[str]:
    """Return the added and removed lines of a diff, with their signs and without the file names."""
    return [line for line in _lines_of(difference) if line.startswith(("+", "-"))]


def _lines_of(difference: str) -> list[str]:
    lines = difference.split("\n")
    start = next((place for place, line in enumerate(lines) if line.startswith("@@")), len(lines))
    return lines[start:]
