"""Base class of clients that wrap another one to add retries, redaction or pictures."""

from duckflow.domain.model import ModelClient, ModelTraits


class WrappingClient:
    """Wrap a client, pass on its traits, and close it."""

    def __init__(self, inner: ModelClient) -> None:
        self.inner = inner

    @property
    def traits(self) -> ModelTraits:
        """Return the traits of the wrapped client."""
        return self.inner.traits

    async def aclose(self) -> None:
        """Close the wrapped client."""
        await self.inner.aclose()


def unwrapped(client: ModelClient | None) -> ModelClient | None:
    """Return the innermost client, the one that calls the model."""
    while isinstance(client, WrappingClient):
        client = client.inner
    return client
