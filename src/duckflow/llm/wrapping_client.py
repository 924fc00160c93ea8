"""The base of clients that add something to another one: patience, redaction, pictures."""

from duckflow.domain.model import ModelClient, ModelTraits


class WrappingClient:
    """A client around another one, which has its traits and ends with it."""

    def __init__(self, inner: ModelClient) -> None:
        self.inner = inner

    @property
    def traits(self) -> ModelTraits:
        """Those of the client inside."""
        return self.inner.traits

    async def aclose(self) -> None:
        """Close the client inside."""
        await self.inner.aclose()


def unwrapped(client: ModelClient | None) -> ModelClient | None:
    """The client that asks the model."""
    while isinstance(client, WrappingClient):
        client = client.inner
    return client
