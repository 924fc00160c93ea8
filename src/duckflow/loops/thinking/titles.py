"""Gives a session its title, behind the conversation. Without one its first request stands for it."""

from duckflow.domain.errors import ProviderError
from duckflow.domain.events import SessionTitled
from duckflow.llm.tiers import Tiers
from duckflow.loops.session import Session
from duckflow.loops.thinking.spending import Spending
from duckflow.services.decide import ModelCall
from duckflow.services.titles import write_title


class Titles:
    """Asks the fast tier, once there is work to name: a question must cost no second call."""

    def __init__(self, session: Session, tiers: Tiers, spending: Spending) -> None:
        self._session = session
        self._tiers = tiers
        self._spending = spending
        self._tried = False

    async def give(self) -> None:
        """Title the session after the first request that changed or ran something."""
        request = self._session.state.finished
        if self._tried or request is None or not (request.changed or request.ran):
            return
        self._tried = True
        try:
            client = await self._tiers.client("fast")
            if client.traits.small:
                return  # it has better things to do
            title, tokens = await write_title(client, request.text, self._session.state.reply)
        except ProviderError:
            return  # the list shows the first request, which is as good
        await self._spending.report("fast", ModelCall(output="SessionTitle", tokens=tokens))
        self._session.record(SessionTitled(title=title))
