"""Statements on a named table: each with the rows it gives or the refusal it meets, and what it does to the log.

`{t}` is a table with the columns id, day, message and n, `{u}` and `{v}` are names
that are free, and `{q}` is the prefix of names beside them. A statement that
commits says the operation of the one version it makes; one that says nothing
makes none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Said:
    """One statement and what is expected of it."""

    sql: str
    rows: list[tuple[Any, ...]] | None = None
    op: str | None = None
    refused: str | None = None
    on: str = "{t}"
    """The table whose log is looked at."""
    named: bool = False
    """Whether it is about names, which a path has none of."""
    has: str | None = None
    """A text that occurs in the rows, where the rows say more than is ours to promise."""
    versions: int = 1
    """How many versions a statement that commits makes."""
    since: str | None = None
    """The first Spark that knows the statement."""
    older: Said | None = None
    """What an older Spark runs in its place, where what follows needs its rows."""


def said(sql: str, rows: Any = None, op: str | None = None, **more: Any) -> Said:
    return Said(sql, rows, op, **more)


def in_full(sql: str, names: str, *rows: str) -> Said:
    """An INSERT that names some columns; before 4.1 Spark takes no INSERT into a data source without all of them."""
    return said(
        sql,
        [],
        "WRITE",
        since="4.1",
        older=said(f"INSERT INTO {names} VALUES {', '.join(rows)}", [], "WRITE"),
    )


def refused(sql: str, words: str, **more: Any) -> Said:
    return Said(sql, refused=words, **more)


ALL = "SELECT id, day, message, n FROM {t} ORDER BY id"
IDS = "SELECT id FROM {t} ORDER BY id"
SOURCE = "(SELECT * FROM VALUES (1, 'a', 'merged', 10L), (9, 'c', 'inserted', 90L) AS s(id, day, message, n))"

STATEMENTS = [
    # CREATE and what it says about itself
    said(
        "CREATE TABLE {t} (id INT, day STRING, message STRING COMMENT 'words', n BIGINT DEFAULT 7) "
        "USING indextables PARTITIONED BY (day) COMMENT 'a table' "
        "TBLPROPERTIES ('indexing.typemap.message' = 'text', 'owner.team' = 'x')",
        [],
    ),
    refused("CREATE TABLE {t} (id INT) USING indextables", "TABLE_OR_VIEW_ALREADY_EXISTS"),
    said("CREATE TABLE IF NOT EXISTS {t} (id INT) USING indextables", []),
    said(ALL, []),
    said("SELECT count(*) FROM {t}", [(0,)]),
    said("SHOW COLUMNS IN {t}", [("id",), ("day",), ("message",), ("n",)], named=True, since="4.0"),
    said(
        "SHOW TBLPROPERTIES {t}",
        # Spark hides the value of a property whose name has "token" in it.
        [
            ("owner.team", "x"),
            ("spark.indextables.deletionVectors.enabled", "true"),
            ("spark.indextables.indexing.tokenizer.message", "*********(redacted)"),
            ("spark.indextables.indexing.typemap.message", "text"),
        ],
    ),
    said("SHOW TBLPROPERTIES {t} ('owner.team')", [("owner.team", "x")]),
    refused("CREATE TABLE {u} (a INT, b INT GENERATED ALWAYS AS (a + 1)) USING indextables", "generated col"),
    refused("CREATE TABLE {u} (a INT) USING indextables PARTITIONED BY (bucket(4, a))", "name a column"),
    refused("CREATE TABLE {u} (a INT) USING indextables PARTITIONED BY (b)", "b"),
    refused(
        "CREATE TABLE {u} (a INT) USING indextables TBLPROPERTIES ('indexing.typemap.a' = 'text')", "text"
    ),
    # INSERT in all its forms
    said("INSERT INTO {t} VALUES (1, 'a', 'hello world', 1), (2, 'b', 'error timeout', 2)", [], "WRITE"),
    in_full("INSERT INTO {t} (id, day) VALUES (3, 'a')", "{t}", "(3, 'a', NULL, 7)"),
    in_full(
        "INSERT INTO {t} BY NAME SELECT 'b' AS day, 4 AS id, 'named' AS message",
        "{t}",
        "(4, 'b', 'named', 7)",
    ),
    said("INSERT INTO {t} TABLE {t}", [], "WRITE"),
    said("SELECT count(*) FROM {t}", [(8,)]),
    said("INSERT OVERWRITE {t} SELECT DISTINCT * FROM {t}", [], "OVERWRITE"),
    said(
        ALL,
        [(1, "a", "hello world", 1), (2, "b", "error timeout", 2), (3, "a", None, 7), (4, "b", "named", 7)],
    ),
    refused("INSERT INTO {t} VALUES (1, 'a')", "INSERT_COLUMN_ARITY_MISMATCH"),
    refused("INSERT INTO {t} VALUES ('x', 'a', 'm', 1)", "INCOMPATIBLE|CAST_INVALID"),
    refused(
        "INSERT INTO {t} BY NAME SELECT 1 AS id, 'a' AS nobody",
        "EXTRA_COLUMNS|cannot|nobody|CANNOT_FIND_DATA",
    ),
    said("INSERT INTO {t} WITH c AS (SELECT 5 AS id) SELECT id, 'e', 'cte', 0 FROM c", [], "WRITE"),
    said("INSERT INTO {t} VALUES (6, 'e', 'default', DEFAULT)", [], "WRITE"),
    said("SELECT n FROM {t} WHERE id = 6", [(7,)]),
    said("INSERT OVERWRITE {t} PARTITION (day = 'e') SELECT 50, 'over', 1L", [], "OVERWRITE"),
    said(IDS, [(1,), (2,), (3,), (4,), (50,)]),
    said("INSERT INTO {t} REPLACE WHERE day = 'e' SELECT 51, 'e', 'replaced', 3L", [], "OVERWRITE"),
    said("INSERT INTO {t} REPLACE WHERE id BETWEEN 50 AND 52 SELECT 52, 'e', 'again', 3L", [], "OVERWRITE"),
    said(IDS, [(1,), (2,), (3,), (4,), (52,)]),
    refused("INSERT INTO {t} REPLACE WHERE day = 'e' SELECT 60, 'f', 'outside', 3L", "outside the condition"),
    refused("INSERT INTO {t} REPLACE WHERE rand() < 0.5 SELECT 60, 'f', 'x', 3L", "."),
    # reading
    said("SELECT id FROM {t} WHERE day = 'a' AND n > 1 ORDER BY id", [(3,)]),
    said("SELECT day, count(*) FROM {t} GROUP BY day ORDER BY day", [("a", 2), ("b", 2), ("e", 1)]),
    said("SELECT count(*) FROM {t} WHERE message IS NULL", [(1,)]),
    said("SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.id + 1 ORDER BY a.id", [(2,), (3,), (4,)]),
    said("SELECT id FROM {t} WHERE id = (SELECT max(id) FROM {t})", [(52,)]),
    said(
        "SELECT id FROM {t} WHERE EXISTS (SELECT 1 FROM {t} x WHERE x.id = {t}.id + 1) ORDER BY id",
        [(1,), (2,), (3,)],
        named=True,
    ),
    said("WITH c AS (SELECT id FROM {t} WHERE day = 'b') SELECT * FROM c ORDER BY id", [(2,), (4,)]),
    said(
        "SELECT count(_metadata.file_path) = count(*), min(_metadata.file_path) IS NULL FROM {t} WHERE day = 'b'",
        [(True, False)],
    ),
    said("SELECT count(*) FROM {t} WHERE _metadata.file_size > 0", [(5,)]),
    said("SELECT count(*) FROM {t} VERSION AS OF 1", [(2,)]),
    said("SELECT count(*) FROM {t} FOR SYSTEM_VERSION AS OF 2", [(3,)]),
    said("SELECT count(*) FROM {t} VERSION AS OF '3'", [(4,)]),
    refused("SELECT count(*) FROM {t} VERSION AS OF 1000", "1000"),
    refused("SELECT count(*) FROM {t} TIMESTAMP AS OF '1999-01-01'", "1999|before|version"),
    said("SELECT count(*) FROM {q}`{last}@v1`", [(2,)], named=True),
    refused("DELETE FROM {q}`{last}@v1` WHERE id = 1", "only the newest", named=True),
    # DELETE
    said("DELETE FROM {t} WHERE id = 4", [(1,)], "DELETE"),
    said("DELETE FROM {t} WHERE id = 4000", [(0,)]),
    said("DELETE FROM {t} WHERE day = 'e'", [(1,)], "DELETE"),
    said("DELETE FROM {t} WHERE message = 'nobody' OR n > 1000", [(0,)]),
    said(IDS, [(1,), (2,), (3,)]),
    said("DELETE FROM {t} WHERE id IN (SELECT max(id) FROM {t})", [(1,)], "DELETE"),
    said(IDS, [(1,), (2,)]),
    refused("DELETE FROM {t} WHERE nobody = 1", "UNRESOLVED_COLUMN"),
    # UPDATE
    said("UPDATE {t} SET message = concat(message, '!'), n = n + 1 WHERE id <= 2", [(2,)], "UPDATE"),
    said(ALL, [(1, "a", "hello world!", 2), (2, "b", "error timeout!", 3)]),
    said("UPDATE {t} SET day = 'z' WHERE id = 2", [(1,)], "UPDATE"),
    said("SHOW PARTITIONS {t}", [("day=a",), ("day=z",)], named=True),
    said("UPDATE {t} SET n = DEFAULT WHERE id = 2", [(1,)], "UPDATE"),
    said("UPDATE {t} SET n = (SELECT max(n) FROM {t}) WHERE id = 1", [(1,)], "UPDATE"),
    said("UPDATE {t} SET n = 0 WHERE id = 1000", [(0,)]),
    said("SELECT id, n FROM {t} ORDER BY id", [(1, 7), (2, 7)]),
    refused("UPDATE {t} SET nobody = 1", "UNRESOLVED_COLUMN|FIELD_NOT_FOUND|nobody"),
    # MERGE
    said(
        f"MERGE INTO {{t}} AS x USING {SOURCE} s ON x.id = s.id WHEN MATCHED THEN UPDATE SET message = s.message "
        "WHEN NOT MATCHED THEN INSERT *",
        [(2, 1, 0, 1)],
        "MERGE",
    ),
    said(ALL, [(1, "a", "merged", 7), (2, "z", "error timeout!", 7), (9, "c", "inserted", 90)]),
    said(
        "MERGE INTO {t} AS x USING (SELECT 9 AS id UNION ALL SELECT 77) s ON x.id = s.id "
        "WHEN MATCHED AND x.n > 50 THEN DELETE WHEN NOT MATCHED THEN INSERT (id, day) VALUES (s.id, 'q')",
        [(2, 0, 1, 1)],
        "MERGE",
    ),
    said("SELECT id, day, n FROM {t} ORDER BY id", [(1, "a", 7), (2, "z", 7), (77, "q", 7)]),
    said(
        "MERGE INTO {t} AS x USING (SELECT 1 AS id) s ON x.id = s.id "
        "WHEN NOT MATCHED BY SOURCE AND x.id > 50 THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = -1",
        [(2, 1, 1, 0)],
        "MERGE",
    ),
    said("SELECT id, n FROM {t} ORDER BY id", [(1, 7), (2, -1)]),
    refused(
        "MERGE INTO {t} USING (SELECT 1 AS id UNION ALL SELECT 1) s ON {t}.id = s.id "
        "WHEN MATCHED THEN UPDATE SET message = 'twice'",
        "MERGE_CARDINALITY_VIOLATION",
        named=True,
    ),
    said(
        "MERGE INTO {t} AS x USING (SELECT CAST(NULL AS INT) AS id) s ON x.id = s.id WHEN MATCHED THEN DELETE",
        [(0, 0, 0, 0)],
    ),
    said("SELECT count(*) FROM {t}", [(2,)]),
    # ALTER
    said("ALTER TABLE {t} ADD COLUMNS (extra INT COMMENT 'more')", [], "ALTER TABLE"),
    said("ALTER TABLE {t} ALTER COLUMN extra SET DEFAULT 5", [], "ALTER TABLE"),
    said(
        "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",
        [],
        "ALTER TABLE",
        since="4.0",
        older=refused("ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT", "Spark 3.5 does not"),
    ),
    said("ALTER TABLE {t} ALTER COLUMN message COMMENT 'other'", [], "ALTER TABLE"),
    in_full("INSERT INTO {t} (id, day) VALUES (500, 'a')", "{t}", "(500, 'a', NULL, 7, 5)"),
    said("SELECT id, extra FROM {t} ORDER BY id", [(1, None), (2, None), (500, 5)]),
    said("ALTER TABLE {t} RENAME COLUMN extra TO spare", [], "ALTER TABLE"),
    said("SELECT id, spare FROM {t} WHERE spare = 5 OR id = 1 ORDER BY id", [(1, None), (500, 5)]),
    said("UPDATE {t} SET spare = id WHERE spare > 4", [(1,)], "UPDATE"),
    said("ALTER TABLE {t} DROP COLUMN spare", [], "ALTER TABLE"),
    said("ALTER TABLE {t} ADD COLUMN extra INT AFTER n", [], "ALTER TABLE"),
    said("ALTER TABLE {t} ALTER COLUMN extra SET DEFAULT 5", [], "ALTER TABLE"),
    said("SELECT id, extra FROM {t} ORDER BY id", [(1, None), (2, None), (500, None)]),
    refused("SELECT spare FROM {t}", "spare"),
    refused("ALTER TABLE {t} RENAME COLUMN id TO DAY", "ALREADY_EXISTS|there is a column"),
    refused("ALTER TABLE {t} DROP COLUMN day", "partitioned by it"),
    refused("ALTER TABLE {t} ALTER COLUMN n TYPE INT", "NOT_SUPPORTED_CHANGE_COLUMN|cannot become"),
    refused("ALTER TABLE {t} ADD COLUMN d INT DEFAULT 4", "SET DEFAULT"),
    refused("ALTER TABLE {t} ADD COLUMN d INT NOT NULL", "NOT NULL"),
    refused("ALTER TABLE {t} ADD COLUMN ID INT", "ALREADY_EXISTS"),
    said("ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b', 'checkpoint.interval' = '20')", [], "ALTER TABLE"),
    said("ALTER TABLE {t} UNSET TBLPROPERTIES ('a')", [], "ALTER TABLE"),
    refused("ALTER TABLE {t} SET TBLPROPERTIES ('checkpoint.interval' = 'often')", "often"),
    said(
        "SHOW TBLPROPERTIES {t} ('spark.indextables.checkpoint.interval')",
        [("spark.indextables.checkpoint.interval", "20")],
    ),
    said("COMMENT ON TABLE {t} IS 'another'", [], "ALTER TABLE"),
    said("ALTER TABLE {t} DROP PARTITION (day = 'z')", [], "DROP PARTITIONS", named=True),
    said("ANALYZE TABLE {t} COMPUTE STATISTICS", [], named=True),
    # definitions with rows
    said(
        "CREATE TABLE {u} USING indextables PARTITIONED BY (day) AS SELECT * FROM {t}", [], "WRITE", on="{u}"
    ),
    said("SELECT count(*) FROM {u} WHERE id = 1", [(1,)], on="{u}"),
    said(
        "CREATE OR REPLACE TABLE {u} USING indextables AS SELECT id + 1 AS id FROM {u}",
        [],
        "REPLACE TABLE AS SELECT",
        on="{u}",
    ),
    said("SELECT * FROM {u} WHERE id = 2", [(2,)], on="{u}"),
    refused(
        "CREATE OR REPLACE TABLE {u} USING indextables AS SELECT CAST(raise_error('no row') AS INT) AS x",
        "no row",
        on="{u}",
    ),
    said("SELECT * FROM {u} WHERE id = 2", [(2,)], on="{u}"),
    said("REPLACE TABLE {u} (x STRING) USING indextables", [], "REPLACE TABLE", on="{u}"),
    said("SELECT * FROM {u}", [], on="{u}"),
    refused("CREATE TABLE {v} USING indextables AS SELECT CAST(raise_error('no row') AS INT) AS x", "no row"),
    refused("SELECT * FROM {v}", "NOT_FOUND|is not an IndexTables table"),
    said("CREATE TABLE {v} LIKE {t}", [], named=True, since="4.3"),
    said("SHOW TBLPROPERTIES {v} ('owner.team')", [("owner.team", "x")], named=True, since="4.3"),
    said("SELECT count(*) FROM {v}", [(0,)], named=True, since="4.3"),
    said("DROP TABLE {v}", [], named=True, since="4.3"),
    said("ALTER TABLE {u} RENAME TO {q}renamed", [], named=True),
    said("SELECT * FROM {q}renamed", [], named=True),
    said("DROP TABLE {q}renamed PURGE", [], named=True),
    refused("SELECT * FROM {q}renamed", "NOT_FOUND", named=True),
    # views, caches
    said("CREATE OR REPLACE TEMPORARY VIEW over_t AS SELECT id, day FROM {t} WHERE day = 'a'", []),
    said("SELECT count(*) FROM over_t", [(2,)]),
    in_full("INSERT INTO {t} (id, day) VALUES (8, 'a')", "{t}", "(8, 'a', NULL, 7, 5)"),
    said("SELECT count(*) FROM over_t", [(3,)]),
    said("CACHE TABLE cached AS SELECT * FROM {t}", [], named=True),
    said("SELECT count(*) FROM cached", [(3,)], named=True),
    said("DELETE FROM {t} WHERE id = 8", [(1,)], "DELETE"),
    said("SELECT count(*) FROM cached", [(2,)], named=True),
    said("DROP VIEW cached", [], named=True),
    said("TRUNCATE TABLE {t}", [], "DELETE"),
    said("SELECT count(*) FROM {t}", [(0,)]),
    said("DROP TABLE {t}", [], named=True),
    refused("SELECT * FROM {t}", "NOT_FOUND", named=True),
]
