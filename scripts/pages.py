"""Writes the generated tables in docs/: settings, events and providers.

.venv/bin/python scripts/pages.py            update the tables
.venv/bin/python scripts/pages.py --check    list outdated pages, and fail if there are any
"""

import argparse
import ast
import inspect
import itertools
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic.fields import FieldInfo

from duckflow.config.keys import choices
from duckflow.config.project import PROJECT_MAY_SET
from duckflow.config.settings import Settings
from duckflow.domain.events import Event
from duckflow.domain.frozen import Frozen
from duckflow.llm.endpoints import PROVIDERS

DOCS = Path(__file__).resolve().parent.parent / "docs"
BEGIN, END = "<!-- {name}: written by scripts/pages.py -->", "<!-- end of {name} -->"
LONGEST = 60
_ID = r"(?:(?:[A-Z]+ )?[A-O]\d+|SAFETY \d+)"
IDS = re.compile(rf" \({_ID}(?:, {_ID})*\)")
"""References to docs/contract.md, removed from user documentation because only developers need them."""
BOUNDS = (("ge", "≥ {}"), ("gt", "> {}"), ("le", "≤ {}"), ("lt", "< {}"))


def settings_tables() -> str:
    """Return one table for each section, in the order of the models."""
    return "\n".join(_sections(Settings, ""))


def _sections(model: type[Frozen], prefix: str) -> Iterator[str]:
    meanings = _lines_under_fields(model)
    inner: list[tuple[str, type[Frozen]]] = []
    rows: list[str] = []
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Frozen):
            inner.append((f"{prefix}{name}", field.annotation))
        else:
            rows.append(_row(f"{prefix}{name}", name, field, meanings[name]))
    if rows:
        title = f"### `[{prefix.rstrip('.')}]`" if prefix else "### At the top"
        about = (inspect.getdoc(model) or "").partition("\n")[0]
        yield "\n".join(
            [title, "", about, "", "| setting | default | values | meaning |", "|---|---|---|---|", *rows, ""]
        )
    for key, part in inner:
        yield from _sections(part, f"{key}.")


def _row(key: str, name: str, field: FieldInfo, meaning: str) -> str:
    note = " *(a project may set it too)*" if key in PROJECT_MAY_SET else ""
    return f"| `{name}` | {_default(field)} | {_values(field)} | {meaning}{note} |"


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "–"
    written = json.dumps(value, ensure_ascii=False, default=str)
    return f"`{written}`" if len(written) <= LONGEST else "see `duckflow config show`"


def _values(field: FieldInfo) -> str:
    possible = choices(field.annotation)
    if possible:
        return ", ".join(f"`{json.dumps(value)}`" for value in possible)
    bounds = [shown.format(value) for name, shown in BOUNDS if (value := _bound(field, name)) is not None]
    return ", ".join(bounds) or _kind(field.annotation)


def _bound(field: FieldInfo, name: str) -> object:
    """Return a bound of a numeric field, set on the field itself or inside an optional type."""
    found = [getattr(one, name, None) for one in (*field.metadata, *_inner_metadata(field.annotation))]
    return next((value for value in found if value is not None), None)


def _inner_metadata(annotation: Any) -> Iterator[object]:  # noqa: ANN401 - types have no type
    for part in get_args(annotation):
        for meta in getattr(part, "__metadata__", ()):
            yield from getattr(meta, "metadata", (meta,))


def _kind(annotation: Any) -> str:  # noqa: ANN401 - as above
    shown = str(annotation)
    if "Path" in shown:
        return "a path"
    if "dict" in shown:
        return "a table"
    return "a list" if "tuple" in shown else "text"


def _lines_under_fields(model: type[Frozen]) -> dict[str, str]:
    """Return the docstring below each field, which explains the setting."""
    body = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0].body
    found: dict[str, str] = {}
    for field, below in itertools.pairwise(body):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[field.target.id] = " ".join(str(below.value.value).split())
    return found


def events_table() -> str:
    """Return a table of all events with their `type`, meaning and fields."""
    rows = ["| type | when | fields |", "|---|---|---|"]
    for event in get_args(get_args(Event)[0]):
        about = IDS.sub("", (inspect.getdoc(event) or "").partition("\n")[0])
        hidden = ("type", "exchange")
        fields = ", ".join(f"`{name}`" for name in event.model_fields if name not in hidden)
        rows.append(f"| `{event.model_fields['type'].default}` | {about} | {fields} |")
    return "\n".join(rows)


def providers_table() -> str:
    """Return a table of all providers, in the order in which their keys are looked up."""
    rows = ["| provider | key | address | model if none is named |", "|---|---|---|---|"]
    for provider in PROVIDERS.values():
        mark = " ¹" if provider.wire == "pydantic_ai" else ""
        keys = " or ".join(f"`{variable}`" for variable in provider.key_variables)
        needed = keys if provider.needs_key else f"({keys})"
        address = f"`{provider.address_variable}`" if provider.address_variable else "–"
        model = f"`{provider.default_model}`" if provider.default_model else "–"
        rows.append(f"| `{provider.name}`{mark} | {needed} | {address} | {model} |")
    return "\n".join(rows)


PARTS: tuple[tuple[str, str, Callable[[], str]], ...] = (
    ("configuration.md", "settings", settings_tables),
    ("headless.md", "events", events_table),
    ("models.md", "providers", providers_table),
)


def renewed(page: str, name: str, part: str) -> str:
    """Replace the text between the two marks of a page."""
    begin, end = BEGIN.format(name=name), END.format(name=name)
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n\n{part.strip()}\n\n{end}{after}"


def main() -> int:
    """Update or check every page. Return 1 if `--check` found an outdated one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing")
    parser.add_argument("--docs", type=Path, default=DOCS, help="the folder of the pages")
    given = parser.parse_args()
    old = 0
    for file, name, make in PARTS:
        path: Path = given.docs / file
        page = path.read_text("utf-8")
        fresh = renewed(page, name, make())
        if fresh == page:
            continue
        old = 1
        if given.check:
            sys.stderr.write(f"{file} is out of date: run `make pages`.\n")
        else:
            path.write_text(fresh, "utf-8")
    return old if given.check else 0


if __name__ == "__main__":
    sys.exit(main())
