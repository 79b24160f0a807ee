"""One request from the JVM: its JSON part, the Java objects passed with it, and the session."""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from indextables.log.transaction_log import TransactionLog
from indextables.spark.open_logs import open_log
from indextables.spark.options import READ_KEYS, CallSettings, settings_for
from indextables.spark.versions import classic, frame_class


@dataclass(frozen=True)
class JvmRequest:
    """One request of `Bridge.call`."""

    spark: Any
    arguments: Mapping[str, Any]
    """What the JVM sent as JSON."""
    objects: Any
    """A Java map; entries put into it are returned to the JVM."""

    @property
    def path(self) -> str:
        """The path of the table."""
        return str(self.arguments["path"])

    @property
    def options(self) -> dict[str, str]:
        """The table's options in the catalog."""
        return dict(self.arguments.get("options") or {})

    @cached_property
    def settings(self) -> CallSettings:
        """The session's settings, overridden by the table's options."""
        when = self.arguments.get("when") or {}
        return settings_for(self.spark, {**self.options, **when}, READ_KEYS, self.path)

    def log(self) -> TransactionLog:
        """The log of the table."""
        return open_log(self.spark, self.path, self.settings.table)

    def frame(self, name: str) -> Any:
        """A Dataset passed with the request; None if there is none."""
        dataset = self.objects.get(name)
        return None if dataset is None else frame_class()(dataset, self.spark)

    def frame_of_plan(self, name: str) -> Any:
        """A logical plan passed with the request, as a DataFrame; None if there is none."""
        plan = self.objects.get(name)
        if plan is None:
            return None
        datasets = getattr(classic(self.spark.sparkContext._jvm), "Dataset$")
        return frame_class()(getattr(datasets, "MODULE$").ofRows(self.spark._jsparkSession, plan), self.spark)


def row_counts(
    *, updated: int | None = 0, deleted: int | None = 0, inserted: int | None = 0
) -> dict[str, int | None]:
    """How many rows a statement has changed, by the columns of its result; None is unknown."""
    return {"num_updated_rows": updated, "num_deleted_rows": deleted, "num_inserted_rows": inserted}
