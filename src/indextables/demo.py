"""The example that `indextables demo` runs: a table of log events written, filtered, searched, repaired.

Every figure printed is measured while the demo runs. The last step uses Spark where Java is installed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from indextables.display.plain import size_text
from indextables.errors import MissingPackageError
from indextables.log.format.dialect import NATIVE
from indextables.maintenance import repair_log
from indextables.pages import page
from indextables.sql.runner import sql
from indextables.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

DAYS = [f"2024-05-{day:02}" for day in range(1, 9)]
_SERVICES = ["checkout", "search", "login", "billing", "mail"]
_EVENTS = [
    "request served",
    "connection reset by peer",
    "cache miss for key",
    "payment declined by issuer",
    "upstream timeout",
    "disk almost full",
    "session expired for user",
]
_HALF_DAY_US = 12 * 3_600_000_000
_OPTIONS = {"indexing.typemap.message": "text", "checkpoint.interval": "4"}


def run_demo(
    rows: int, directory: str | None, spark: bool | None, show_rows: Callable[[pa.Table], None]
) -> None:
    """Run the tour in `directory`, or in one removed afterwards; `show_rows` prints an Arrow table."""
    console = Console(highlight=False)
    began = time.perf_counter()
    with _quiet(), _table_directory(directory) as root:
        if root.exists() and any(root.iterdir()):
            console.print(f"{root} is not empty; choose another --dir.", style="red")
            raise SystemExit(1)
        tour = Tour(console, root, rows, show_rows)
        tour.run()
        if _wants_spark(spark, console):
            with _errors_into_file() as log:
                tour.run_in_spark()
            tour.say(f"The output of Java and Spark is in {log}")
        location = f" The table is in {root}." if directory else ""
        console.print(f"\nDone in {time.perf_counter() - began:.0f} s.{location}")
        again = "" if directory else "indextables demo --no-spark --dir demo && "
        shown = root if directory else "demo/events"
        console.print("Next:", style="bold")
        console.print(f"   {again}indextables serve {shown}", soft_wrap=True, markup=False)
        console.print(f"   the documentation begins in {page('index')}", soft_wrap=True, markup=False)


class Tour:
    """The steps, each with a title, a sentence and what came out."""

    def __init__(
        self, console: Console, root: Path, rows: int, show_rows: Callable[[pa.Table], None]
    ) -> None:
        self.console = console
        self.root = root
        self.rows = rows
        self.show_rows = show_rows
        self.step = 0

    @property
    def uri(self) -> str:
        """The table's path."""
        return str(self.root)

    def run(self) -> None:
        """The steps that need no Spark."""
        table = self.write()
        self.skip_files(table)
        self.search(table)
        self.look_back(table)
        self.merge()
        self.repair()

    def title(self, text: str) -> None:
        """Begin a step."""
        self.step += 1
        self.console.print()
        self.console.print(Text(f"{self.step}. {text}", style="bold"))

    def say(self, text: str) -> None:
        """One line about what happened."""
        self.console.print(Padding(Text(text), (0, 0, 0, 3)))

    def timed(self, work: Callable[[], Any]) -> tuple[Any, float]:
        """The result of `work`, and the seconds it took."""
        began = time.perf_counter()
        return work(), time.perf_counter() - began

    def write(self) -> Table:
        """Create the table and append one day after the other."""
        self.title(f"Write {self.rows:,} log events, partitioned by day, with a full-text index")
        first = events(DAYS[0], 1)
        table = Table.create(self.uri, first.schema, ["day"], options=_OPTIONS)
        share = -(-self.rows // (2 * len(DAYS)))

        def append() -> None:
            for half, day in ((half, day) for day in DAYS for half in (0, 1)):
                table.append(events(day, share, half))

        _, seconds = self.timed(append)
        state = table.describe()
        speed, size, index = table.count() / seconds, state.size_bytes, state.index_bytes
        self.say(
            f"{state.num_files} splits, {size_text(size)}, {size_text(index)} of it the index; "
            f"{speed:,.0f} rows per second, two commits a day."
        )
        return table

    def skip_files(self, table: Table) -> None:
        """Count with a filter that statistics and partitions can answer."""
        self.title("Filter: files that cannot match are never opened")
        hour = "ts >= TIMESTAMP '2024-05-03 10:00:00' AND ts < TIMESTAMP '2024-05-03 11:00:00'"
        where = f"{hour} AND status >= 500"
        count, seconds = self.timed(lambda: table.count(where))
        scan = table.last_scan
        assert scan is not None
        self.say(where)
        self.say(
            f"{count:,} rows in {seconds * 1000:.0f} ms: of {scan.files.considered} files "
            f"{scan.files.skipped_by_statistics} were skipped by their statistics, {scan.files.kept} read."
        )

    def search(self, table: Table) -> None:
        """Run a full-text query and show the best rows."""
        self.title("Search: a full-text query with a filter")
        query = 'message:"upstream timeout" AND message:checkout'
        matches, seconds = self.timed(lambda: table.count(query=query))
        self.say(query)
        self.say(f"{matches:,} of {table.count():,} rows in {seconds * 1000:.0f} ms. Three of them:")
        rows = table.search(query, columns=["ts", "status", "message"], limit=3).read_all()
        self.show_rows(rows)

    def look_back(self, table: Table) -> None:
        """Delete something and read the version before."""
        self.title("Time travel: every version stays readable")
        before = table.version
        result = table.delete("service = 'mail'")
        self.say(f"DELETE of service 'mail': {result.rows_deleted:,} rows in version {result.version}.")
        old = Table.open(self.uri, version=before)
        self.say(
            f"Version {before} still has {old.count():,} rows, version {table.version} has {table.count():,}."
        )

    def merge(self) -> None:
        """Put the two splits of each day together, by a statement."""
        self.title("Maintenance: statements, the same here, in Python and in spark.sql")
        statement = f"MERGE SPLITS '{self.uri}'"
        (row,), seconds = self.timed(lambda: sql(statement).to_pylist())
        self.say(statement)
        self.say(f"{row['status']}: {row['merged_files']} splits {row['message']}, in {seconds:.1f} s.")

    def repair(self) -> None:
        """Break the checkpoint, write a clean log beside it and swap them."""
        self.title("Repair: a damaged checkpoint, and a clean log from what is left")
        log = self.root / NATIVE.log_dir
        target = log.with_name(f"{log.name}_repaired")
        newest = max(log.glob("*.checkpoint.json"))
        newest.write_bytes(newest.read_bytes()[:100])
        count = Table.open(self.uri).count()
        self.say(f"Cut {newest.name} short. Reads fall back to what is older: {count:,} rows.")
        result = repair_log(str(log), str(target))
        self.say(
            f"REPAIR: {result.status}, version {result.source_version}, {result.valid_splits} of "
            f"{result.total_splits} splits present."
        )
        log.rename(log.with_name(f"{log.name}_backup"))
        target.rename(log)
        table = Table.open(self.uri)
        self.say(f"Swapped in: {table.count():,} rows; the next commit is version {table.version + 1}.")

    def run_in_spark(self) -> None:
        """Open a local Spark session and query the same table there."""
        from indextables.spark.session import start_local

        self.title("The same table in Spark")
        spark, seconds = self.timed(lambda: start_local("indextables demo"))
        self.say(f"A local session took {seconds:.0f} s to start.")
        try:
            self._query_in_spark(spark)
        finally:
            spark.stop()

    def _query_in_spark(self, spark: Any) -> None:
        spark.read.format("indextables").load(self.uri).createOrReplaceTempView("events")
        text = "SELECT service, count(*) AS n FROM events WHERE message indexquery 'timeout' GROUP BY service"
        rows, seconds = self.timed(lambda: sorted(spark.sql(text).collect()))
        self.say(text)
        self.say(f"{', '.join(f'{row.service} {row.n:,}' for row in rows)} in {seconds:.1f} s.")
        statement = f"DESCRIBE INDEXTABLES HISTORY '{self.uri}'"
        history = spark.sql(statement).collect()
        self.say(statement)
        self.say(f"{len(history)} versions, the newest by {history[0].operation}.")


def events(day: str, count: int, half: int = 0) -> pa.Table:
    """Log events of one half of a day, the same ones every time."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rng = random.Random(f"{day}/{half}/{count}")  # noqa: S311 - the same events every time, not a secret
    midnight = pc.strptime(pa.array([day]), "%Y-%m-%d", "us").cast(pa.int64())[0].as_py()
    start = midnight + half * _HALF_DAY_US
    seconds = sorted(rng.randrange(_HALF_DAY_US) for _ in range(count))
    service = pa.array(rng.choices(_SERVICES, k=count))
    message = pc.binary_join_element_wise(
        pa.array(rng.choices(_EVENTS, weights=[60, 8, 14, 4, 3, 2, 9], k=count)),
        service,
        pa.array([f"id{rng.randrange(1_000_000)}" for _ in range(count)]),
        " ",
    )
    return pa.table(
        {
            "ts": pa.array([start + micros for micros in seconds], pa.int64()).cast(
                pa.timestamp("us", "UTC")
            ),
            "day": pa.repeat(pa.scalar(day), count),
            "service": service,
            "status": pa.array(rng.choices([200, 302, 404, 500, 503], [80, 8, 7, 3, 2], k=count), pa.int32()),
            "latency_ms": pa.array([rng.expovariate(1 / 40) for _ in range(count)], pa.float64()),
            "message": message,
        }
    )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No warnings meanwhile: the damage of the last step is part of the show."""
    logger = logging.getLogger("indextables")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextlib.contextmanager
def _table_directory(directory: str | None) -> Iterator[Path]:
    if directory:
        yield Path(directory) / "events"
        return
    with tempfile.TemporaryDirectory(prefix="indextables-demo-") as scratch:
        yield Path(scratch) / "events"


@contextlib.contextmanager
def _errors_into_file() -> Iterator[str]:
    """Send standard error to a file that stays, that of the Java process started meanwhile included."""
    number, log = tempfile.mkstemp(prefix="indextables-demo-", suffix=".log")
    sys.stderr.flush()
    before = os.dup(2)
    os.dup2(number, 2)
    os.close(number)
    try:
        yield log
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)


def _wants_spark(spark: bool | None, console: Console) -> bool:
    if spark is False:
        return False
    try:
        from indextables.spark.jvm.installed import check_java

        check_java()
    except MissingPackageError as missing:
        if spark:
            raise
        console.print(f"\nThe part with Spark is left out. {missing.message}", style="dim", markup=False)
        return False
    return True
