"""Running the page: one process, one loop, until it is stopped."""

from __future__ import annotations

import secrets
import socket
from dataclasses import dataclass

import uvicorn

from indextables.errors import OptionError
from indextables.web.app import make_app
from indextables.web.guard import Access
from indextables.web.tables import Catalog

_TOKEN_BYTES = 24
_SHORTEST_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Prepared:
    """A server whose port is taken, and the address to open, token included."""

    server: uvicorn.Server
    place: socket.socket
    address: str

    def run(self) -> None:
        """Serve until the process is told to stop, or `stop` is called."""
        self.server.run(sockets=[self.place])

    def stop(self) -> None:
        """End soon, or do not begin."""
        self.server.should_exit = True


def prepare(catalog: Catalog, host: str = "127.0.0.1", port: int = 0, token: str | None = None) -> Prepared:
    """Take the port and make everything ready; without a token one is made up."""
    if token is not None and len(token) < _SHORTEST_TOKEN:
        raise OptionError(f"a token of {len(token)} characters can be guessed; use {_SHORTEST_TOKEN} or more")
    access = Access(token or secrets.token_urlsafe(_TOKEN_BYTES), host)
    place = _listen(host, port)
    settings = uvicorn.Config(
        make_app(catalog, access),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{place.getsockname()[1]}/?token={access.token}"
    return Prepared(uvicorn.Server(settings), place, address)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    place = socket.socket(family, socket.SOCK_STREAM)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        place.bind((host, port))
    except OSError as taken:
        place.close()
        raise OptionError(
            f"cannot listen on {host} port {port}: {taken.strerror or taken}. Choose another --port; "
            "0 takes any that is free."
        ) from taken
    place.listen(128)
    return place
