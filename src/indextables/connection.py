"""From the `spark=` argument of a public call to what the code below it takes: options and a Runtime.

This is the only module below `spark/` that names it. The facades call it once
per handle; everything under them gets the Runtime and never sees a session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from indextables.lazy import later, load
from indextables.options import Options
from indextables.runtime import LOCAL, Runtime

if TYPE_CHECKING:
    from indextables.log import transaction_log
    from indextables.log.transaction_log import TransactionLog
else:
    transaction_log = later("indextables.log.transaction_log")


def options_and_runtime(
    spark: Any, options: Mapping[str, Any] | Options | None, uri: Any = None
) -> tuple[Options, Runtime]:
    """The options of a call and the Runtime it works in.

    Without a session that is this process. With one, its configuration and its
    Hadoop configuration for the store of `uri` stand beneath the given options,
    and long work runs on its executors.
    """
    if spark is None:
        return Options.of(options), LOCAL
    session = load("indextables.spark.session")
    return session.options_of(spark, options, None if uri is None else str(uri)), session.runtime_of(spark)


def open_log(uri: Any, options: Mapping[str, Any] | Options | None, spark: Any = None) -> TransactionLog:
    """The log of a table at a path; nothing is read yet."""
    resolved, runtime = options_and_runtime(spark, options, uri)
    return transaction_log.TransactionLog.open(uri, resolved, runtime=runtime)


def delta_frames() -> Any:
    """What reads Delta tables on a session: `read`, `replay`, `apply_skipping` and `node_of_column`."""
    return load("indextables.spark.delta.tables")
