"""Titles of sessions."""

from duckflow.domain.events import SessionTitled
from duckflow.loops.session import Session
from duckflow.loops.thinking.advisor import Advisor
from duckflow.services.titles import write_title


class TitleWriter:
    """Names a session once, after the first request that changed or ran something."""

    def __init__(self, session: Session, advisor: Advisor) -> None:
        self._session = session
        self._advisor = advisor
        self._given = False

    async def give(self) -> None:
        """Ask for a title if there is work to name."""
        state, request = self._session.state, self._session.state.finished
        if self._given or request is None or not (request.changed or request.ran):
            return
        self._given = True
        title = await self._advisor.ask(write_title(request.text, state.reply))
        if title:
            self._session.record(SessionTitled(title=title))
