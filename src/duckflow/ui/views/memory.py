"""Long-term memory as the user reads it."""

from collections.abc import Sequence

from duckflow.domain.events import MemoryKept
from duckflow.domain.memory import Memory
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import on_one_line


def memory_lines(memories: Sequence[Memory], here: str | None = None) -> list[str]:
    """A line each; the folder it counts in is named unless that is `here`."""
    if not memories:
        return [text("memory.none")]
    wide = max(len(str(one.id)) for one in memories)
    return [_line(one, wide, here) for one in memories]


def learned_line(event: MemoryKept) -> str | None:
    """What was learned unasked; of the rest the user was asked."""
    return None if event.kind == "preference" else text("memory.learned", text=on_one_line(event.text))


def _line(one: Memory, wide: int, here: str | None) -> str:
    when = one.kept.astimezone().strftime("%Y-%m-%d")
    kind = text(f"memory.kind.{one.kind}")
    where = on_one_line(one.workspace) if one.workspace else text("memory.everywhere")
    place = "" if one.workspace and one.workspace == here else f" [{where}]"
    return f"{one.id:>{wide}}  {when}  {kind}{place}: {on_one_line(one.text)}"
