"""Requests for side questions: first the fixed text, which calls can share as a prefix, then the case."""

from collections.abc import Iterable, Sequence

from duckflow.domain.model import PICTURE_TOKENS, ChatMessage, ModelRequest, ModelTraits, Picture
from duckflow.domain.state import AgentState
from duckflow.domain.text import cut, head_and_tail, one_line
from duckflow.domain.work.objective import Evidence
from duckflow.llm.tokens import estimate_tokens
from duckflow.prompts.evidence import show_evidence

SMALL_ANSWER, SMALL_EVIDENCE = 300, 400
"""Token limits of a small model, which reads slowly: for its answer, and for the evidence it reads."""

PLAN_ANSWER = 8192
"""Token limit of an answer that holds a plan or whole files."""

MOST_EVIDENCE = 16_000
"""Usual token limit of the evidence, even in a large window."""

_ANSWER = 2048

_SHARE, _TOKEN = 4, 3
"""The answer and the request may each take a quarter of the window. A token has three characters or more."""

_SPOKEN, _NOW, _LINE, _WHOLE = 4_000, 2_000, 300, 500


def question_request(
    output: str,
    traits: ModelTraits,
    system: str,
    about: Sequence[str],
    request: str = "",
    evidence: Sequence[Evidence] = (),
    *,
    most_evidence: int = MOST_EVIDENCE,
    most_answer: int | None = None,
    pictures: Sequence[Picture] = (),
) -> ModelRequest:
    """Build a request. Without `most_answer`, a small model gets little to read and may answer briefly."""
    short = traits.small and most_answer is None
    answer = SMALL_ANSWER if short else min(traits.window // _SHARE, most_answer or _ANSWER)
    whole = head_and_tail(request.strip(), traits.window // _SHARE * _TOKEN)
    asked = "\n\n".join([*([f"The request:\n{whole}"] if whole else []), *about])
    taken = answer + PICTURE_TOKENS * len(pictures) + estimate_tokens(system + asked)
    left = min(traits.window - taken, traits.window // 2, most_evidence)
    seen = [show_evidence(evidence, min(left, SMALL_EVIDENCE) if short else left)] if evidence else []
    text = "\n\n".join([*seen, asked, f"Output: {output}"])
    return ModelRequest(
        output=output,
        messages=(
            ChatMessage(role="system", text=system, stable=True),
            ChatMessage(role="user", text=text, pictures=tuple(pictures)),
        ),
        max_tokens=answer,
        temperature=0.0 if short else None,
    )


def whole_request(request: str) -> str:
    """Return the request as one line, for use as the only requirement."""
    return one_line(request, _WHOLE)


def summary_of(state: AgentState, *, with_request: bool = True) -> str:
    """Summarize the conversation: earlier requests, one per line, the current one, and its constraints.

    The current one has all that the user has said for it since.
    """
    request = state.request if with_request else None
    now = [f"- Now: {head_and_tail(request.objective.request, _NOW)}"] if request else []
    constraints = (f"- Constraint: {text}" for text in state.items.constraints)
    return "\n".join([*(f"- {line}" for line in state.summaries), *now, *constraints])


def spoken_text(summary: str) -> list[str]:
    """Return a prompt section about the conversation before the request; empty without a `summary`."""
    return [f"Conversation so far:\n{cut(summary, _SPOKEN)}"] if summary.strip() else []


def listed(title: str, texts: Iterable[str]) -> list[str]:
    """Return one text that lists the texts under a title; empty if all of them are blank."""
    lines = [f"- {cut(' '.join(text.split()), _LINE)}" for text in texts if text.strip()]
    return ["\n".join([title, *lines])] if lines else []
