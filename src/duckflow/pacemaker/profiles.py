"""What each kind of task is given to begin with (SPEC I1)."""

from collections.abc import Mapping
from typing import get_args

from duckflow.config.pacing import BaseLoops
from duckflow.domain.decision import TaskProfile

PROFILES: tuple[TaskProfile, ...] = get_args(TaskProfile)


def loops_by_profile(table: BaseLoops) -> Mapping[TaskProfile | None, int]:
    """Base loops of every profile; None is a task of no known kind."""
    return {
        "simple_question": table.simple_question,
        "code_analysis": table.code_analysis,
        "file_operation": table.file_operation,
        "complex_reasoning": table.complex_reasoning,
        "multi_step_task": table.multi_step_task,
        "general_chat": table.general_chat,
        "creative_writing": table.creative_writing,
        "debugging": table.debugging,
        "research": table.research,
        None: table.unknown,
    }
