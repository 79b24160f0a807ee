"""Log lines that look like a service's: a few hundred shapes, skewed hosts and users, some identifiers."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator

import pyarrow as pa

RARE = "kaboom"
"""In exactly ten lines, spread evenly."""
COMMON = "throttled"
"""In every tenth line."""

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("ts", pa.timestamp("us", "UTC")),
        pa.field("level", pa.string()),
        pa.field("host", pa.string()),
        pa.field("service", pa.string()),
        pa.field("status", pa.int32()),
        pa.field("took_ms", pa.float64()),
        pa.field("message", pa.string()),
    ]
)

_SHAPES = [
    "GET /api/v1/{noun}/{n} returned {status} in {ms} ms for user {user}",
    "POST /api/v1/{noun} {status} body {n} bytes from 10.{a}.{b}.{a}",
    "connection to {noun}-db-{a}.internal:5432 timed out after {ms} ms, attempt {b}",
    "worker {a} picked up job {n} from queue {noun}.{verb}",
    "failed to {verb} {noun} {n}: upstream {service} answered {status}",
    "cache miss for key {noun}:{n}:{user}, loading from primary",
    "user {user} logged in from 192.168.{a}.{b} using password",
    "request {uuid} {verb} {noun} finished, {b} rows, {ms} ms",
    "garbage collection of generation {a} took {ms} ms, freed {n} bytes",
    "retrying {verb} of {noun} {n} because the lease of {user} expired",
    "java.lang.IllegalStateException: {noun} {n} is not in state {verb} at com.example.{service}.Handler.handle(Handler.java:{a})",
    "disk usage on /var/lib/{noun} is {b} percent, threshold 80",
]
_NOUNS = [
    "orders", "carts", "payments", "invoices", "sessions", "accounts", "shipments", "reports", "images", "tokens",
    "profiles", "search", "catalog", "coupons", "refunds", "webhooks",
]  # fmt: skip
_VERBS = ["fetch", "store", "index", "merge", "notify", "expire", "render", "validate", "publish", "archive"]
_SERVICES = ["gateway", "billing", "auth", "inventory", "mailer", "scheduler", "frontend", "ledger"]
_USERS = [
    f"{name}{number}" for number in range(60) for name in ("alice", "bob", "carol", "dave", "erin", "frank")
]


def log_lines(
    count: int, seed: int = 7, batch_rows: int = 50_000, part: range | None = None
) -> Iterator[pa.RecordBatch]:
    """Lines in batches; the same for the same seed. With `part`, only lines with these numbers."""
    dice = random.Random(seed)
    rare = {count * at // 10 + count // 20 for at in range(10)}
    wanted = range(count) if part is None else part
    for start in range(wanted.start, wanted.stop, batch_rows):
        numbers = range(start, min(wanted.stop, start + batch_rows))
        yield _batch(dice, numbers, rare)


def _batch(dice: random.Random, numbers: range, rare: set[int]) -> pa.RecordBatch:
    rows = len(numbers)
    shapes = dice.choices(_SHAPES, k=rows)
    skewed = [int(dice.paretovariate(1.2)) for _ in range(rows)]
    statuses = dice.choices(
        [200, 201, 204, 301, 400, 404, 429, 500, 502, 503], [60, 8, 5, 2, 5, 8, 3, 5, 2, 2], k=rows
    )
    messages = []
    for number, shape, jump, status in zip(numbers, shapes, skewed, statuses, strict=True):
        text = shape.format(
            noun=_NOUNS[jump % len(_NOUNS)], verb=_VERBS[number % len(_VERBS)], n=dice.randrange(1_000_000),
            status=status, ms=min(jump * 3, 60_000), user=_USERS[jump % len(_USERS)], a=jump % 250, b=number % 250,
            service=_SERVICES[jump % len(_SERVICES)],
            uuid=uuid.UUID(int=dice.getrandbits(128), version=4) if "{uuid}" in shape else "",
        )  # fmt: skip
        if number % 10 == 3:
            text += f" {COMMON}"
        if number in rare:
            text = f"{text} {RARE}"
        messages.append(text)
    return pa.record_batch(
        [
            pa.array(numbers, pa.int64()),
            pa.array(
                [1_700_000_000_000_000 + number * 1371 for number in numbers], pa.timestamp("us", "UTC")
            ),
            pa.array(dice.choices(["INFO", "DEBUG", "WARN", "ERROR"], [70, 18, 8, 4], k=rows)),
            pa.array([f"host-{jump % 300:03d}" for jump in skewed]),
            pa.array([_SERVICES[jump % len(_SERVICES)] for jump in skewed]),
            pa.array(statuses, pa.int32()),
            pa.array([float(min(jump * 3, 60_000)) for jump in skewed]),
            pa.array(messages),
        ],
        schema=SCHEMA,
    )
