"""Tool file_ops.read_file: a text file, or some of its lines; also pictures, notebooks and PDFs."""

from collections.abc import Generator
from contextlib import contextmanager
from difflib import get_close_matches

from pydantic import Field

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.pictures import LARGEST, media_of, size_of
from duckflow.prompts.shortening import lines_within
from duckflow.safety.files.access import Access
from duckflow.safety.files.encoding import NAMES, EncodedText, decode
from duckflow.safety.files.listing import SKIPPED
from duckflow.safety.files.outside import read_outside, read_outside_bytes
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.paths import printable
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.catalogue import Tool, ToolResult
from duckflow.tools.editing.text_form import has_crlf, plain
from duckflow.tools.notebooks.document import Notebook
from duckflow.tools.notebooks.words import for_reading, is_notebook, summary_of

NOTEBOOK_CAP = 20_000_000
"""Largest notebook, in bytes, that is read or changed. Pictures in its outputs make it large."""
PDF_CAP = 50_000_000
"""Largest PDF, in bytes, that is read."""
_PDF_HEAD = 1024
"""First bytes of a file, among which a PDF says that it is one."""
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
LINES_SHOWN = 1000
LETTERS_SHOWN = 40_000
_FILES_COMPARED, _NAMES_SUGGESTED = 5_000, 3
_USUAL = lazy_regex(
    r"[._].*|.*\.(?:md|rst|txt|toml|lock|ya?ml|json|cfg|ini)|(?:index|main|mod|lib|app|setup|conftest|types|utils)\.\w+"
    r"|[A-Z]\w*",
)
"""Names of files of which many projects have several."""


class OneFile(Frozen):
    """Arguments of an operation on one file."""

    path: str = Field(description="the file, relative to the workspace")


class ReadFile(OneFile):
    """Arguments of file_ops.read_file."""

    start: int = Field(default=1, ge=1, description="first line (PDF: page), from 1")
    end: int | None = Field(default=None, ge=1, description="last line (PDF: page)")


async def _run(args: ReadFile, access: Access) -> ToolResult:
    if is_pdf(args.path):
        path, data = await run_in_thread(_pdf, args, access)
        if b"%PDF-" in data[:_PDF_HEAD]:
            from duckflow.tools.pdf.pages import read_pages  # noqa: PLC0415 - rarely needed

            return await read_pages(path, data, args.start, args.end, access)
    return await run_in_thread(_read, args, access)


def is_pdf(path: str) -> bool:
    """Return whether a file has the name of a PDF."""
    return path.casefold().endswith(".pdf")


def _pdf(args: ReadFile, access: Access) -> tuple[str, bytes]:
    path = access.outside or access.workspace.relative(args.path)
    return path, _bytes(path, PDF_CAP, access)


def _read(args: ReadFile, access: Access) -> ToolResult:
    outside = access.outside
    path = access.workspace.relative(args.path) if outside is None else outside
    data = _special(path, access)
    if data is not None and (media := media_of(data)):
        return _picture(path, media, data, access)
    file = decode(path, data) if data is not None else None
    if outside is not None:
        return ToolResult(text=excerpt_of(path, file or EncodedText(read_outside(path)), args), path=path)
    if file is None:
        with suggesting(access.workspace, path):
            file = access.workspace.read_encoded(path)
    shown, notes = _cells(file) if is_notebook(path) else (file, ())
    return ToolResult(text=excerpt_of(path, shown, args, *notes), path=path, digest=file.digest)


def _special(path: str, access: Access) -> bytes | None:
    """Return the bytes of a picture or notebook, which may be larger than a text; None for other files."""
    cap = NOTEBOOK_CAP if is_notebook(path) else LARGEST
    if not is_notebook(path) and not path.casefold().endswith(_PICTURES):
        return None
    return _bytes(path, cap, access)


def _bytes(path: str, cap: int, access: Access) -> bytes:
    if access.outside is not None:
        return read_outside_bytes(path, cap)
    with suggesting(access.workspace, path):
        return access.workspace.read_bytes(path, cap=cap)


def _picture(path: str, media: str, data: bytes, access: Access) -> ToolResult:
    size = size_of(data)
    pixels = f", {size[0]}×{size[1]} pixels" if size else ""
    kept = access.keep_picture(path, media, data)
    return ToolResult(text=f"{path} ({media}, {len(data):,} bytes{pixels})", path=path, pictures=(kept,))


def _cells(file: EncodedText) -> tuple[EncodedText, tuple[str, ...]]:
    """Return a notebook as text to show, with notes about it. A broken notebook is shown as it is."""
    try:
        notebook = Notebook(file.text)
    except ToolError as exc:
        return file, (str(exc),)
    notes = (summary_of(notebook), "change cells with file_ops.edit_cell")
    return EncodedText(for_reading(notebook) + "\n"), notes


def excerpt_of(path: str, file: EncodedText, args: ReadFile, *more: str) -> str:
    """Return the requested lines, under a heading with notes about them."""
    lines = plain(file.text).split("\n")
    if not lines[-1]:
        lines.pop()
    if not lines:
        return f"{path} (empty)"
    last = min(args.end or len(lines), len(lines))
    if args.start > len(lines):  # no error, because that would stop the actions after this one
        return f"{path} ({len(lines)} lines, none from {args.start} on)"
    if last < args.start:
        raise ToolError(f"{path}: end ({last}) comes before start ({args.start}).")
    shown = lines[args.start - 1 : last][:LINES_SHOWN]
    shown = shown[: max(lines_within(shown, LETTERS_SHOWN), 1)]
    upto = args.start + len(shown) - 1
    notes = [f"lines {args.start}-{upto} of {len(lines)}", *more]
    if has_crlf(file.text):
        notes.append("CRLF line ends, kept on writing")
    if file.codec != "utf-8":
        notes.append(f"{NAMES[file.codec]}, kept on writing")
    if upto < last:
        notes.append(f"read on with start={upto + 1}")
    if len(shown[-1]) > LETTERS_SHOWN:
        notes.append(f"line {upto} is cut, it has {len(shown[-1])} characters")
        shown[-1] = shown[-1][:LETTERS_SHOWN]
    return f"{path} ({'; '.join(notes)})\n" + "\n".join(shown)


@contextmanager
def suggesting(workspace: Workspace, path: str) -> Generator[None]:
    """Add similar paths that exist to a ToolError about a missing file."""
    try:
        yield
    except ToolError as exc:
        close = _nearest(workspace, path) if isinstance(exc.__cause__, FileNotFoundError) else []
        if not close:
            raise
        raise exc.reworded(f"{exc} There is: {', '.join(close)}.") from exc


def namesakes(workspace: Workspace, path: str) -> list[str]:
    """Return files of the same name in other folders, unless many projects have several with this name."""
    name = path.rpartition("/")[2]
    if _USUAL.fullmatch(name):
        return []
    same = _of_name(name, _files(workspace))
    return [printable(file) for file in same if file != path][:_NAMES_SUGGESTED]


def _files(workspace: Workspace) -> list[str]:
    found = workspace.list(depth=8, limit=_FILES_COMPARED, skip=SKIPPED)
    return [entry.path for entry in found.entries if entry.kind == "file"]


def _of_name(name: str, files: list[str]) -> list[str]:
    return [file for file in files if file.rpartition("/")[2] == name]


def _nearest(workspace: Workspace, path: str) -> list[str]:
    files = _files(workspace)
    close = _of_name(path.rpartition("/")[2], files) or get_close_matches(
        path, files, n=_NAMES_SUGGESTED, cutoff=0.7
    )
    return [printable(file) for file in close[:_NAMES_SUGGESTED]]


READ_FILE = Tool(
    operation="file_ops.read_file",
    args=ReadFile,
    summary="the file at path, or its lines (PDF: pages) start to end",
    effect="read",
    run=_run,
    targets=lambda args: (args.path,),
)
