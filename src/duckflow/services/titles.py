"""A few words for a session, for the fast tier (SPEC L1)."""

from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.model import Usage
from duckflow.domain.ports import ModelClient
from duckflow.domain.text import cut
from duckflow.llm.answers.structured import ask
from duckflow.prompts.titles import title_request
from duckflow.services.schemas import schema_of

LONGEST = 60


class SessionTitle(Frozen):
    """The title as a model writes it."""

    title: str


async def write_title(client: ModelClient, request: str, reply: str) -> tuple[str, Usage]:
    """A title from the first request and its reply. Raises ProviderError."""
    asked = replace(title_request(request, reply), answer_schema=schema_of(SessionTitle))
    answer = await ask(client, asked, SessionTitle, lambda _: None, _problem)
    return cut(" ".join(answer.value.title.split()), LONGEST), answer.usage


def _problem(answer: SessionTitle) -> str | None:
    return None if answer.title.strip() else "`title` is empty"
