"""Tools reach files only through the workspace and their access to it (SAFETY 3)."""

import ast
import re
from pathlib import Path

import duckflow.tools
from fakes.rows import every_row

SOURCES = sorted(Path(duckflow.tools.__file__).parent.glob("**/*.py"))
BANNED = {
    *("open", "fdopen", "read_text", "write_text", "read_bytes", "write_bytes", "unlink", "rename", "mkdir"),
    *(
        "rmdir",
        "rmtree",
        "touch",
        "iterdir",
        "glob",
        "rglob",
        "symlink_to",
        "hardlink_to",
        "chmod",
        "readlink",
    ),
}
PERMITTED = {"os.fsdecode", "os.fsencode", "os.killpg", "os.access", "os.path.realpath", "shutil.which"}


def banned_calls(source: str) -> list[str]:
    calls = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    names = [ast.unparse(called) for called in calls]
    return [
        name
        for name in names
        if name not in PERMITTED
        and not name.startswith(("workspace.", "access."))
        and (re.fullmatch(r"(os|shutil)\.[\w.]+", name) or name.rpartition(".")[2] in BANNED)
    ]


@every_row("path", SOURCES, ids=lambda path: path.name)
def test_no_tool_opens_files_by_itself(path):
    assert banned_calls(path.read_text("utf-8")) == []


@every_row(
    "source", ["open('x')", "Path('x').read_text()", "os.open('x', 0)", "shutil.rmtree(p)", "path.unlink()"]
)
def test_the_ban_sees_what_it_should(source):
    assert banned_calls(source)
