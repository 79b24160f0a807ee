"""Tests on several versions of Spark: what they need of a newer one, and what they call that an older one lacks."""

from __future__ import annotations

import functools
from typing import Any

import pytest

# What Spark's users cannot do before a version; none of it is a statement of ours.
SINCE = {
    "variants": (4, 0),
    "collations": (4, 0),
    "DataFrame.mergeInto": (4, 0),
    "functions written in SQL": (4, 0),
    "the server of Spark Connect in PySpark's package": (4, 0),
    "CHECK in CREATE TABLE": (4, 1),
    "CREATE TABLE LIKE": (4, 3),
    "MERGE with schema evolution": (4, 1),
    "filters that reach Parquet past a column of Python's": (4, 1),
    "data sources in Python, which say what to do": (4, 0),
    "the steps of MERGE INTO in the order of the architecture page": (4, 3),
}


def needs(feature: str) -> pytest.MarkDecorator:
    """Skips a test, or a parameter of one, where Spark is older than what it is about."""
    return pytest.mark.needs_spark(feature)


def reason_to_skip(feature: str) -> str | None:
    """Why a test cannot run with the PySpark that is installed; None if it can."""
    from indextables.spark.versions import installed

    since = ".".join(map(str, SINCE[feature]))
    return None if installed() >= SINCE[feature] else f"{feature}: since Spark {since}"


def teach_arrow() -> None:
    """Give PySpark 3.5 `toArrow` and `createDataFrame` of an Arrow table, by what our code has in their place."""
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from indextables.spark.versions import arrow_of_frame, frame_of_arrow, installed

    if installed() >= (4, 0) or hasattr(DataFrame, "toArrow"):
        return
    original = SparkSession.createDataFrame

    @functools.wraps(original)
    def create(self: Any, data: Any, schema: Any = None, *rest: Any, **named: Any) -> Any:
        if isinstance(data, pa.Table):
            return frame_of_arrow(self, data, schema)
        return original(self, data, schema, *rest, **named)

    SparkSession.createDataFrame = create
    DataFrame.toArrow = arrow_of_frame
