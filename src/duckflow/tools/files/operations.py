"""The file operations, in the order a prompt lists them."""

from pathlib import Path

from duckflow.tools.catalogue import Tool
from duckflow.tools.files.listing import list_tool
from duckflow.tools.files.reading import READ_FILE
from duckflow.tools.files.removing import DELETE_FILE, MOVE_FILE
from duckflow.tools.files.writing import EDIT_FILE, WRITE_FILE
from duckflow.tools.outline.outline import OUTLINE
from duckflow.tools.searching.search import search_tool


def file_tools(ripgrep: Path | None) -> tuple[Tool, ...]:
    """All of them; `ripgrep` is the program that lists and searches, None if there is none."""
    return (
        READ_FILE,
        WRITE_FILE,
        EDIT_FILE,
        DELETE_FILE,
        MOVE_FILE,
        list_tool(ripgrep),
        search_tool(ripgrep),
        OUTLINE,
    )
