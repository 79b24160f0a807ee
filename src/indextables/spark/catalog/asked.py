"""One question of the JVM's: its plain part, the objects that came with it, and the session that asks."""

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


@dataclass(frozen=True)
class Asked:
    """What `Bridge.call` sends."""

    spark: Any
    request: Mapping[str, Any]
    objects: Any
    """A Java map; what is put into it goes back."""

    @property
    def path(self) -> str:
        """Where the table is."""
        return str(self.request["path"])

    @property
    def options(self) -> dict[str, str]:
        """The options that the catalog keeps for the table."""
        return dict(self.request.get("options") or {})

    @cached_property
    def settings(self) -> CallSettings:
        """The table's options over the session's."""
        when = self.request.get("when") or {}
        return settings_for(self.spark, {**self.options, **when}, READ_KEYS, self.path)

    def log(self) -> TransactionLog:
        """The log of the table."""
        return open_log(self.spark, self.path, self.settings.table)

    def frame(self, name: str) -> Any:
        """A Dataset that came along; None when there is none."""
        from pyspark.sql.classic.dataframe import DataFrame

        found = self.objects.get(name)
        return None if found is None else DataFrame(found, self.spark)

    def frame_of_plan(self, name: str) -> Any:
        """A logical plan that came along, as a DataFrame; None when there is none."""
        from pyspark.sql.classic.dataframe import DataFrame

        plan = self.objects.get(name)
        if plan is None:
            return None
        datasets = getattr(self.spark.sparkContext._jvm.org.apache.spark.sql.classic, "Dataset$")
        return DataFrame(getattr(datasets, "MODULE$").ofRows(self.spark._jsparkSession, plan), self.spark)
