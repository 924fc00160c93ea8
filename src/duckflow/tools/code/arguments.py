"""Arguments of the tools for code."""

from pydantic import Field

from duckflow.domain.frozen import Frozen

APPLY = "code.apply_rename"
MOST_FILES = 500
"""Largest number of files that a rename may change."""


class FindName(Frozen):
    """Arguments of code.definition and code.references."""

    symbol: str = Field(description="a name, such as run or Class.run")
    path: str | None = Field(default=None, description="file that defines or uses it; a.py:12 for a line")


class Rename(FindName):
    """Arguments of code.rename."""

    to: str = Field(description="its new name", pattern=r"^[^\W\d]\w*$")


class CheckFile(Frozen):
    """Arguments of code.diagnostics."""

    path: str


class Replacement(Frozen):
    """New text for a part of a file, as indexes of characters."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)
    text: str


class RenamedFile(Frozen):
    """Changes in one file, whose content has this SHA-256, and its new path if it moves."""

    path: str
    before: str
    replacements: tuple[Replacement, ...] = ()
    to: str = ""


class ApplyRename(Frozen):
    """Arguments of code.apply_rename."""

    symbol: str
    to: str
    files: tuple[RenamedFile, ...] = Field(min_length=1, max_length=MOST_FILES)
