"""L2: memory.remember keeps a short, visible line without secrets, by an event and not by itself."""

import pytest

from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.domain.events import MemoryKept
from duckflow.tools.catalogue import Catalogue
from duckflow.tools.memory import memory_tools
from fakes.rows import every_row


def hide(text: str) -> str:
    return text.replace("hunter2", "[secret]")


CATALOGUE = Catalogue(memory_tools("/w", hide))


def validate(**args: object):
    return CATALOGUE.validate(Action.model_validate({"operation": "memory.remember", "args": args}))


async def test_L2_what_is_kept_is_what_the_user_is_shown():
    tool, args = validate(text="Use\n tabs \u202e here")
    assert (await tool.propose(args, None)).difference == "Use tabs here\n"
    result = await tool.run(args, None)
    assert result.events == (MemoryKept(kind="preference", text="Use tabs here", workspace="/w"),)
    assert result.changed == ()


async def test_L2_what_counts_everywhere_has_no_folder():
    tool, args = validate(text="Use tabs", everywhere=True)
    assert [event.workspace for event in (await tool.run(args, None)).events] == [""]


@every_row(
    ("text", "problem"), [("", "is empty"), (" \u200b\n", "is empty"), ("x" * 301, "300 characters at most")]
)
def test_L2_nothing_empty_and_nothing_long_is_taken(text, problem):
    with pytest.raises(ToolError, match=problem):
        validate(text=text)


async def test_L2_a_secret_is_not_kept():
    tool, args = validate(text="the password is hunter2")
    with pytest.raises(ToolError, match="secret"):
        await tool.run(args, None)


def test_L2_the_operation_asks_in_every_mode_and_says_so_briefly():
    (tool,) = CATALOGUE.tools
    assert tool.effect == "consent"
    assert tool.line == (
        "memory.remember(text, everywhere?): keep what the user wants known in later sessions"
    )
