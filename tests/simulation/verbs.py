"""Every public verb of `Table`, and what the simulation makes of it.

The names come from the class, so that a verb which nobody thought of fails a
test. A verb is simulated by steps of a `TableActor` or asked as a question; for
the few that are neither, the reason stands here.
"""

from __future__ import annotations

from indextables.table import Table

WRITTEN_BY: dict[str, tuple[str, ...]] = {
    "append": ("append", "txn", "grow"),
    "overwrite": ("overwrite", "overwrite_where", "overwrite_partitions", "redefine"),
    "delete": ("delete", "delete_query"),
    "update": ("update",),
    "merge": ("upsert", "upsert_delete"),
    "restore": ("restore",),
    "merge_splits": ("merge",),
    "purge_rows": ("merge",),
    "drop_partitions": ("drop_partitions",),
    "update_properties": ("properties",),
    "checkpoint": ("checkpoint",),
    "truncate_history": ("truncate",),
    "purge": ("purge",),
}
"""The steps that call a verb which changes the table or its files."""

READ_BY: dict[str, tuple[str, ...]] = {
    "scan": ("read", "travel"),
    "count": ("read", "travel"),
    "search": ("read", "search", "travel"),
    "aggregate": ("read", "travel"),
    "facets": ("read", "travel"),
    "histogram": ("read", "travel"),
    "describe": ("read", "travel"),
    "files": ("read", "travel"),
    "refresh": ("read",),
    "history": ("as_of", "find"),
}
"""The steps that ask a verb which only reads."""

NOT_SIMULATED = {
    "create": "every history begins with a table that was made by the call below it",
    "open": "opens a store by its address; `read`, `travel` and `as_of` open the same snapshots",
    "exists": "opens a store by its address, and asks no more than `open`",
    "explain_score": "asks one split about one row, by what the search itself uses",
    "suggest_statistics": "reads the scans of this process; what it stores is a property, as `update_properties`",
    "writer": "appends as `append` does, from threads of its own, which a history cannot order; "
    "tests/race/test_writer.py kills it and shares it",
    "add_constraint": "commits as `update_properties` does; the race with writers is in test_commit_conflicts.py",
    "drop_constraint": "commits as `update_properties` does",
    "add_column": "commits as `update_properties` does; tests/property/test_column_laws.py draws changes of columns",
    "rename_column": "as `add_column`",
    "drop_column": "as `add_column`",
    "move_column": "as `add_column`",
    "changes": "the difference of versions, which tests/property/test_change_laws.py draws",
    "head": "the first rows of `scan`",
    "sample": "some rows of `scan`, drawn by number",
    "to_pandas": "all rows of `scan` as another library has them",
    "to_polars": "all rows of `scan` as another library has them",
    "skipped_files": "files that a merge could not read, which a simulated store never has",
    "to_df": "needs Spark",
    "search_df": "needs Spark",
}
"""Why a verb is not simulated."""


def public_verbs() -> set[str]:
    """The names of the public methods of `Table`, its bases included."""
    return {name for name in dir(Table) if not name.startswith("_") and callable(getattr(Table, name))}
