"""The file operations of one workspace, in the order a prompt lists them."""

from duckflow.safety.files.workspace import Workspace
from duckflow.tools.catalogue import Tool
from duckflow.tools.files.listing import list_tool
from duckflow.tools.files.reading import read_tool
from duckflow.tools.files.removing import delete_tool, move_tool
from duckflow.tools.files.writing import edit_tool, write_tool
from duckflow.tools.outline.outline import outline_tool
from duckflow.tools.searching.ripgrep import find_ripgrep
from duckflow.tools.searching.search import search_tool


def file_tools(workspace: Workspace) -> tuple[Tool, ...]:
    """All of them."""
    ripgrep = find_ripgrep(workspace.root)
    return (
        read_tool(workspace),
        write_tool(workspace),
        edit_tool(workspace),
        delete_tool(workspace),
        move_tool(workspace),
        list_tool(workspace, ripgrep),
        search_tool(workspace, ripgrep),
        outline_tool(workspace),
    )
