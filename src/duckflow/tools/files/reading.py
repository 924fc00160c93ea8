"""Tool file_ops.read_file: a text file, or some of its lines."""

from collections.abc import Generator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial

from pydantic import Field

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.prompts.shortening import lines_within
from duckflow.safety.files.access import Access
from duckflow.safety.files.encoding import NAMES, EncodedText
from duckflow.safety.files.listing import SKIPPED
from duckflow.safety.files.outside import read_outside
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.paths import printable
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.catalogue import Tool, ToolResult
from duckflow.tools.editing.text_form import has_crlf, plain

LINES_SHOWN = 1000
LETTERS_SHOWN = 40_000
_FILES_COMPARED, _NAMES_SUGGESTED = 5_000, 3


class OneFile(Frozen):
    """Arguments of an operation on one file."""

    path: str = Field(description="the file, relative to the workspace")


class ReadFile(OneFile):
    """Arguments of file_ops.read_file."""

    start: int = Field(default=1, ge=1, description="first line, from 1")
    end: int | None = Field(default=None, ge=1, description="last line")


def _read(args: ReadFile, access: Access) -> ToolResult:
    outside = access.outside
    if outside is not None:
        return ToolResult(text=excerpt_of(outside, EncodedText(read_outside(outside)), args), path=outside)
    path = access.workspace.relative(args.path)
    with suggesting(access.workspace, path):
        file = access.workspace.read_encoded(path)
    return ToolResult(text=excerpt_of(path, file, args), path=path, digest=file.digest)


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


def _nearest(workspace: Workspace, path: str) -> list[str]:
    found = workspace.list(depth=8, limit=_FILES_COMPARED, skip=SKIPPED)
    files = [entry.path for entry in found.entries if entry.kind == "file"]
    name = path.rpartition("/")[2]
    same = [file for file in files if file.rpartition("/")[2] == name]
    close = same or get_close_matches(path, files, n=_NAMES_SUGGESTED, cutoff=0.7)
    return [printable(file) for file in close[:_NAMES_SUGGESTED]]


READ_FILE = Tool(
    operation="file_ops.read_file",
    args=ReadFile,
    summary="the file at path, or its lines start to end",
    effect="read",
    run=partial(run_in_thread, _read),
    targets=lambda args: (args.path,),
)
