"""OAuth for MCP servers: the user signs in with `duckflow mcp login`, and sessions use the stored tokens."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl

from duckflow.i18n.catalogue import text
from duckflow.tools.mcp.client import open_address
from duckflow.tools.mcp.remote import TOKENS

_PATIENCE_S = 600.0


class StoredTokens:
    """Tokens and registration of one server, in the user's state folder. `key` names the server."""

    def __init__(self, key: str) -> None:
        self._tokens, self._client, self.until = f"{key}tokens", f"{key}client", f"{key}until"

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens."""
        found = TOKENS.load().get(self._tokens)
        return OAuthToken.model_validate_json(found) if found else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store the tokens."""
        until = str(time.time() + tokens.expires_in) if tokens.expires_in else ""
        TOKENS.save({**TOKENS.load(), self._tokens: tokens.model_dump_json(), self.until: until})

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the registration."""
        found = TOKENS.load().get(self._client)
        return OAuthClientInformationFull.model_validate_json(found) if found else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store the registration."""
        TOKENS.save({**TOKENS.load(), self._client: client_info.model_dump_json()})


async def stored_sign_in(url: str, key: str) -> OAuthClientProvider | None:
    """Return the user's sign-in at a server, or None. It never asks the user."""
    storage = StoredTokens(key)
    client = await storage.get_client_info()
    if client is None or await storage.get_tokens() is None:
        return None
    known = TOKENS.load()
    provider = OAuthClientProvider(url, _metadata(*(str(one) for one in client.redirect_uris or ())), storage)
    # The package forgets these, and could not renew the tokens.
    provider.context.token_expiry_time = float(known.get(storage.until) or 0) or None
    if found := known.get(f"{key}server"):
        provider.context.oauth_metadata = OAuthMetadata.model_validate_json(found)
    if found := known.get(f"{key}resource"):
        provider.context.protected_resource_metadata = ProtectedResourceMetadata.model_validate_json(found)
    return provider


async def sign_in(url: str, key: str, tell: Callable[[str], None], typed: TextIO | None = None) -> None:
    """Let the user sign in at a server. `tell` gets the address to open.

    Duckflow serves the last page itself, on this machine. A browser elsewhere can't open it: then the
    user types its address, which is read from `typed`.
    """
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[AuthorizationCodeResult] = loop.create_future()

    def take(address: str) -> bool:
        """Accept the address of the last page; return False if the user did not sign in."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(address.strip()).query).items()}
        known = {name: query[name] for name in ("code", "state", "iss") if name in query}
        if ("code" in known or "error" in query) and not answered.done():
            answered.set_result(AuthorizationCodeResult.model_validate({"code": "", **known}))
        return "code" in known

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        words = (await reader.readline()).decode("latin-1").split()
        shown = text("mcp.signed_in" if take((*words, "", "")[1]) else "mcp.not_signed_in").encode()
        kind = b"Content-Type: text/plain; charset=utf-8\r\nConnection: close"
        writer.write(b"HTTP/1.1 200 OK\r\n" + kind + b"\r\n\r\n" + shown)
        with suppress(OSError):
            await writer.drain()
        writer.close()

    def read_line() -> None:
        assert typed is not None
        line = typed.readline()
        if not line:
            loop.remove_reader(typed)
        elif not take(line) and not answered.done():
            tell(text("mcp.paste_again"))

    async def show(address: str) -> None:
        tell(text("mcp.open", address=address))
        if typed is not None:
            tell(text("mcp.paste"))
            loop.add_reader(typed, read_line)

    async def wait() -> AuthorizationCodeResult:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await answered
        finally:
            if typed is not None:
                loop.remove_reader(typed)

    TOKENS.save({name: said for name, said in TOKENS.load().items() if not name.startswith(key)})
    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with listening:
        place = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/callback"
        auth = OAuthClientProvider(url, _metadata(place), StoredTokens(key), show, wait)
        async with open_address(url, {}, _PATIENCE_S, auth) as connection:
            await connection.offer()
    parts = {"server": auth.context.oauth_metadata, "resource": auth.context.protected_resource_metadata}
    about = {f"{key}{name}": one.model_dump_json() for name, one in parts.items() if one}
    TOKENS.save({**TOKENS.load(), **about})


def _metadata(*redirects: str) -> OAuthClientMetadata:
    return OAuthClientMetadata(client_name="Duckflow", redirect_uris=[AnyUrl(one) for one in redirects])
