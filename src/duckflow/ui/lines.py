"""Events as lines of text, in the user's language."""

from duckflow.domain.events import ActionFinished, ErrorReported, RequestFinished, SessionStarted
from duckflow.domain.state import Approval
from duckflow.domain.text import cut
from duckflow.i18n.catalogue import text

_RESULT = 160
_SAID_ALREADY = ("done", "provider_error")


def start_line(event: SessionStarted) -> str:
    """Which model works here, and why that one."""
    key = "start.resumed" if event.resumed else "start.new"
    reason = text(event.model_reason, **event.model_values)
    return text(key, model=event.model, reason=reason, mode=event.mode, session=event.session_id)


def action_line(event: ActionFinished) -> str:
    """One action and how it ended."""
    first = event.text.strip().partition("\n")[0]
    target = event.path or ""
    key = f"action.{event.outcome}"
    return text(key, operation=event.operation, target=target, result=cut(first, _RESULT)).rstrip()


def error_line(event: ErrorReported) -> str:
    """What went wrong and what to do."""
    return text("error.line", message=text(event.key, **event.values))


def outcome_line(event: RequestFinished, session_id: str) -> str | None:
    """What the user should know when the work stops; nothing where the reply says it all."""
    if event.outcome in _SAID_ALREADY:
        return None
    return text(f"outcome.{event.outcome}", session=session_id)


def approval_text(approval: Approval) -> str:
    """What is asked: the intent, the reason, and the whole difference with nothing hidden in it."""
    return text(
        "approval.request",
        operation=approval.action.operation,
        intent=approval.intent or text("approval.no_intent"),
        rationale=approval.rationale,
        difference=visible(approval.difference),
    )


def visible(shown: str) -> str:
    """The text with control, bidirectional, zero-width and tag characters made visible (SAFETY 8)."""
    return "".join(_revealed(character) for character in shown)


def _revealed(character: str) -> str:
    code = ord(character)
    hidden = (
        (code < 0x20 and character not in "\n\t")
        or 0x7F <= code <= 0x9F
        or code in (0x061C, 0x00AD, 0x180E, 0xFEFF)
        or 0x200B <= code <= 0x200F
        or 0x2028 <= code <= 0x202E
        or 0x2060 <= code <= 0x206F
        or 0xE0000 <= code <= 0xE007F
        or 0xD800 <= code <= 0xDFFF
    )
    return f"\\u{{{code:x}}}" if hidden else character
