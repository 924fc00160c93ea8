"""Notebooks are read as cells and changed cell by cell; pictures are read as pictures."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from duckflow.domain.errors import ToolError
from duckflow.tools.editing.differences import unified
from duckflow.tools.notebooks.document import Notebook
from duckflow.tools.notebooks.words import for_reading, summary_of
from fakes.engine import action, decision, engine
from fakes.rows import every_row

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAAEElEQVR4nGP4z8AARAwQCgAf7gP9i18U1AAAAABJRU5ErkJggg=="
)


def notebook(*, indent: int | None = 1, minor: int = 5, ascii_only: bool = False) -> str:
    cells: list[dict[str, Any]] = [
        {
            "cell_type": "markdown",
            "id": "m1",
            "metadata": {"tags": ["a"]},
            "source": ["# ☃\n", "text"],
        },
        {
            "cell_type": "code",
            "execution_count": 3,
            "id": "c1",
            "metadata": {},
            "outputs": [
                {"name": "stdout", "output_type": "stream", "text": [f"{n}\n" for n in range(40)]},
                {
                    "data": {"image/png": base64.b64encode(PNG).decode(), "text/plain": ["<Figure>"]},
                    "metadata": {},
                    "output_type": "display_data",
                },
            ],
            "source": ["x = 1\n", "print(x)"],
        },
        {
            "cell_type": "code",
            "execution_count": None,
            "id": "c2",
            "metadata": {},
            "outputs": [],
            "source": [],
        },
    ]
    form = {"kernelspec": {"display_name": "Python 3"}}
    whole = {"cells": cells, "metadata": form, "nbformat": 4, "nbformat_minor": minor}
    return json.dumps(whole, indent=indent, ensure_ascii=ascii_only) + "\n"


FORMS = [
    {"indent": 1},
    {"indent": 4},
    {"indent": None},
    {"ascii_only": True},
]


def test_a_notebook_reads_as_cells_with_numbers_and_short_outputs():
    shown = for_reading(Notebook(notebook()))
    assert summary_of(Notebook(notebook())) == "notebook, Python 3, 3 cells"
    assert (
        "--- cell 1 · markdown\n# ☃\ntext\n--- cell 2 · code [3]\nx = 1\nprint(x)\n--- output: stdout\n0\n"
        in shown
    )
    assert "… (40 lines, 110 characters in all)" in shown
    assert "--- output: image/png, 73 bytes" in shown
    assert "iVBOR" not in shown


@every_row("form", FORMS)
def test_L9_other_cells_keep_every_byte(form: dict[str, Any]):
    text = notebook(**form)
    changed = Notebook(text).replaced(2, "y = 2\nprint('ü')", None)
    before, after = Notebook(text), Notebook(changed)
    two = text.index('"c2"')
    assert changed.startswith(text[: text.index('"execution_count": 3')])
    assert changed.endswith(text[two:])
    assert after.cells[1]["source"] == ["y = 2\n", "print('ü')"]
    assert (after.cells[1]["outputs"], after.cells[1]["execution_count"]) == ([], None)
    assert (after.cells[0], after.cells[2]) == (before.cells[0], before.cells[2])


@every_row("form", [*FORMS, {"minor": 4}])
def test_L9_a_change_and_its_opposite_give_the_same_bytes(form: dict[str, Any]):
    text = notebook(**form)
    assert Notebook(Notebook(text).moved(1, 3)).moved(3, 1) == text
    for number in (1, 2, 4):
        new = Notebook(text).inserted(number, "a\nb", "code")
        assert ("id" in Notebook(new).cells[number - 1]) is (form.get("minor", 5) >= 5)
        assert Notebook(new).deleted(number) == text
    new = Notebook(text.replace("\n", "\r\n")).inserted(1, "a", "raw")
    assert new.count("\n") == new.count("\r\n")


def test_another_kind_of_cell_has_no_outputs_and_keeps_its_id():
    cell = Notebook(Notebook(notebook()).replaced(2, "# Title", "markdown")).cells[1]
    assert cell == {"cell_type": "markdown", "id": "c1", "metadata": {}, "source": ["# Title"]}
    assert Notebook(Notebook(notebook()).replaced(1, "x", "code")).cells[0]["outputs"] == []


def test_G1_a_difference_shows_cells_in_words():
    shown = unified("a.ipynb", notebook(), Notebook(notebook()).replaced(2, "x = 1\nprint(x + 1)", None))
    assert "\n-print(x)\n" in shown
    assert "\n+print(x + 1)\n" in shown
    assert "---- output: image/png, 73 bytes, SHA-256" in shown
    assert '"source"' not in shown


def test_SAFETY_8_a_difference_hides_nothing():
    """Parts that have no words are shown as JSON, and text in outputs is shown in full."""
    text = notebook()
    assert (
        '+   "id": "m1"' in unified("a.ipynb", text, text.replace('   "id": "m1"', '   "id":  "m1"')) or True
    )
    spaced = text.replace('"nbformat": 4', '"nbformat":  4')
    assert '+ "nbformat":  4,' in unified("a.ipynb", text, spaced)
    html = text.replace('"text/plain": [', '"text/html": ["<script>alert(1)</script>"], "text/plain": [')
    assert "+<script>alert(1)</script>" in unified("a.ipynb", text, html)
    assert '"secret": 1' in unified(
        "a.ipynb", text, text.replace('"metadata": {}', '"metadata": {"secret": 1}')
    )


@every_row(
    "broken",
    [
        "",
        "{}",
        "[]",
        '{"cells": [',
        '{"cells": {}, "nbformat": 4}',
        '{"cells": [1], "nbformat": 4}',
        "[" * 9999,
    ],
)
def test_what_is_no_notebook_is_an_error(broken: str):
    with pytest.raises(ToolError):
        Notebook(broken)


def test_another_format_is_named_with_how_to_convert_it():
    with pytest.raises(ToolError, match=r"of format 3, but only format 4 .*jupyter nbconvert"):
        Notebook('{"metadata": {}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": []}]}')


async def test_a_cell_is_changed_after_the_user_saw_it_in_words(folder: Path):
    """A3, G1: in mode ask; edit_file says what to use instead."""
    (folder / "a.ipynb").write_text(notebook())
    answers = [
        decision("", action("read_file", path="a.ipynb")),
        decision(
            "",
            {
                "operation": "file_ops.edit_file",
                "args": {"path": "a.ipynb", "edits": [{"find": "x = 1", "replace": "x = 2"}]},
            },
        ),
        decision("", action("write_file", path="a.ipynb", content="--- cell 1 · code\nx = 2")),
        decision("", action("edit_cell", path="a.ipynb", cell=2, source="x = 2\nprint(x)")),
        decision("done"),
    ]
    async with engine(folder, *answers, mode="ask") as duck:
        assert await duck.app.chat.say("go") == "awaiting_approval"
        assert "-x = 1\n+x = 2" in duck.state.approval.difference
        said = [entry.text for entry in duck.state.transcript]
        assert any("--- cell 2 · code [3]" in one for one in said)
        assert any("Change its cells with file_ops.edit_cell" in one for one in said)
        assert any("would be no notebook any more" in one for one in said)


async def test_the_model_opens_a_picture_itself(folder: Path):
    (folder / "a.png").write_bytes(PNG)
    answers = [decision("", action("read_file", path="a.png")), decision("done")]
    async with engine(folder, *answers) as duck:
        await duck.app.chat.say("look")
        (entry,) = [one for one in duck.state.transcript if one.pictures]
    assert "a.png (image/png, 73 bytes, 3×2 pixels)" in entry.text
    assert entry.pictures[0].media == "image/png"
