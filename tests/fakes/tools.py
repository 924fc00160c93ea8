"""The operations of a plain session, to be named and checked; none of them can be run."""

from typing import Any

from duckflow.tools.catalogue import Catalogue
from duckflow.tools.memory import memory_tools
from duckflow.tools.plans.plan_tool import plan_tools
from duckflow.tools.plans.task_lists import task_tools
from duckflow.tools.shell import background_tools, shell_tools
from duckflow.tools.toolset import file_tools


def plain_catalogue() -> Catalogue:
    """All operations of a session without servers, skills and plugins."""
    absent: Any = None
    background = Catalogue((*file_tools(None), *shell_tools(absent, print), *background_tools(absent)))
    plans = plan_tools(absent, absent)
    lists = task_tools(absent, absent, absent, background)
    return Catalogue((*background.fixed, *plans, *lists, *memory_tools("/w", str)))
