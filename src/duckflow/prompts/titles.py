"""The prompt for the title of a session."""

from duckflow.domain.model import ChatMessage, ModelRequest
from duckflow.domain.text import cut
from duckflow.prompts.templates import template

_REQUEST, _REPLY = 1_000, 500
_ANSWER = 100


def title_request(request: str, reply: str) -> ModelRequest:
    """Ask for a few words on what a session is about, from its first request and reply."""
    about = f"Request:\n{cut(request, _REQUEST)}\n\nReply:\n{cut(reply, _REPLY)}"
    return ModelRequest(
        output="SessionTitle",
        messages=(
            ChatMessage(role="system", text=template("title"), stable=True),
            ChatMessage(role="user", text=about),
        ),
        max_tokens=_ANSWER,
    )
