"""The catalogue: operations found by name, and the answer to a call that does not fit."""

# ruff: noqa: E501 - a snapshot is as long as what it holds

import pytest
from inline_snapshot import snapshot

from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.tools.catalogue import Catalogue, Tool, propose_nothing
from duckflow.tools.toolset import file_tools


@pytest.fixture
def catalogue():
    return Catalogue(file_tools(None))


def made_up(operation):
    return Tool(
        operation=operation,
        args=Frozen,
        summary="",
        effect="read",
        run=propose_nothing,
    )


def test_an_operation_is_found_in_full_and_by_its_bare_name_A2(catalogue):
    assert catalogue.get("file_ops.write_file").operation == "file_ops.write_file"
    assert catalogue.get(" write_file ").operation == "file_ops.write_file"


def test_a_bare_name_that_two_families_have_is_asked_back():
    catalogue = Catalogue([made_up("a.run"), made_up("b.run")])
    with pytest.raises(ToolError, match=r"one of several: a\.run, b\.run"):
        catalogue.get("run")


def test_two_tools_of_one_name_are_a_fault_of_ours():
    with pytest.raises(ValueError, match="same operation"):
        Catalogue([made_up("a.run"), made_up("a.run")])


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [
        ("file_ops.write_fil", "file_ops.write_file"),
        ("fileops.edit_file", "file_ops.edit_file"),
        ("tools.read_file", "file_ops.read_file"),
        ("readfile", "file_ops.read_file"),
    ],
)
def test_an_unknown_operation_names_the_nearest_A6(catalogue, wrong, nearest):
    with pytest.raises(ToolError, match=rf"no operation {wrong}\. The nearest is {nearest}"):
        catalogue.get(wrong)


def test_an_operation_like_no_other_gets_the_list(catalogue):
    with pytest.raises(ToolError, match=r"There are: file_ops\.read_file, "):
        catalogue.get("launch_rocket")


def validated(catalogue, operation, **args):
    try:
        return catalogue.validate(Action(operation=operation, args=args))[1]
    except ToolError as error:
        return str(error)


WRONG = [
    ("read_file", {}, "`path` is missing."),
    (
        "read_file",
        {"pth": "a", "start": "x", "end": 0},
        "`path` is missing; `start`: must be a whole number, not 'x'; `end`: must be at least 1, not 0; "
        "`pth` is not a field; did you mean `path`?",
    ),
    (
        "read_file",
        {"path": None, "start": 1.5},
        "`path` is missing; `start`: must be a whole number, not 1.5.",
    ),
    ("write_file", {"path": "a", "content": {"a": 1}}, "`content`: must be a string, not {'a': 1}."),
    (
        "edit_file",
        {"path": "a", "edits": [{"find": "x"}, "y"]},
        "`edits[0].replace` is missing; `edits[1]`: must be an object, not 'y'.",
    ),
    ("edit_file", {"path": "a", "edits": []}, "`edits` must have 1 to 100 items, not 0."),
    ("edit_file", {"path": "a", "edits": "x"}, "`edits[0]`: must be an object, not 'x'."),
    (
        "edit_file",
        {"path": "a", "edits": [{"find": "x", "replace": "", "old": 1}]},
        "`edits[0].old` is not a field; known are: find, replace, all.",
    ),
    (
        "search",
        {"pattern": "a\0b", "glob": ""},
        "`pattern` may not contain NUL or half a surrogate pair; `glob` is empty.",
    ),
    ("search", {"pattern": "a" * 1001}, "`pattern` has 1001 characters, 1000 at most."),
]


@pytest.mark.parametrize(("operation", "args", "problems"), WRONG)
def test_what_is_wrong_with_arguments_is_said_all_at_once_A6(catalogue, operation, args, problems):
    said = validated(catalogue, operation, **args)
    assert said.startswith(f"file_ops.{operation}(")
    assert said.endswith(f") can't be called so: {problems}")


def test_null_is_as_good_as_left_out(catalogue):
    assert validated(catalogue, "list_files", path=None, pattern=None, depth=None).path == "."


def test_no_schema_has_limits_that_blow_up_a_grammar(catalogue):
    for tool in catalogue.tools:
        shown = str(tool.schema())
        assert not any(word in shown for word in ("maxLength", "minLength", "maxItems", "null", "title"))


def test_one_edit_needs_no_list(catalogue):
    args = validated(catalogue, "edit_file", path="a", edits={"find": "x", "replace": "y"})
    assert args.edits[0].find == "x"


def test_numbers_in_quotes_are_numbers(catalogue):
    assert validated(catalogue, "read_file", path="a", start="3").start == 3


def test_what_the_prompt_says_of_each_operation(catalogue):
    assert tuple(tool.line for tool in catalogue.tools) == snapshot(
        (
            "file_ops.read_file(path, start?, end?): the file at path, or its lines (PDF: pages) start to end",
            "file_ops.write_file(path, content): make or replace the file at path with content",
            "file_ops.edit_file(path, edits): change the file at path; edits: {find, replace} each, where find occurs once, or all: true",
            "file_ops.delete_file(path): remove the file at path",
            "file_ops.move_file(path, to): move or rename the file at path; to: its new path",
            "file_ops.edit_cell(path, cell, change?, source?, kind?, to?): one cell of the notebook at path; change: replace or insert (source, kind), delete, move (to)",
            "file_ops.list_files(path?, pattern?, depth?): files below path that match pattern, depth folders deep",
            "file_ops.search(pattern, path?, glob?, context?): lines that match the regex pattern in path and glob, with context lines",
            "file_ops.outline(path): what path defines, by line",
        )
    )


def test_every_argument_is_named_in_the_summary_and_described(catalogue):
    for tool in catalogue.tools:
        for name, field in tool.args.model_fields.items():
            assert name in tool.summary, tool.operation
            assert field.description, tool.operation
        assert "\n" not in tool.line


def test_the_schemas_of_the_file_tools(catalogue):
    assert {tool.operation: (tool.effect, tool.schema()) for tool in catalogue.tools} == snapshot(
        {
            "file_ops.read_file": (
                "read",
                {
                    "additionalProperties": False,
                    "properties": {
                        "path": {"description": "the file, relative to the workspace", "type": "string"},
                        "start": {
                            "default": 1,
                            "description": "first line (PDF: page), from 1",
                            "minimum": 1,
                            "type": "integer",
                        },
                        "end": {"description": "last line (PDF: page)", "minimum": 1, "type": "integer"},
                    },
                    "required": ["path"],
                    "type": "object",
                },
            ),
            "file_ops.write_file": (
                "write",
                {
                    "additionalProperties": False,
                    "properties": {
                        "path": {"description": "the file, relative to the workspace", "type": "string"},
                        "content": {"description": "its whole new content", "type": "string"},
                    },
                    "required": ["path", "content"],
                    "type": "object",
                },
            ),
            "file_ops.edit_file": (
                "write",
                {
                    "$defs": {
                        "Edit": {
                            "additionalProperties": False,
                            "description": "One change, of one place or of all.",
                            "properties": {
                                "find": {
                                    "description": "text that is in the file now, once; whole lines are safest",
                                    "type": "string",
                                },
                                "replace": {"description": "text to put in its place", "type": "string"},
                                "all": {
                                    "default": False,
                                    "description": "whether to replace it in every place it is in",
                                    "type": "boolean",
                                },
                            },
                            "required": ["find", "replace"],
                            "type": "object",
                        }
                    },
                    "additionalProperties": False,
                    "properties": {
                        "path": {"description": "the file, relative to the workspace", "type": "string"},
                        "edits": {
                            "description": "changes, made in this order, all or none",
                            "items": {"$ref": "#/$defs/Edit"},
                            "minItems": 1,
                            "type": "array",
                        },
                    },
                    "required": ["path", "edits"],
                    "type": "object",
                },
            ),
            "file_ops.delete_file": (
                "delete",
                {
                    "additionalProperties": False,
                    "properties": {
                        "path": {"description": "the file, relative to the workspace", "type": "string"}
                    },
                    "required": ["path"],
                    "type": "object",
                },
            ),
            "file_ops.move_file": (
                "write",
                {
                    "additionalProperties": False,
                    "properties": {
                        "path": {"description": "the file, relative to the workspace", "type": "string"},
                        "to": {"description": "its new path; nothing may be there yet", "type": "string"},
                    },
                    "required": ["path", "to"],
                    "type": "object",
                },
            ),
            "file_ops.edit_cell": (
                "write",
                {
                    "additionalProperties": False,
                    "properties": {
                        "path": {"description": "the file, relative to the workspace", "type": "string"},
                        "cell": {
                            "description": "its number from 1; insert: the number of the new cell",
                            "minimum": 1,
                            "type": "integer",
                        },
                        "change": {
                            "default": "replace",
                            "description": "the change",
                            "enum": ["replace", "insert", "delete", "move"],
                            "type": "string",
                        },
                        "source": {"description": "replace, insert: its whole new text", "type": "string"},
                        "kind": {
                            "description": "replace: by default as before; insert: code",
                            "enum": ["code", "markdown", "raw"],
                            "type": "string",
                        },
                        "to": {"description": "move: its new number", "minimum": 1, "type": "integer"},
                    },
                    "required": ["path", "cell"],
                    "type": "object",
                },
            ),
            "file_ops.list_files": (
                "read",
                {
                    "additionalProperties": False,
                    "properties": {
                        "path": {
                            "default": ".",
                            "description": "the folder, relative to the workspace",
                            "type": "string",
                        },
                        "pattern": {
                            "description": "only files that match, such as *.py or src/**/*.ts",
                            "type": "string",
                        },
                        "depth": {
                            "description": "levels of folders to show; 3 unless told",
                            "minimum": 1,
                            "type": "integer",
                        },
                    },
                    "type": "object",
                },
            ),
            "file_ops.search": (
                "read",
                {
                    "additionalProperties": False,
                    "properties": {
                        "pattern": {
                            "description": "a regular expression, matched line by line",
                            "type": "string",
                        },
                        "path": {
                            "default": ".",
                            "description": "the folder or file to search, relative to the workspace",
                            "type": "string",
                        },
                        "glob": {"description": "only files that match, such as *.py", "type": "string"},
                        "context": {
                            "default": 0,
                            "description": "lines to show around each match",
                            "minimum": 0,
                            "type": "integer",
                        },
                    },
                    "required": ["pattern"],
                    "type": "object",
                },
            ),
            "file_ops.outline": (
                "read",
                {
                    "additionalProperties": False,
                    "properties": {
                        "path": {"description": "the file, relative to the workspace", "type": "string"}
                    },
                    "required": ["path"],
                    "type": "object",
                },
            ),
        }
    )
