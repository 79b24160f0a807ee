"""Object stores to test against, each a process of its own on a free loopback port.

Use them as fixtures: `from support.servers import azure_server, s3_server  # noqa: F401`. The S3
server is moto's. The Azure one is azurite, which needs node: it is taken from the PATH or from
a cache directory, into which npm installs it once; where that does not work out the test skips
and says why. Both end with the test process, however that ends: they watch their standard input.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import hashlib
import hmac
import http.client
import http.server
import json
import os
import queue
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

BUCKET = "tables"
_START_TIMEOUT_S = 60
_INSTALL_TIMEOUT_S = 240
_AZURITE = "azurite@3.35.0"
# The account and key that every Azure emulator has; they are printed in its documentation.
_AZURE_ACCOUNT = "devstoreaccount1"
_AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

# moto looks whether a key is there and then writes it, on several threads: two conditional puts of one key
# could both be told yes, which S3 never does. So here they go one after the other.
_MOTO = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
from moto.s3.responses import S3Response
from moto.server import main
one_at_a_time, put = threading.Lock(), S3Response.put_object
def put_object(self, *given, **named):
    with one_at_a_time:
        return put(self, *given, **named)
S3Response.put_object = put_object
main(["-H", "127.0.0.1", "-p", "0"])
"""
_NODE = """
process.stdin.on("end", () => process.exit(0)).resume();
const [main, ...options] = process.argv.slice(1);
process.argv = [process.argv[0], main, ...options];
require(main);
"""


@dataclass(frozen=True)
class ObjectServer:
    """A running server: its address, a bucket in it, and the options that reach it."""

    endpoint: str
    root: str
    options: Mapping[str, str] = field(repr=False)

    def through(self, proxy: str) -> ObjectServer:
        """The same server reached by way of a proxy."""
        old = self.endpoint.rsplit("/", 1)[0] if self.root.startswith("az:") else self.endpoint
        options = {key: value.replace(old, proxy) for key, value in self.options.items()}
        return ObjectServer(self.endpoint.replace(old, proxy), self.root, options)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[ObjectServer]:
    with s3_running() as server:
        yield server


@pytest.fixture(scope="session")
def azure_server() -> Iterator[ObjectServer]:
    with azure_running() as server:
        yield server


@contextlib.contextmanager
def s3_running() -> Iterator[ObjectServer]:
    """An S3 server, for as long as the block runs."""
    with _running([sys.executable, "-c", _MOTO], r"Running on (http://[0-9.:]+)") as endpoint:
        with urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT"), timeout=30):
            pass
        yield ObjectServer(endpoint, f"s3://{BUCKET}", s3_options(endpoint))


@contextlib.contextmanager
def azure_running() -> Iterator[ObjectServer]:
    """An Azure server, for as long as the block runs."""
    main = _azurite()
    options = ["--inMemoryPersistence", "--blobHost", "127.0.0.1", "--blobPort", "0"]
    options += ["--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    command = ["node", "-e", _NODE, "--", str(main), *options]
    with _running(command, r"listens on (http://[0-9.:]+)") as address:
        endpoint = f"{address}/{_AZURE_ACCOUNT}"
        _create_container(endpoint, BUCKET)
        yield ObjectServer(
            endpoint,
            f"az://{BUCKET}",
            {
                "azure_storage_account_name": _AZURE_ACCOUNT,
                "azure_storage_account_key": _AZURE_KEY,
                "azure_storage_endpoint": endpoint,
            },
        )


@pytest.fixture(scope="session")
def gs_server(s3_server: ObjectServer) -> Iterator[ObjectServer]:
    """Google's XML interface is S3's but for the name of the condition, which the proxy translates.

    It shows that our requests are well formed and their answers understood; it is not Google.
    """
    with lossy_proxy(s3_server.endpoint, lambda _method, _path: None, google=True) as endpoint:
        # A key without OAuth is how emulators are reached: no token is asked for, of anyone.
        key = {"gcs_base_url": endpoint, "disable_oauth": True}
        key |= {"client_email": "", "private_key": "", "private_key_id": ""}
        options = {"google_service_account_key": json.dumps(key), "storage.allow_http": "true"}
        yield ObjectServer(endpoint, f"gs://{BUCKET}", options)


def s3_options(endpoint: str) -> dict[str, str]:
    """What `open_store` needs for a moto server at `endpoint`."""
    return {
        "aws_endpoint": endpoint,
        "aws_region": "us-east-1",
        "aws_access_key_id": "testing",
        "aws_secret_access_key": "testing",
    }


@contextlib.contextmanager
def _running(command: list[str], ready: str) -> Iterator[str]:
    """Run a server until its output matches `ready`; gives the first group of the match."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def drain() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=drain, daemon=True).start()
    try:
        yield _first_match(lines, ready, command)
    finally:
        # All they hold is in memory, and a polite end would wait for our idle connections.
        process.kill()
        process.wait(timeout=30)


def _first_match(lines: queue.SimpleQueue[str | None], ready: str, command: list[str]) -> str:
    seen: list[str] = []
    while True:
        try:
            line = lines.get(timeout=_START_TIMEOUT_S)
        except queue.Empty:
            line = None
        if line is None:
            pytest.fail(f"{command[0]} did not start: {''.join(seen)[-2000:]}")
        seen.append(line)
        if match := re.search(ready, line):
            return match[1]


def _azurite() -> Path:
    """The program of the Azure emulator, installed if need be."""
    if shutil.which("node") is None:
        pytest.skip("needs node for azurite, the Azure emulator")
    named = os.environ.get("INDEXTABLES_AZURITE")
    cache = Path(named or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache if named else cache / "indextables" / _AZURITE.replace("@", "-")
    main = home / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    if main.is_file():
        return main
    if shutil.which("npm") is None:
        pytest.skip("needs npm to install azurite, the Azure emulator")
    home.parent.mkdir(parents=True, exist_ok=True)
    with open(home.parent / ".azurite.lock", "w") as lock:
        # Test workers that run side by side install it once.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not main.is_file():
            _install_azurite(home)
    return main


def _install_azurite(home: Path) -> None:
    with tempfile.TemporaryDirectory(dir=home.parent) as place:
        command = ["npm", "install", "--prefix", place, "--no-audit", "--no-fund", "--ignore-scripts"]
        command += ["--fetch-retries=1", "--fetch-timeout=20000", "--loglevel=error", _AZURITE]
        try:
            subprocess.run(
                command, check=True, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S, cwd=place
            )
        except subprocess.TimeoutExpired:
            pytest.skip(f"npm did not install azurite within {_INSTALL_TIMEOUT_S} s")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"npm could not install azurite: {error.stderr.strip()[-300:]}")
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        os.rename(Path(place) / "node_modules", home / "node_modules")


def _create_container(endpoint: str, name: str) -> None:
    """One signed request; obstore itself makes no containers."""
    date = formatdate(usegmt=True)
    signed_headers = f"x-ms-date:{date}\nx-ms-version:2021-12-02"
    resource = f"/{_AZURE_ACCOUNT}/{_AZURE_ACCOUNT}/{name}\nrestype:container"
    text = "\n".join(["PUT", *[""] * 11, signed_headers, resource])
    digest = hmac.new(base64.b64decode(_AZURE_KEY), text.encode(), hashlib.sha256).digest()
    headers = {
        "x-ms-date": date,
        "x-ms-version": "2021-12-02",
        "Authorization": f"SharedKey {_AZURE_ACCOUNT}:{base64.b64encode(digest).decode()}",
        "Content-Length": "0",
    }
    url = f"{endpoint}/{name}?restype=container"
    with urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers), timeout=30):
        pass


def _google_as_s3(path: str, headers: dict[str, str]) -> tuple[str, dict[str, str]]:
    name, question, query = path.partition("?")
    credential = "testing/20200101/us-east-1/s3/aws4_request"  # moto reads who asks, not the signature
    signed = f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host, Signature=none"
    kept = {**headers, "authorization": signed}
    if kept.pop("x-goog-if-generation-match", None) == "0":
        kept["If-None-Match"] = "*"
    return name.replace("%2F", "/") + question + query, kept


@contextlib.contextmanager
def lossy_proxy(
    upstream: str, lose: Callable[[str, str], str | None], *, google: bool = False, careless: bool = False
) -> Iterator[str]:
    """A proxy before a server that loses requests or their answers, as networks do.

    `lose(method, path)` says "request" (it never arrives), "reply" (it is carried out, the
    answer never comes), "reset" (the same, and the connection is torn down), "truncated" (half of
    the answer comes), "duplicate" (it is carried out twice, the second answer comes), "500" or
    "503" (refused), or None. With `google` the requests are Google's and the server an S3 one.
    With `careless` the server never hears of conditions, as if it did not know them.
    """
    target = urlsplit(upstream)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fault = lose(self.command, self.path)
            if fault == "request":
                self.close_connection = True
                return
            if fault in {"500", "503"}:
                self.send_response(int(fault))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            path, headers = self.path, dict(self.headers.items())
            if careless:
                headers = {key: value for key, value in headers.items() if key.lower() != "if-none-match"}
            if google:
                path, headers = _google_as_s3(path, headers)
            for _ in range(2 if fault == "duplicate" else 1):
                connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=30)
                connection.request(self.command, path, body, headers)
                answer = connection.getresponse()
                data = answer.read()
                connection.close()
            if fault == "reset":
                # With no time to linger, closing sends a reset instead of an end.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if fault in {"reply", "reset"}:
                self.close_connection = True
                return
            self.send_response(answer.status)
            for key, value in answer.getheaders():
                if key.lower() not in {"transfer-encoding", "content-length", "connection", "date", "server"}:
                    self.send_header(key, value)
            length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            if fault == "truncated":
                self.close_connection = True
                data = data[: len(data) // 2]
            self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
