"""Tools that check files of a language, and which of them apply: the project's own tools first (J10)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from shlex import quote
from typing import Any

from duckflow.domain.frozen import Frozen

_PYTHON = (".py", ".pyi")
_SCRIPT = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".mts", ".cts")
_TYPES = (".ts", ".tsx", ".mts", ".cts")
_OWN_FOLDERS: Mapping[tuple[str, ...], str] = {
    _PYTHON: ".venv/bin",
    _SCRIPT: "node_modules/.bin",
    _TYPES: "node_modules/.bin",
}
_RUFF_SETTINGS = ("ruff.toml", ".ruff.toml", "pyproject.toml:[tool.ruff")
_MYPY_SETTINGS = ("mypy.ini", ".mypy.ini", "pyproject.toml:[tool.mypy", "setup.cfg:[mypy")
_ESLINT_SETTINGS = (
    *(f"eslint.config.{end}" for end in ("js", "mjs", "cjs", "ts")),
    *(f".eslintrc{end}" for end in ("", ".js", ".cjs", ".json", ".yml")),
    'package.json:"eslintConfig"',
)
_GO, _CARGO_FOLDER = "GOFLAGS=-mod=mod GOCACHE=$TMPDIR/go", "CARGO_TARGET_DIR=$TMPDIR/target"
_CARGO = "check --offline --quiet --message-format=short"


class Checker(Frozen):
    """One tool for one kind of file."""

    name: str
    suffixes: tuple[str, ...]
    arguments: str
    """Arguments; {path} is the file, or all files if the tool takes several."""
    program: str = ""
    """Program to look for; defaults to the first word of the name."""
    set_up_by: tuple[str, ...] = ()
    """Signs in the top folder that the project uses it: a file, or `file:text in it`. Empty: a fallback."""
    quick: bool = True
    """True if it is fast enough to report with each edit."""
    findings: tuple[int, ...] = (1,)
    """Exit codes that mean findings; others mean that the tool could not run."""
    environment: str = ""
    own_folder: str = ""
    """Folder in which the project has its own copy of the program."""

    @property
    def wanted(self) -> str:
        """The program to look for."""
        return self.program or self.name.partition(" ")[0]


def _row(
    name: str,
    suffixes: tuple[str, ...],
    arguments: str,
    *set_up_by: str,
    quick: bool = False,
    findings: tuple[int, ...] = (1,),
    environment: str = "",
) -> Checker:
    return Checker(
        name=name,
        suffixes=suffixes,
        arguments=arguments,
        set_up_by=set_up_by,
        quick=quick,
        findings=findings,
        environment=environment,
        own_folder=_OWN_FOLDERS.get(suffixes, ""),
    )


_RUFF = "check --no-cache --quiet --output-format=concise --select=E9,F63,F7,F82"
_MYPY = "--cache-dir=/dev/null --no-error-summary --no-color-output"
_TY = "check --quiet --output-format=concise"

CHECKERS: tuple[Checker, ...] = (
    _row("ruff", _PYTHON, f"{_RUFF} --no-fix {{path}}", *_RUFF_SETTINGS, quick=True),
    _row("flake8", _PYTHON, "{path}", ".flake8", "setup.cfg:[flake8]", "tox.ini:[flake8]", quick=True),
    _row("mypy", _PYTHON, f"{_MYPY} {{path}}", *_MYPY_SETTINGS),
    _row("basedpyright", _PYTHON, "{path}", "pyproject.toml:[tool.basedpyright"),
    _row("pyright", _PYTHON, "{path}", "pyrightconfig.json", "pyproject.toml:[tool.pyright"),
    _row("ty", _PYTHON, f"{_TY} {{path}}", "ty.toml", "pyproject.toml:[tool.ty"),
    _row("eslint", _SCRIPT, "--no-color {path}", *_ESLINT_SETTINGS, quick=True),
    _row("biome", _SCRIPT, "lint --colors=off {path}", "biome.json", "biome.jsonc", quick=True),
    _row("tsc", _TYPES, "--noEmit --pretty false --incremental false -p .", "tsconfig.json", findings=(1, 2)),
    _row("go vet", (".go",), "vet ./...", "go.mod", findings=(1, 2), environment=_GO),
    _row("cargo check", (".rs",), _CARGO, "Cargo.toml", findings=(101,), environment=_CARGO_FOLDER),
    _row("ruff", _PYTHON, f"{_RUFF} --isolated {{path}}", quick=True),
    _row("ty", _PYTHON, f"{_TY} --ignore=unresolved-import {{path}}"),
    _row("node --check", (".js", ".mjs", ".cjs"), "--check {path}", quick=True),
    _row("gofmt", (".go",), "-e -l {path} >/dev/null", quick=True, findings=(2,)),
    _row("gcc", (".c", ".h"), "-fsyntax-only -Wall -w {path}", quick=True),
    _row("g++", (".cc", ".cpp", ".cxx", ".hpp", ".hh"), "-fsyntax-only -w {path}", quick=True),
    _row("bash -n", (".sh", ".bash"), "-n {path}", quick=True, findings=(1, 2)),
    _row("ruby -c", (".rb",), "-c {path}", quick=True),
    _row("php -l", (".php",), "-l {path}", quick=True, findings=(255,)),
    _row("luac -p", (".lua",), "-p {path}", quick=True),
    _row("javac", (".java",), "-proc:none -Xlint:none -d $TMPDIR/java {path}"),
    _row("xmllint", (".xml", ".svg"), "--noout --nonet {path}", quick=True),
)
"""All tools. Rows without `set_up_by` are used if the project has configured no tool."""

_ONE_FILE = ("node --check", "bash -n", "ruby -c", "php -l")


def suffix_of(path: str) -> str:
    """Return the file suffix in lower case."""
    return PurePosixPath(path).suffix.lower()


def known(path: str, table: Sequence[Checker] = CHECKERS) -> bool:
    """Return whether any tool applies to this kind of file."""
    return any(suffix_of(path) in checker.suffixes for checker in table)


def with_rows(more: Iterable[Checker], own: Mapping[str, Any]) -> tuple[Checker, ...]:
    """Return the user's rows, then `more`, then the built-in rows whose names neither of them has."""
    rows = [Checker.model_validate({"name": name, **row}) for name, row in own.items()]
    added = [*rows, *(one for one in more if one.name not in own)]
    names = {one.name for one in added}
    return (*added, *(one for one in CHECKERS if one.name not in names))


def configurations(table: Sequence[Checker] = CHECKERS) -> frozenset[str]:
    """Return the names of the files in the top folder that configure checks."""
    return frozenset(sign.partition(":")[0] for checker in table for sign in checker.set_up_by)


def chosen(
    paths: Iterable[str], top: Mapping[str, str], *, quick: bool, table: Sequence[Checker] = CHECKERS
) -> tuple[Checker, ...]:
    """Return the tools to use for these files, judging by the configuration files in the top folder."""
    suffixes = {suffix_of(path) for path in paths}
    fitting = [one for one in table if suffixes.intersection(one.suffixes) and one.quick == quick]
    signs = [(one, sign.partition(":")) for one in fitting for sign in one.set_up_by]
    own = tuple(dict.fromkeys(one for one, (name, _, text) in signs if name in top and text in top[name]))
    names = {one.wanted for one in own}
    others = [one for one in fitting if not one.set_up_by and one.wanted not in names]
    return (*own, *others)


def commands(
    checker: Checker, paths: Iterable[str], find: Callable[[str], str | None]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the commands that run a tool, each with its files. Empty if the tool is not installed."""
    fitting = tuple(path for path in paths if suffix_of(path) in checker.suffixes)
    outside = find(checker.wanted) or ""
    own = f"{checker.own_folder}/{checker.wanted}" if checker.own_folder and checker.set_up_by else ""
    if not fitting or not (outside or own):
        return ()
    program = f'P={quote(own)}; [ -x "$P" ] || P={quote(outside)}; [ -n "$P" ] || exit 127; '
    groups = [(path,) for path in fitting] if checker.name in _ONE_FILE else [fitting]
    # The prefix keeps names that begin with a dash from becoming options.
    listed = [" ".join(quote(f"./{path}") for path in group) for group in groups]
    arguments = [checker.arguments.replace("{path}", paths) for paths in listed]
    start = f'{program}{checker.environment} "$P"'
    return tuple((f"{start} {each}", group) for each, group in zip(arguments, groups, strict=True))
