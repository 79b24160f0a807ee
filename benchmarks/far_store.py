"""An object store that is far away: S3's interface over a dict, where each request takes a fixed time.

It remembers when each request came and when it was answered, which tells how many trips a verb makes one after
the other. `FarStore` runs it in a process of its own on a free loopback port.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

BUCKET = "far"
REPORT = "/-/report"
LATENCY = "/-/latency/"
_SMALL = 4096
_LISTED = 1000


class Request(NamedTuple):
    """One request: its method or kind, the key, when it began and ended, and the bytes of its body or answer."""

    kind: str
    key: str
    began_s: float
    ended_s: float
    size_bytes: int


class Stored(NamedTuple):
    """One object of the bucket."""

    data: bytes
    modified_s: float
    etag: str


def sequential_trips(requests: Sequence[Request]) -> int:
    """The longest chain of requests each of which began after the one before it had been answered."""
    trips, answered_s = 0, float("-inf")
    for request in sorted(requests, key=lambda request: request.ended_s):
        if request.began_s >= answered_s:
            trips, answered_s = trips + 1, request.ended_s
    return trips


class FarStore:
    """A far store in a process of its own; it ends with this one. At first its requests take no time."""

    def __init__(self, megabytes_per_s: float = 50) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "benchmarks.far_store", str(megabytes_per_s)],
            cwd=Path(__file__).parents[1], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self._process.stdout is not None
        self.endpoint = f"http://127.0.0.1:{int(self._process.stdout.readline())}"

    @property
    def options(self) -> Mapping[str, str]:
        """What opens a table here."""
        return {
            "aws_endpoint": self.endpoint, "aws_access_key_id": "far", "aws_secret_access_key": "far",
            "aws_region": "us-east-1", "aws_allow_http": "true",
        }  # fmt: skip

    def uri(self, name: str) -> str:
        """The address of a table."""
        return f"s3://{BUCKET}/{name}"

    def requests(self) -> list[Request]:
        """What was requested since the last call."""
        with urllib.request.urlopen(self.endpoint + REPORT) as answer:  # noqa: S310 - loopback
            return [Request(*entry) for entry in json.load(answer)]

    def set_latency(self, milliseconds: float) -> None:
        """How long each request takes from now on."""
        with urllib.request.urlopen(f"{self.endpoint}{LATENCY}{milliseconds}") as answer:  # noqa: S310 - loopback
            answer.read()

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=10)
        self._process.stdout.close()


class _Bucket:
    """The objects, the uploads under way, and the requests so far."""

    def __init__(self, bytes_per_s: float) -> None:
        self.latency_s, self.bytes_per_s = 0.0, bytes_per_s
        self.objects: dict[str, Stored] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.requests: list[Request] = []
        self.lock = threading.Lock()

    def travel(self, size: int) -> None:
        """Let a request or an answer of so many bytes take its time."""
        if size > _SMALL:
            time.sleep(size / self.bytes_per_s)

    def store(self, key: str, data: bytes, *, absent: bool) -> str | None:
        """Put an object; None if there must be none and there is."""
        with self.lock:
            if absent and key in self.objects:
                return None
            etag = f'"{hashlib.md5(data).hexdigest()}"'  # noqa: S324 - what S3 does
            self.objects[key] = Stored(data, time.time(), etag)
            return etag


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    bucket: _Bucket

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def serve(self) -> None:
        """Answer one request, and remember it."""
        if self.path == REPORT:
            with self.bucket.lock:
                past, self.bucket.requests = self.bucket.requests, []
            self._reply(200, json.dumps(past).encode())
            return
        if self.path.startswith(LATENCY):
            self.bucket.latency_s = float(self.path.removeprefix(LATENCY)) / 1e3
            self._reply(200)
            return
        began_s = time.time()
        address = urlsplit(self.path)
        query = dict(parse_qsl(address.query, keep_blank_values=True))
        key = unquote(address.path).lstrip("/").partition("/")[2]
        body = self._body()
        time.sleep(self.bucket.latency_s)
        self.bucket.travel(len(body))
        kind, size = self._answer(key, query, body)
        with self.bucket.lock:
            self.bucket.requests.append(Request(kind, key, began_s, time.time(), size))

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = serve  # noqa: N815 - names of http.server

    def _answer(self, key: str, query: Mapping[str, str], body: bytes) -> tuple[str, int]:
        if self.command == "GET" and not key:
            listing = self._listing(query)
            self._reply(200, listing)
            return "LIST", len(listing)
        if self.command in ("GET", "HEAD"):
            return self.command, self._read(key)
        if self.command == "PUT":
            return "PUT", self._put(key, query, body)
        if self.command == "POST":
            return self._post(key, query, body)
        with self.bucket.lock:
            self.bucket.objects.pop(key, None)
        self._reply(204)
        return "DELETE", 0

    def _read(self, key: str) -> int:
        stored = self.bucket.objects.get(key)
        if stored is None:
            self._reply(404, b"" if self.command == "HEAD" else b"<Error><Code>NoSuchKey</Code></Error>")
            return 0
        wanted = self.headers.get("If-Match")
        if wanted is not None and wanted != stored.etag:
            self._reply(412, b"<Error><Code>PreconditionFailed</Code></Error>")
            return 0
        data, status = stored.data, 200
        headers = {
            "ETag": stored.etag, "Last-Modified": formatdate(stored.modified_s, usegmt=True),
            "Accept-Ranges": "bytes",
        }  # fmt: skip
        chosen = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if chosen is not None and self.command == "GET":
            total = len(data)
            first = int(chosen[1]) if chosen[1] else max(0, total - int(chosen[2]))
            last = min(int(chosen[2]), total - 1) if chosen[1] and chosen[2] else total - 1
            if first >= total:
                self._reply(416)
                return 0
            headers["Content-Range"] = f"bytes {first}-{last}/{total}"
            data, status = data[first : last + 1], 206
        if self.command == "HEAD":
            self._reply(status, headers={**headers, "Content-Length": str(len(data))})
            return 0
        self.bucket.travel(len(data))
        self._reply(status, data, headers)
        return len(data)

    def _listing(self, query: Mapping[str, str]) -> bytes:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        after = query.get("continuation-token") or query.get("start-after") or ""
        most = int(query.get("max-keys", _LISTED))
        with self.bucket.lock:
            names = sorted(key for key in self.bucket.objects if key.startswith(prefix) and key > after)
            stored = dict(self.bucket.objects)
        contents: list[str] = []
        directories: list[str] = []
        last, more = "", False
        for name in names:
            if len(contents) + len(directories) >= most:
                more = True
                break
            last = name
            head, cut, _ = name[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            if cut:
                if prefix + head + cut not in directories:
                    directories.append(prefix + head + cut)
            else:
                contents.append(name)
        entries = "".join(
            f"<Contents><Key>{escape(name)}</Key><LastModified>{_iso(stored[name].modified_s)}</LastModified>"
            f"<ETag>{escape(stored[name].etag)}</ETag><Size>{len(stored[name].data)}</Size></Contents>"
            for name in contents
        )
        entries += "".join(
            f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in directories
        )
        token = f"<NextContinuationToken>{escape(last)}</NextContinuationToken>" if more else ""
        return (
            f'<?xml version="1.0"?><ListBucketResult><Name>{BUCKET}</Name><Prefix>{escape(prefix)}</Prefix>'
            f"<KeyCount>{len(contents) + len(directories)}</KeyCount><MaxKeys>{most}</MaxKeys>"
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{entries}</ListBucketResult>"
        ).encode()

    def _put(self, key: str, query: Mapping[str, str], body: bytes) -> int:
        if "uploadId" in query:
            self.bucket.uploads[query["uploadId"]][int(query["partNumber"])] = body
            self._reply(200, headers={"ETag": '"part"'})
            return len(body)
        etag = self.bucket.store(key, body, absent=self.headers.get("If-None-Match") == "*")
        if etag is None:
            self._reply(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        else:
            self._reply(200, headers={"ETag": etag})
        return len(body)

    def _post(self, key: str, query: Mapping[str, str], body: bytes) -> tuple[str, int]:
        if "delete" in query:
            names = [unescape(name) for name in re.findall(r"<Key>(.*?)</Key>", body.decode())]
            with self.bucket.lock:
                for name in names:
                    self.bucket.objects.pop(name, None)
            deleted = "".join(f"<Deleted><Key>{escape(name)}</Key></Deleted>" for name in names)
            self._reply(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())
            return "DELETE many", len(body)
        if "uploads" in query:
            upload = str(len(self.bucket.uploads))
            self.bucket.uploads[upload] = {}
            self._reply(
                200,
                f"<InitiateMultipartUploadResult><Bucket>{BUCKET}</Bucket><Key>{escape(key)}</Key>"
                f"<UploadId>{upload}</UploadId></InitiateMultipartUploadResult>".encode(),
            )
            return "POST begin", 0
        parts = self.bucket.uploads.pop(query["uploadId"])
        etag = self.bucket.store(key, b"".join(parts[n] for n in sorted(parts)), absent=False)
        self._reply(
            200,
            f"<CompleteMultipartUploadResult><ETag>{escape(str(etag))}</ETag></CompleteMultipartUploadResult>".encode(),
        )
        return "POST end", 0

    def _body(self) -> bytes:
        """The body of a request; the client may send it in chunks."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _reply(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def _iso(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))


def main(megabytes_per_s: str) -> None:
    """Serve until standard input ends."""
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    _Handler.bucket = _Bucket(float(megabytes_per_s) * 1e6)
    server = _Server(("127.0.0.1", 0), _Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
