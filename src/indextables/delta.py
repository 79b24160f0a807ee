"""Delta Lake tables: replay their log, prune it, read their rows. Nothing here writes.

`files` needs no Spark and no Java; give it a session and large tables are
replayed on the cluster. `replay`, `apply_skipping` and `read` leave the result
on the cluster as a DataFrame.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from indextables.errors import OptionError
from indextables.log.delta_snapshot import DeltaSnapshot, open_snapshot
from indextables.log.history import Moment, moment_of
from indextables.options import Options
from indextables.runtime import LOCAL

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["apply_skipping", "files", "read", "replay"]


def files(  # noqa: PLR0917 - the names are the interface
    uri: Any,
    where: Any = None,
    version: int | None = None,
    as_of: Moment | None = None,
    spark: Any = None,
    engine: str = "auto",
    options: Mapping[str, str] | None = None,
) -> pa.Table:
    """Return the live files of a Delta table as Arrow, in the order of its log.

    `where` leaves out the files that cannot hold a matching row. Columns: path
    (decoded), uri, dv (unique id of the deletion vector), size,
    modification_time, num_records (deleted rows included), partition_values
    (typed), stats (as written), data_change, tags, deletion_vector.
    """
    snapshot = _snapshot(uri, version, as_of, spark, options)
    return snapshot.plan(where, engine=engine).files


def replay(spark: Any, uri: Any, version: int | None = None, options: Mapping[str, str] | None = None) -> Any:
    """Return the live files as a DataFrame that stays on the cluster; `apply_skipping` prunes it there."""
    return _spark().replay(spark, _snapshot(uri, version, None, spark, options))


def apply_skipping(df: Any, schema: Any, where: Any) -> Any:
    """Leave out of a replayed DataFrame the files that cannot hold a row matching `where`.

    `schema` is the table's: a pyarrow.Schema, a Spark StructType or its JSON
    text. A file without statistics is always kept.
    """
    return _spark().apply_skipping(df, schema, where)


def read(
    spark: Any,
    uri: Any,
    where: Any = None,
    version: int | None = None,
    options: Mapping[str, str] | None = None,
) -> Any:
    """Return the live rows of a Delta table as a DataFrame, deletion vectors applied.

    `where` filters the rows exactly, and files that cannot match are not read.
    """
    return _spark().read(spark, _snapshot(uri, version, None, spark, options), where)


def _snapshot(
    uri: Any, version: int | None, as_of: Moment | None, spark: Any, options: Mapping[str, str] | None
) -> DeltaSnapshot:
    if version is not None and as_of is not None:
        raise OptionError("give a version or a time to read as of, not both", version=version)
    if spark is None:
        resolved, runtime = Options.of(options), LOCAL
    else:
        resolved, runtime = _spark().surroundings(spark, options)
    moment = None if as_of is None else moment_of(as_of, resolved.search.time_zone)
    return open_snapshot(uri, version=version, as_of_ms=moment, options=resolved, runtime=runtime)


def _spark() -> Any:
    # Spark lies above the facades; this is the one door to it here.
    return importlib.import_module("indextables.spark.deltaread")
