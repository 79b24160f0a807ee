"""Answers Spark's parser about our own statements, and runs them: the Python side of `Statement.java`."""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

from typing import Any

import pyarrow as pa

from indextables.spark.bridge.request import JvmRequest
from indextables.spark.sql.own_statements import create_view, is_own_command
from indextables.spark.versions import frame_of_arrow
from indextables.sql.recogniser import CreateView, recognise
from indextables.sql.runner import columns
from indextables.sql.runner import sql as run_sql


def statement(request: JvmRequest) -> dict[str, Any]:
    """The columns of a statement of ours, as Spark writes a schema; nothing for a statement of another's."""
    text = str(request.arguments["text"])
    form = recognise(text).form
    if isinstance(form, CreateView) and form.temporary:
        schema = pa.schema([])
    elif is_own_command(request.spark, form):
        schema = columns(text, request.spark)
    else:
        return {}
    return {"schema": frame_of_arrow(request.spark, schema.empty_table()).schema.json()}


def run_statement(request: JvmRequest) -> dict[str, Any]:
    """Run a statement of ours; its rows, if it has any, are left for the JVM."""
    text = str(request.arguments["text"])
    form = recognise(text).form
    if isinstance(form, CreateView):
        create_view(request.spark, form)
    else:
        request.objects["rows"] = frame_of_arrow(request.spark, run_sql(text, request.spark))._jdf
    return {}
