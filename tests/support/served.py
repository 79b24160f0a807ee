"""Tables behind a running server, and a browser that is there or says why not."""

from __future__ import annotations

import shutil
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

import indextables as it

TOKEN = "a-token-for-the-tests"
HOUR_US = 3_600_000_000
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("level", pa.string()),
        ("status", pa.int64()),
        ("took", pa.float64()),
        ("message", pa.string()),
    ]
)
LEVELS = ("INFO", "WARN", "ERROR")
OPTIONS = {"indexing.typemap.message": "text", "indexing.typemap.level": "string"}
FIRST_US = 1_714_521_600_000_000  # 2024-05-01T00:00:00Z


def events(start: int, count: int) -> pa.Table:
    """One event a minute, numbered from `start`; every tenth is a timeout."""
    numbers = range(start, start + count)
    return pa.table(
        {
            "ts": pa.array([FIRST_US + n * 60_000_000 for n in numbers], pa.int64()).cast(
                SCHEMA.field("ts").type
            ),
            "level": [LEVELS[n % 3] for n in numbers],
            "status": [500 if n % 10 == 0 else 200 for n in numbers],
            "took": [n / 7 for n in numbers],
            "message": [f"{'upstream timeout' if n % 10 == 0 else 'request served'} n{n}" for n in numbers],
        },
        SCHEMA,
    )


def make_events(path, days: int = 3) -> it.Table:
    """A table of one split a day."""
    table = it.Table.create(path, SCHEMA, options=OPTIONS)
    for day in range(days):
        table.append(events(day * 1440, 1440))
    return table


@contextmanager
def serving(*tables, options=None):
    """Serve tables, by their paths or as `Served`, in a thread; gives the address without its token."""
    from indextables.web.server import prepare
    from indextables.web.tables import Catalog

    of_paths = all(isinstance(table, str) for table in tables)
    made = prepare(Catalog.of(tables, options) if of_paths else Catalog(tables), token=TOKEN)
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    parts = urlsplit(made.address)
    try:
        yield f"{parts.scheme}://{parts.netloc}"
    finally:
        made.server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()


CHROMIUM_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@contextmanager
def chromium():
    """A browser; skips where there is none, with what to install."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no Chromium here; on Debian: apt-get install chromium (scripts/check-browser.sh)")
    sync = pytest.importorskip("playwright.sync_api")
    with sync.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=found, args=list(CHROMIUM_FLAGS))
        try:
            yield browser
        finally:
            browser.close()
