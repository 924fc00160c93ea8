"""Access to the web server: only for the browser that brought the token, from our page, on this machine.

Any web page can send requests to this machine, and any name can be made to point to it, so each request's
host name (DNS rebinding), origin and cookie are checked. A browser sends a cookie to every port of a
machine, so our cookie is only valid for a path that can't be guessed.
"""

import hmac
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from duckflow.i18n.catalogue import text

_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
_COOKIE = "duckflow"
_SITES = frozenset({"same-origin", "none", ""})
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class RequestGuard:
    """Lets a request pass, or answers it with a bare status 403."""

    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner
        self.place = f"/{secrets.token_urlsafe(9)}/"
        self._tokens: set[str] = set()
        self._cookies: list[str] = []

    def new_token(self) -> str:
        """Return a token that a browser can exchange for a cookie once."""
        self._tokens.add(token := secrets.token_urlsafe(24))
        return token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        cookie = self._admit(scope, headers)

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = dict(HEADERS)
                if cookie:
                    extra["set-cookie"] = f"{_COOKIE}={cookie}; Path={self.place}; HttpOnly; SameSite=Strict"
                added = [(name.encode(), value.encode()) for name, value in extra.items()]
                message["headers"] = [*message.get("headers", []), *added]
            await send(message)

        if cookie is None:
            refused = PlainTextResponse(text("web.refused") + "\n", status_code=403)
            await refused(scope, receive, sealed)
            return
        await self._inner({**scope, "path": "/" + scope["path"].removeprefix(self.place)}, receive, sealed)

    def _admit(self, scope: Scope, headers: Mapping[str, str]) -> str | None:
        """Return None to refuse a request. Otherwise return a new cookie if it brought a token, else ""."""
        host = headers.get("host", "")
        origin = headers.get("origin")
        if not is_loopback(host) or (origin is not None and origin != f"http://{host}"):
            return None
        if not scope["path"].startswith(self.place) or scope["method"] not in ("GET", "HEAD", "POST"):
            return None
        if scope["method"] == "POST" and origin is None:
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["method"] == "GET" and scope["path"] == self.place and self._take(given):
            self._cookies.append(made := secrets.token_urlsafe(24))
            return made
        if headers.get("sec-fetch-site", "") not in _SITES:
            return None
        return "" if self._known(headers.get("cookie", "")) else None

    def _take(self, given: str) -> bool:
        """Use up a token. Return False if it is unknown or was already used."""
        found = [one for one in self._tokens if hmac.compare_digest(one.encode(), given.encode())]
        self._tokens.difference_update(found)
        return bool(found)

    def _known(self, header: str) -> bool:
        try:
            given = SimpleCookie(header)[_COOKIE].value
        except (CookieError, KeyError):
            return False
        return any(hmac.compare_digest(one.encode(), given.encode()) for one in self._cookies)


def is_loopback(host: str) -> bool:
    """Return whether a Host header names this machine, with any port."""
    try:
        split = urlsplit(f"http://{host}")
        return bool(host) and split.hostname in _NAMES and split.netloc == host and split.port != 0
    except ValueError:
        return False
