"""The public surface, exactly."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import indextables as it

NAMES = {
    "AddAction", "CommitInfo", "DeltaTable", "Error", "MetadataAction", "ProtocolAction", "RemoveAction", "SkipAction", "Table",
    "TransactionLog", "TxnAction", "check", "col", "companion", "configure", "connect", "delta", "disconnect", "errors", "functions", "open",
    "plain_query", "read", "repair_log", "sql", "truncate_statistics", "write",
}  # fmt: skip

TABLE = {
    "append", "as_of", "checkpoint", "count", "create", "delete", "describe", "drop_partitions", "exists", "explain_score", "files",
    "head", "history", "last_scan", "merge_splits", "metadata", "open", "overwrite", "partition_columns", "protocol", "purge",
    "purge_rows", "refresh", "restore", "sample", "scan", "schema", "search", "search_df", "skipped_files", "spark_schema", "to_df", "to_pandas", "to_polars",
    "truncate_history", "uri", "version", "writer",
}  # fmt: skip

LOG = {
    "add_files", "cache_stats", "checkpoint", "cleanup", "files_in_cooldown", "filter_files_in_cooldown", "initialize",
    "invalidate_cache", "is_in_cooldown", "last_commit", "latest_version", "list_files", "metadata", "open",
    "overwrite_files", "protocol", "read_version", "record_skipped_file", "remove_files", "skipped_files", "snapshot",
    "update_properties", "versions",
}  # fmt: skip


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def test_the_package_offers_these_names_and_no_others():
    assert set(it.__all__) == NAMES
    assert set(dir(it)) == NAMES | {"__version__"}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_public_name_loads_and_is_documented(name):
    assert inspect.getdoc(getattr(it, name))


def test_a_table_has_the_documented_members():
    assert TABLE - public(it.Table) <= {"as_of"}


def test_the_log_has_the_documented_members():
    assert public(it.TransactionLog) >= LOG


def test_every_public_member_of_table_and_log_is_documented():
    for kind in (it.Table, it.TransactionLog):
        for name in public(kind):
            assert inspect.getdoc(getattr(kind, name)), f"{kind.__name__}.{name}"


def loaded_after(statement):
    script = f"{statement}\nimport sys\nprint(' '.join(sorted(m.split('.')[0] for m in sys.modules)))"
    return set(
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout.split()
    )


def test_searching_a_split_on_an_executor_loads_neither_spark_nor_the_log():
    modules = loaded_after(
        "import indextables.split.search.run\nimport sys\nassert not [m for m in sys.modules if m.startswith(('indextables.log', 'indextables.table'))]"
    )
    assert not {"pyspark", "pandas"} & modules


def test_errors_survive_pickling_with_their_fields():
    import pickle

    from indextables.errors import ConflictError

    error = pickle.loads(pickle.dumps(ConflictError("version 3 is taken", version=3)))
    assert (str(error), error.version) == ("version 3 is taken", 3)
