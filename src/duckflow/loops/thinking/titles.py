"""Short session titles, written by the fast tier (L1)."""

from duckflow.domain.events import SessionTitled
from duckflow.domain.frozen import Frozen
from duckflow.domain.text import cut, one_line
from duckflow.loops.session import Session
from duckflow.loops.thinking.advisor import Advisor
from duckflow.prompts.questions import question_request
from duckflow.prompts.templates import template
from duckflow.services.questions import AskedModel, Question

LONGEST = 60

_REQUEST, _REPLY = 1_000, 500
_ANSWER = 100


class SessionTitle(Frozen):
    """The title as a model writes it."""

    title: str


def write_title(request: str, reply: str) -> Question[SessionTitle, str]:
    """Return the question for a title, from the first request and its reply. It may be answered empty."""
    asked, about = cut(request, _REQUEST), [f"Reply:\n{cut(reply, _REPLY)}"]
    return Question(
        asked=AskedModel(tier="fast", output="SessionTitle"),
        prompt=lambda traits: question_request(
            "SessionTitle", traits, template("title"), about, asked, most_answer=_ANSWER
        ),
        shape=SessionTitle,
        check=lambda answer: () if answer.title.strip() else ("`title` is empty",),
        read=lambda answer: one_line(answer.title, LONGEST),
        otherwise=str,
    )


class TitleWriter:
    """Names a session once, after the first request that changed or ran something."""

    def __init__(self, session: Session, advisor: Advisor) -> None:
        self._session = session
        self._advisor = advisor
        self._given = False

    async def give(self) -> None:
        """Ask for a title if a request has changed or run something, but only once."""
        state, request = self._session.state, self._session.state.finished
        if self._given or request is None or not (request.changed or request.ran):
            return
        self._given = True
        title = await self._advisor.ask(write_title(request.text, state.reply))
        if title:
            self._session.record(SessionTitled(title=title))
