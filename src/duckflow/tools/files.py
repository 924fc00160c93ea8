"""The file operations of one workspace, in the order a prompt lists them."""

from duckflow.safety.files.workspace import Workspace
from duckflow.tools.catalogue import Tool
from duckflow.tools.listing import list_tool
from duckflow.tools.outlining import outline_tool
from duckflow.tools.reading import read_tool
from duckflow.tools.removing import delete_tool, move_tool
from duckflow.tools.ripgrep import find_ripgrep
from duckflow.tools.search import search_tool
from duckflow.tools.writing import edit_tool, write_tool


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
