"""M4: the catalogues have every key that the source uses, and no others.

A key counts as used if it occurs as a literal, or as the beginning of an f-string, anywhere in the source. As
an argument that must be a key, it must exist, and every slot must get a value.
"""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from duckflow.i18n.catalogue import entries, slots
from fakes.rows import Failures, every_row
from source_tree import PACKAGE, Module, called_name, modules, nodes

ERRORS = {"UserError", "UsageError", "ProviderError", "Unavailable", "BadAnswer"}
LOOK_UPS = {"text", "catalogue.text"}
KEY_ARGUMENT = {"ErrorReported", "SettingsNotice"}
SPEAKING = {"print", "echo", "secho"}


class Asked(NamedTuple):
    """A key in a place where only a key may be; `values` is None if they can't be read off."""

    where: str
    key: str
    values: frozenset[str] | None
    beginning: bool = False


def calls(module: Module) -> Iterator[ast.Call]:
    return (node for node in nodes(module.tree) if isinstance(node, ast.Call))


def asked_by(module: Module) -> Iterator[Asked]:
    for call in calls(module):
        name = called_name(call).rpartition(".")[2]
        names = [keyword.arg for keyword in call.keywords]
        values = None if None in names else frozenset(str(given) for given in names)
        where = f"{module.name}:{call.lineno}"
        if call.args and (name in ERRORS or called_name(call) in LOOK_UPS):
            yield from read(call.args[0], where, values)
        for keyword in call.keywords:
            plain_key = keyword.arg == "key" and name in KEY_ARGUMENT
            if plain_key or (keyword.arg or "").endswith("_key"):
                yield from read(keyword.value, where, None)


def read(node: ast.expr, where: str, values: frozenset[str] | None) -> Iterator[Asked]:
    match node:
        case ast.Constant(value=str(key)):
            yield Asked(where, key, values)
        case ast.JoinedStr(values=[ast.Constant(value=str(beginning)), *_]):
            yield Asked(where, beginning, None, beginning=True)
        case ast.IfExp(body=body, orelse=orelse):
            yield from read(body, where, values)
            yield from read(orelse, where, values)
        case _:
            return


ENGLISH = entries("en")


def test_every_key_asked_for_exists_and_gets_its_values():
    failures = Failures()
    for asked in (asked for module in modules() for asked in asked_by(module)):
        with failures.of(f"{asked.where} {asked.key}"):
            known = [
                key for key in ENGLISH if key == asked.key or (asked.beginning and key.startswith(asked.key))
            ]
            assert known, "no such text"
            if asked.values is not None and not asked.beginning:
                missing = slots(ENGLISH[asked.key]) - asked.values
                assert not missing, f"no value for {sorted(missing)}"
    failures.report()


def page_keys() -> tuple[set[str], set[str]]:
    """The texts the page of the web view asks for: whole keys, and beginnings of some."""
    source = "".join(file.read_text("utf-8") for file in (PACKAGE / "ui/web/static").glob("*.js"))
    whole = set(re.findall(r"\bt\('([a-z_.]+)'", source)) | set(re.findall(r"points\('([a-z_.]+)'", source))
    whole |= set(re.findall(r"'main' \? '(\w+)'", source)) | {"sessions", "details"}
    begun = re.findall(r"\bt\(`([a-z_.]+)\$", source)
    return {f"page.{key}" for key in whole}, {f"page.{key}" for key in begun}


def test_M7_every_text_of_the_page_exists():
    whole, begun = page_keys()
    assert len(whole) > 40
    assert not whole - set(ENGLISH)
    assert not {start for start in begun if not any(key.startswith(start) for key in ENGLISH)}


FLAGS = {"option": "help.option.", "argument": "help.argument."}
"""Functions of `cli/commands/flags.py` that add the beginning of a key."""


def flag_keys(module: Module) -> Iterator[str]:
    """The keys of the help texts that a module declares with those functions."""
    for call in calls(module):
        given = [str(one.value) for one in call.args if isinstance(one, ast.Constant)]
        if given and (beginning := FLAGS.get(called_name(call).removeprefix("flags."))):
            yield beginning + given[-1].replace("-", "_")


def test_every_key_in_the_catalogue_is_used():
    literals, beginnings = page_keys()
    literals |= {key for module in modules("cli") for key in flag_keys(module)}
    literals |= set(
        re.findall(r'say\("(setup\.\w+)"', (PACKAGE.parents[1] / "scripts/environment.py").read_text("utf-8"))
    )
    for module in modules():
        for node in nodes(module.tree):
            match node:
                case ast.Constant(value=str(value)):
                    literals.add(value)
                case ast.JoinedStr(values=[ast.Constant(value=str(value)), ast.FormattedValue(), *_]) if (
                    "." in value
                ):
                    beginnings.add(value)
                case _:
                    pass
    beginnings -= set(FLAGS.values())
    commands = {key for key in ENGLISH if key.startswith("help.") and key.count(".") == 1}
    beginnings -= {"help."}  # followed by the name of a command, never by more
    unused = {
        key
        for key in ENGLISH
        if key not in literals and key not in commands and not key.startswith(tuple(beginnings))
    }
    assert not unused, sorted(unused)


def spoken_literals(module: Module) -> Iterator[str]:
    """Words written into a call that prints them, alone or inside an f-string."""
    for call in calls(module):
        if called_name(call).rpartition(".")[2] not in SPEAKING:
            continue
        for argument in call.args:
            parts = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
            for part in parts:
                if isinstance(part, ast.Constant) and any(one.isalpha() for one in str(part.value)):
                    yield f"{module.name}:{call.lineno} {part.value!r}"


def test_M4_nothing_is_said_to_the_user_past_the_catalogues():
    said = [literal for module in modules() for literal in spoken_literals(module)]
    assert not said


@every_row(
    "line",
    [
        "print('hello')",
        "typer.echo(f'{x} done')",
        "console.print('[bold]hi[/]', x)",
        "self.console.print('さあ')",
    ],
)
def test_a_literal_said_to_the_user_would_be_found(line):
    made = Module(modules()[0].path, line, ast.parse(line))
    assert list(spoken_literals(made))


def test_a_key_in_every_place_that_takes_one_would_be_found():
    source = """
raise UsageError("a.one", path=p)
raise errors.Unavailable("a.two", **values)
show(catalogue.text("a.three"), prompt_key="a.four")
ErrorReported(key="a.five")
text(f"a.{kind}")
text("a.six" if x else "a.seven")
"""
    found = list(asked_by(Module(modules()[0].path, source, ast.parse(source))))
    assert sorted(asked.key.removeprefix("a.") for asked in found) == [
        "", "five", "four", "one", "seven", "six", "three", "two"
    ]  # fmt: skip
    assert {asked.key: asked.values for asked in found}["a.one"] == {"path"}
