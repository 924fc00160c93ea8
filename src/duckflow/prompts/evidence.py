"""Evidence as text for a prompt: labelled with ids, with checks preferred, and as much as fits."""

import re
from collections.abc import Collection, Sequence

from duckflow.domain.patterns import lazy_regex
from duckflow.domain.state import AgentState, TranscriptEntry
from duckflow.domain.work.objective import Evidence, ShownPicture, Support
from duckflow.llm.tokens import estimate_tokens
from duckflow.prompts.shortening import fair_shares, shorten

_ID_AT_START = lazy_regex(r"^(\s*)\[(e\d+|reply)\]", re.MULTILINE)
_FAR = 400
"""Number of recent transcript entries to consider, so that verdicts in long sessions stay cheap."""

_PICTURED = "\n(With pictures. If you can't see them, accept what the reply reads from them.)"
"""Note for models that get only text. Without it, they doubt what only a picture shows."""

_PICTURES = 6
"""Largest number of pictures for a verdict."""

_LINE = 8

_LEAST = 40


def evidence_in(state: AgentState) -> tuple[Evidence, ...]:
    """Return recent evidence from the session's transcript, oldest first."""
    changed = state.request.changed if state.request else ()
    return tuple(
        Evidence(
            evidence_id=entry.evidence_id,
            text=entry.text.removeprefix(f"[{entry.evidence_id}] ") + (_PICTURED if entry.pictures else ""),
            current=not entry.stale,
            supports=_support(entry, changed),
        )
        for entry in state.transcript[-_FAR:]
        if entry.evidence_id
    )


def pictures_in(state: AgentState) -> tuple[ShownPicture, ...]:
    """Return the pictures of the request's messages, and then those of its newest results."""
    asked = state.request.text if state.request else ""
    since: list[TranscriptEntry] = []
    for entry in reversed(state.transcript[-_FAR:]):
        since.append(entry)
        if entry.said and asked and entry.text.startswith(asked):
            break
    else:
        return ()
    said = [ShownPicture(picture=one) for entry in reversed(since) if entry.said for one in entry.pictures]
    found = [
        ShownPicture(picture=one, evidence_id=entry.evidence_id)
        for entry in since
        if entry.evidence_id and not entry.stale
        for one in entry.pictures
    ]
    return (*said, *found)[:_PICTURES]


def _support(entry: TranscriptEntry, changed: Collection[str]) -> Support:
    """Return the kind of claim an entry can prove. Reading a file after changing it proves the change."""
    seen_after = entry.path in changed and entry.digest is not None and not entry.stale
    return "change" if entry.supports == "reading" and seen_after else entry.supports


def show_evidence(evidence: Sequence[Evidence], budget: int) -> str:
    """Return the checks, and the newest other evidence that fits into `budget` tokens, oldest first."""
    current = [one for one in evidence if one.current]
    checks = [one for one in current if one.kind == "check"]
    share = budget * 3 // 4 if len(checks) < len(current) else budget
    shown = _sharing(checks, share)
    budget -= sum(map(estimate_tokens, shown.values()))
    for one in reversed([one for one in current if one.kind != "check"]):
        if budget < _LINE:
            break  # older evidence need not even be counted
        text, tokens = _within(_labelled(one), budget)
        if text:
            shown[one.evidence_id] = text
            budget -= tokens
    if not shown:
        return "Evidence: none"
    texts = [shown[one.evidence_id] for one in current if one.evidence_id in shown]
    left = [one.evidence_id for one in current if one.evidence_id not in shown]
    more = [f"Left out, too long: {', '.join(left)}"] if left else []
    return "\n\n".join(["Evidence, oldest first", *texts, *more])


def harmless(text: str) -> str:
    """Rewrite labels in a text that could pass for the start of another piece of evidence."""
    return _ID_AT_START.sub(r"\1(\2)", text)


def _labelled(one: Evidence) -> str:
    return f"[{one.evidence_id}] {harmless(one.text)}"


def _sharing(checks: Sequence[Evidence], budget: int) -> dict[str, str]:
    labelled = {one.evidence_id: _labelled(one) for one in checks}
    shares = fair_shares([estimate_tokens(text) for text in labelled.values()], budget)
    fitting = (
        (of, _within(text, share)[0]) for (of, text), share in zip(labelled.items(), shares, strict=True)
    )
    return {of: text for of, text in fitting if text}


def _within(text: str, budget: int) -> tuple[str, int]:
    tokens = estimate_tokens(text)
    if tokens <= budget:
        return text, tokens
    text = shorten(text, len(text) * budget // tokens) if budget >= _LEAST else ""
    return text, estimate_tokens(text)
