"""The statements that the extension's parser takes: which are ours, and CREATE TEMPORARY VIEW."""

from __future__ import annotations

from typing import Any

from indextables.errors import CommandError, NotATableError
from indextables.log.delta.snapshot import DeltaSnapshot
from indextables.model.names import quoted_name
from indextables.spark.jvm import CATALOG, EXTENSIONS
from indextables.spark.load import load_table
from indextables.spark.named_tables import address_of, location_of
from indextables.spark.options import is_connect
from indextables.spark.read.version import resolve_read
from indextables.spark.read.views import TableView, register_view, table_of_name
from indextables.spark.requests import ReadRequest
from indextables.sql.commands.familiar import path_of_source
from indextables.sql.recogniser import CreateView, Form, MaintenanceCommand, SharedCommand


def has_parser(spark: Any) -> bool:
    """Whether the parser of a session is ours: `connect` installs it, unless the session is a server's."""
    return not is_connect(spark) or EXTENSIONS in spark.conf.get("spark.sql.extensions", "")


def names_tables(spark: Any) -> bool:
    """Whether the catalog of the session or its server is ours: Spark then knows our tables by itself."""
    return bool(spark.conf.get("spark.sql.catalog.spark_catalog", None) == CATALOG)


def is_own_command(spark: Any, form: Form) -> bool:
    """Whether a statement is a maintenance command of ours.

    One such as OPTIMIZE is, if its table is ours and Spark does not run it by itself through our catalog; one
    about an index also if its table is Delta's or of Parquet files.
    """
    if not isinstance(form, SharedCommand):
        return isinstance(form, MaintenanceCommand)
    subject = form.subject
    if form.about_index:
        by_path = subject.path or path_of_source(subject.view)
        return by_path is not None or address_of(spark, subject.view) is not None
    if subject.path is None:
        if table_of_name(spark, subject.view) is not None:
            return True
        by_spark = names_tables(spark) and form.is_spark_syntax
        return not by_spark and location_of(spark, quoted_name(*subject.view)) is not None
    if "delta" not in spark.conf.get("spark.sql.extensions", "").lower():
        return True
    try:
        return not isinstance(resolve_read(spark, ReadRequest(subject.path, {}))[1], DeltaSnapshot)
    except NotATableError:
        return False


def create_view(spark: Any, created: CreateView) -> None:
    """CREATE TEMPORARY VIEW ... USING indextables; a table that is not temporary is an error."""
    if not created.temporary:
        raise CommandError(
            f"CREATE {created.kind} ... USING indextables is not supported: an IndexTables table is a "
            "directory, not an entry in a catalog. Write it with "
            "df.write.format('indextables').save('/path'), and name it with "
            "CREATE TEMPORARY VIEW ... USING indextables OPTIONS (path '/path')."
        )
    path = next((value for key, value in created.options.items() if key.lower() == "path"), None)
    if path is None:
        raise CommandError(
            "CREATE TEMPORARY VIEW ... USING indextables needs OPTIONS (path '/path/of/the/table')"
        )
    options = dict(created.options)
    if not {key.lower() for key in options} & {"versionasof", "timestampasof", "query"}:
        options.setdefault("refresh", "true")
    view = TableView(created.name, replace=created.replace, shared=created.shared)
    register_view(load_table(spark, ReadRequest(path, options)), view, ReadRequest(path, options))
