"""PDFs are read by page: as text, and as pictures where there is no text (SAFETY 15)."""

import subprocess
import sys
import zlib
from importlib import util
from pathlib import Path
from typing import cast

import pytest

from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.domain.model import Picture
from duckflow.domain.pictures import media_of, size_of
from duckflow.evaluation.checks import Checks
from duckflow.loops.thinking.small_models import WorkspaceLook
from duckflow.prompts.evidence import evidence_in
from duckflow.safety.files.access import Permit
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.sandbox.child import seccomp
from duckflow.safety.syscalls import LINUX
from duckflow.tools.catalogue import Catalogue, ToolResult
from duckflow.tools.pdf import pages
from duckflow.tools.toolset import file_tools
from fakes.access import access_to
from fakes.engine import action, decision, engine

needs_parser = pytest.mark.skipif(util.find_spec(pages.PACKAGE) is None, reason="the extra pdf is missing")

SCAN = "0.2 0.4 0.6 rg 20 20 100 50 re f"


def said(*lines: str, top: int = 260) -> str:
    shown = "".join(f"({line}) Tj 0 -14 Td " for line in lines)
    return f"BT /F1 12 Tf 20 {top} Td {shown}ET"


def pdf(*contents: str, size: str = "0 0 300 300", more: bytes = b"") -> bytes:
    """Return a PDF with a page for each content stream."""
    count = len(contents)
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(count))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {count}>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for n, content in enumerate(contents):
        stream = zlib.compress(content.encode())
        form = f"/MediaBox[{size}]/Resources<</Font<</F1 3 0 R>>>>/Contents {5 + 2 * n} 0 R"
        objects.append(f"<</Type/Page/Parent 2 0 R{form}>>".encode())
        objects.append(b"<</Filter/FlateDecode/Length %d>>stream\n%s\nendstream" % (len(stream), stream))
    whole, places = b"%PDF-1.7\n", list[int]()
    for number, content in enumerate(objects, 1):
        places.append(len(whole))
        whole += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    rows = b"".join(b"%010d 00000 n \n" % place for place in places)
    size_row = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    trailer = b"trailer<</Size %d/Root 1 0 R%s>>" % (len(objects) + 1, more)
    return whole + size_row + rows + trailer + b"\nstartxref\n%d\n%%%%EOF\n" % len(whole)


class Reader:
    """Reads files of one folder with the tool, and keeps its pictures."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pictures: dict[str, bytes] = {}

    def keep_picture(self, name: str, media: str, data: bytes) -> Picture:
        self.pictures[name] = data
        return Picture(path=name, media=media, digest=str(len(self.pictures)))

    async def read(self, data: bytes, name: str = "a.pdf", **args: int) -> ToolResult:
        (self.folder / name).write_bytes(data)
        tool, parsed = Catalogue(file_tools(None)).validate(
            Action(operation="read_file", args={"path": name, **args})
        )
        access = access_to(self.folder)
        access.keep_picture = self.keep_picture
        return await tool.run(parsed, access)


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


@needs_parser
async def test_pages_are_text_and_say_how_to_read_on(reader: Reader):
    """N: start and end are pages."""
    whole = pdf(*(said(f"Text of page number {n}, with enough letters", "second line") for n in range(1, 31)))
    first = await reader.read(whole)
    assert first.text.startswith(
        "a.pdf (PDF, pages 1-20 of 30; start and end are pages; read on with start=21;"
    )
    assert "\n--- page 20\nText of page number 20, with enough letters\nsecond line" in first.text
    assert first.pictures == ()
    second = await reader.read(whole, start=21, end=22)
    assert "(PDF, pages 21-22 of 30; start and end are pages; with" in second.text
    assert "--- page 21\n" in second.text
    assert "--- page 23\n" not in second.text
    assert (await reader.read(whole, start=31)).text == "a.pdf (PDF with 30 pages, none from 31 on)"
    with pytest.raises(ToolError, match=r"end \(2\) comes before start \(3\)"):
        await reader.read(whole, start=3, end=2)


@needs_parser
async def test_pages_without_text_are_pictures_and_one_page_alone_too(reader: Reader):
    whole = pdf(said("A page with text, which is not a scan"), "", *[SCAN] * 6)
    result = await reader.read(whole)
    assert "--- page 2 (empty)\n--- page 3 (no text, attached as a picture)" in result.text
    assert "--- page 7 (no text; start=7, end=7 shows it as a picture)" in result.text
    assert list(reader.pictures) == [f"a.pdf page {n}" for n in (3, 4, 5, 6)]
    shown = reader.pictures["a.pdf page 3"]
    assert (media_of(shown), size_of(shown)) == ("image/png", (600, 600))
    alone = await reader.read(whole, start=1, end=1)
    assert "--- page 1 (also attached as a picture)\nA page with text" in alone.text
    assert [one.path for one in alone.pictures] == ["a.pdf page 1"]


@needs_parser
async def test_SAFETY_15_long_pages_and_large_pages_are_limited(reader: Reader):
    line = "x" * 200
    form = "0 0 3000 5000"
    result = await reader.read(pdf(*[said(*[line] * 120, top=4900)] * 4, size=form))
    assert "pages 1-1 of 4; start and end are pages; read on with start=2" in result.text
    result = await reader.read(pdf(said(*[line] * 300, top=4900), size=form))
    assert "--- page 1 (cut, it has 60" in result.text
    assert len(result.text) < 41_000
    await reader.read(pdf(SCAN, size="0 0 14000 90000"))
    width, height = size_of(reader.pictures["a.pdf page 1"]) or (0, 0)
    assert 0 < width * height <= 1_300_000
    assert height <= 4000


@needs_parser
async def test_what_can_not_be_read_is_one_sentence(reader: Reader):
    standard = b"<</Filter/Standard/V 2/R 3/Length 128/P -4/O<" + b"00" * 32 + b">/U<" + b"11" * 32 + b">>>"
    locked = pdf(SCAN, more=b"/ID[<00><00>]/Encrypt " + standard)
    for data, key in ((locked, "reason.pdf_locked"), (b"%PDF-1.7\nbroken", "reason.pdf_unreadable")):
        with pytest.raises(ToolError) as error:
            await reader.read(data)
        assert error.value.key == key


@needs_parser
async def test_the_pages_before_a_crash_are_shown(reader: Reader, monkeypatch, tmp_path: Path):
    program = tmp_path / "crash.py"
    lines = '{"pages": 3}\n{"number": 1, "text": "first"}\n{"number": 2, "te'
    program.write_text(f"print({lines!r}, end='')\nraise SystemExit(9)\n")
    monkeypatch.setattr(pages, "_PROGRAM", program)
    result = await reader.read(pdf(SCAN))
    assert "pages 1-1 of 3; start and end are pages; read on with start=2" in result.text
    assert "--- page 1\nfirst" in result.text


async def test_a_text_with_the_name_of_a_pdf_is_a_text(reader: Reader):
    assert (await reader.read(b"version 1\n")).text == "a.pdf (lines 1-1 of 1)\nversion 1"


async def test_without_the_package_the_error_says_what_to_install(reader: Reader, monkeypatch):
    monkeypatch.setattr(pages, "PACKAGE", "a_package_that_is_missing")
    with pytest.raises(ToolError, match=r"pip install 'duckflow\[pdf\]'") as error:
        await reader.read(pdf(SCAN))
    assert error.value.key == "reason.pdf_package"


ATTEMPTS = """
import os, resource, socket, sys
from duckflow.tools.pdf import page_reader
page_reader.load_everything()
page_reader.confine()
attempts = {
    "open": lambda: os.open("/etc/hosts", os.O_RDONLY),
    "write": lambda: os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY),
    "remove": lambda: os.unlink(__file__),
    "socket": socket.socket,
    "fork": os.fork,
    "exec": lambda: os.execv("/bin/true", ["true"]),
    "kill": lambda: os.kill(os.getppid(), 0),
    "more": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (99, 99)),
}
worked = []
for name, attempt in attempts.items():
    try:
        attempt()
        worked.append(name)
    except (OSError, ValueError):
        pass
print("worked:", worked)
"""


@needs_parser
@pytest.mark.skipif(not (LINUX and seccomp.supported()), reason="needs a filter for system calls")
def test_SAFETY_15_the_parser_can_only_compute(tmp_path: Path):
    target = tmp_path / "written"
    ended = subprocess.run(
        [sys.executable, "-I", "-c", ATTEMPTS.replace("__file__", repr(str(tmp_path))), str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.stdout, ended.returncode) == ("worked: []\n", 0), ended.stderr
    assert not target.exists()


@needs_parser
async def test_the_model_opens_a_pdf_itself(folder: Path):
    (folder / "a.pdf").write_bytes(pdf(said("The answer is forty-two, says this page"), SCAN))
    answers = [decision("", action("read_file", path="a.pdf")), decision("done")]
    async with engine(folder, *answers) as duck:
        await duck.app.chat.say("look")
        (entry,) = [one for one in duck.state.transcript if one.pictures]
    assert "The answer is forty-two" in entry.text
    assert [one.path for one in entry.pictures] == ["a.pdf page 2"]


@needs_parser
async def test_an_evaluator_learns_that_the_model_saw_pictures(folder: Path):
    (folder / "a.pdf").write_bytes(pdf(SCAN))
    answers = [decision("", action("read_file", path="a.pdf")), decision("done")]
    async with engine(folder, *answers) as duck:
        await duck.app.chat.say("look")
        (found,) = evidence_in(duck.state)
    assert found.text.endswith(
        "(With pictures. If you can't see them, accept what the reply reads from them.)"
    )


@needs_parser
async def test_G3_an_approved_pdf_outside_the_folder_is_read(tmp_path: Path):
    folder = tmp_path / "folder"
    folder.mkdir()
    outside = tmp_path / "b.pdf"
    outside.write_bytes(pdf(said("A page outside of the folder")))
    tool, parsed = Catalogue(file_tools(None)).validate(
        Action(operation="read_file", args={"path": str(outside)})
    )
    result = await tool.run(parsed, access_to(folder, Permit({}, outside=str(outside))))
    assert "A page outside of the folder" in result.text


async def test_small_models_read_the_first_pages(tmp_path: Path):
    (tmp_path / "a.pdf").write_bytes(pdf(SCAN))
    look = WorkspaceLook(Workspace(tmp_path), cast("Checks", None))
    (read,) = await look.reads(["a.pdf"])
    assert read.args == {"path": "a.pdf", "end": 2}
