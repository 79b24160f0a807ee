"""Who may ask, and what a browser may do with the answer.

Every request needs the token that the server was started with: in the cookie that
the printed address sets, or in an `Authorization` header (Bearer, ApiKey, or Basic
with the token as password). On a loopback address the `Host` must be a loopback
name too, so that no foreign page can reach the server under a name of its own.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from dataclasses import dataclass
from http.cookies import SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
COOKIE = "indextables_token"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_REFUSED = (
    "This address needs its token. Open the address that `indextables serve` printed when it started.\n"
)
_WRONG_HOST = "The server is asked under a name it does not have; use the address that it printed.\n"


@dataclass(frozen=True, slots=True)
class Access:
    """The token, and the address the server listens on."""

    token: str
    host: str = "127.0.0.1"

    def admits(self, headers: Headers) -> bool:
        """Whether a request carries the token."""
        return any(self.is_token(text) for text in (*_in_cookie(headers), *_in_authorization(headers)))

    def is_token(self, text: str) -> bool:
        """Compare in a time that does not depend on where the texts differ."""
        return hmac.compare_digest(text.encode(), self.token.encode())

    def is_addressed_by(self, name: str) -> bool:
        """Whether a Host header names this server, as far as that can be told."""
        return self.host not in LOOPBACK or _without_port(name) in LOOPBACK


class Guard:
    """An ASGI application in front of another: refuses strangers, and adds the headers of every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, send it to the page with its cookie, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = self._answer(scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await (answer or self.app)(scope, receive, send_with_headers)

    def _answer(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not self.access.is_addressed_by(headers.get("host", "")):
            return PlainTextResponse(_WRONG_HOST, 421)
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = dict(pairs).get("token")
        if scope["path"] == "/" and token is not None and self.access.is_token(token):
            rest = urlencode([(key, value) for key, value in pairs if key != "token"])
            answer = RedirectResponse(f"/?{rest}" if rest else "/", 303)
            answer.set_cookie(COOKIE, token, httponly=True, samesite="strict", path="/")
            return answer
        if not self.access.admits(headers):
            asks = {"www-authenticate": 'Basic realm="indextables", charset="UTF-8"'}
            is_page = "text/html" in headers.get("accept", "")
            return PlainTextResponse(_REFUSED, 401, None if is_page else asks)
        return None


def _in_cookie(headers: Headers) -> list[str]:
    cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    return [] if cookie is None else [cookie.value]


def _in_authorization(headers: Headers) -> list[str]:
    kind, _, text = headers.get("authorization", "").partition(" ")
    match kind.lower():
        case "bearer":
            return [text.strip()]
        case "apikey":
            # Clients of Elasticsearch send base64 of `id:key`, or the key as it was given to them.
            return [text.strip(), *_password(text)]
        case "basic":
            return _password(text)
        case _:
            return []


def _password(text: str) -> list[str]:
    try:
        _, colon, password = base64.b64decode(text, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return []
    return [password] if colon else []


def _without_port(name: str) -> str:
    host = name.rpartition(":")[0] if name.count(":") == 1 or "]:" in name else name
    return host.strip("[]").lower()
