"""Deletions by a small model: what the user's words do not ask for is asked about (SAFETY 24)."""

from collections.abc import Awaitable, Callable, Mapping

from duckflow.domain.patterns import lazy_regex
from duckflow.domain.state import AgentState
from duckflow.safety.policy.policy import PolicyVerdict

UNASKED = PolicyVerdict(
    "ask", "the user's words name no deletion, and a small model may misread them", "deletion"
)

_WORDS = lazy_regex(
    r"\b(?:delet\w*|remov\w*|eras\w*|wip(?:e|es|ing)|purg\w*|discard\w*|trash|unlink|prun\w*|uninstall\w*|rm|rmdir)\b"
    r"|\b(?:clean|clear|tidy)\w*(?: (?:up|out|away|the|all|this|my|old))"
    r"|\b(?:get|getting) rid of\b|\bthrow\w* (?:\w+ ){0,4}(?:away|out)\b|\bdrop (?:the|all|this|these|my)\b"
    r"|削除|消去|消し|消す|消せ|除去|取り除|捨て|破棄|片付け|片づけ|かたづけ|掃除|クリーンアップ|整理して"
)
_NOT = lazy_regex(
    r"\b(?:do not|don'?t|never|without|not|no)(?: (?:to|ever|even|any|the|please))* "
    r"(?:delet\w*|remov\w*|eras\w*|wip\w*|discard\w*)\b"
    r"|(?:削除|消去|除去|破棄)(?:せず|しない|は?不要|禁止)|(?:消さ|捨て|取り除か)(?:ず|ない)"
)


class Deletions:
    """Decides whether a deletion must be asked about although the mode allows it."""

    def __init__(self) -> None:
        self.is_small: Callable[[], Awaitable[bool]] = _never
        """Returns whether the working model is a small one."""

    async def unasked(self, state: AgentState) -> bool:
        """Return whether a small model works on a request whose words ask for no deletion."""
        said = state.request.objective.request if state.request else ""
        return not asks_to_delete(said) and await self.is_small()


def asks_to_delete(said: str) -> bool:
    """Return whether the user's words ask for a deletion. A word alone is no request."""
    lowered = _NOT.sub(" ", said.casefold()).strip()
    bare = " " not in lowered and _WORDS.fullmatch(lowered) is not None
    return not bare and _WORDS.search(lowered) is not None


def made_here(state: AgentState) -> Mapping[str, frozenset[str]]:
    """Return files that this session created, with the contents that it gave them.

    Deleting such a content loses nothing of the user's. A file that it only moved is not one of them.
    """
    changes = [change for one in state.change_sets for change in one.changes]
    known = {change.before for change in changes if change.before is not None}
    made = {one.path for one in changes if one.before is None and one.after not in known}
    found: dict[str, set[str]] = {}
    for one in changes:
        if one.path in made and one.after is not None:
            found.setdefault(one.path, set()).add(one.after)
    return {path: frozenset(contents) for path, contents in found.items()}


async def _never() -> bool:
    return False
