"""What Spark promises of rows that are changed: NULLs, subqueries, the table beside itself, columns of any type.

As in `named_statements`, which these follow; they are about the table `{v}`.
"""

from __future__ import annotations

from typing import Any

from support.named_statements import Said


def said(sql: str, rows: Any = None, op: str | None = None, **more: Any) -> Said:
    return Said(sql, rows, op, on="{v}", **more)


def refused(sql: str, words: str, **more: Any) -> Said:
    return Said(sql, refused=words, on="{v}", **more)


KWX = "SELECT k, w, x FROM {v} ORDER BY k NULLS FIRST, w, x"

NULLS = [
    said("CREATE TABLE {v} (k INT, w STRING, x INT) USING indextables", []),
    said("INSERT INTO {v} VALUES (1, 'a', 10), (2, NULL, 20), (3, 'c', NULL), (NULL, 'd', 40)", [], "WRITE"),
    said("DELETE FROM {v} WHERE w = NULL", [(0,)]),
    said("DELETE FROM {v} WHERE NOT (x > 15)", [(1,)], "DELETE"),
    said("DELETE FROM {v} WHERE k NOT IN (SELECT CAST(NULL AS INT))", [(0,)]),
    said(KWX, [(None, "d", 40), (2, None, 20), (3, "c", None)]),
    said("UPDATE {v} SET x = x + 1 WHERE x IS NOT NULL", [(2,)], "UPDATE"),
    said("UPDATE {v} SET w = 'none' WHERE w IS NULL", [(1,)], "UPDATE"),
    said("UPDATE {v} SET x = NULL WHERE k <=> NULL", [(1,)], "UPDATE"),
    said("UPDATE {v} SET x = 0 WHERE NULL", [(0,)], since="4.0"),
    said(KWX, [(None, "d", None), (2, "none", 21), (3, "c", None)]),
    said(
        "MERGE INTO {v} AS t USING (SELECT CAST(NULL AS INT) AS k, 'm' AS w) s ON t.k = s.k "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, w) VALUES (s.k, s.w)",
        [(1, 0, 0, 1)],
        "MERGE",
    ),
    said(
        "MERGE INTO {v} AS t USING (SELECT CAST(NULL AS INT) AS k) s ON t.k <=> s.k "
        "WHEN MATCHED AND t.w = 'm' THEN DELETE WHEN MATCHED THEN UPDATE SET x = 1",
        [(2, 1, 1, 0)],
        "MERGE",
    ),
    said(KWX, [(None, "d", 1), (2, "none", 21), (3, "c", None)]),
]

SUBQUERIES = [
    said(
        "DELETE FROM {v} AS t WHERE EXISTS (SELECT 1 FROM VALUES (2), (7) AS s(id) WHERE s.id = t.k)",
        [(1,)],
        "DELETE",
    ),
    said("DELETE FROM {v} AS t WHERE EXISTS (SELECT 1 FROM VALUES (7) AS s(id) WHERE s.id = t.k)", [(0,)]),
    said("INSERT INTO {v} SELECT a.k + 10, b.w, 5 FROM {v} a JOIN {v} b ON a.k <=> b.k", [], "WRITE"),
    said(KWX, [(None, "d", 1), (None, "d", 5), (3, "c", None), (13, "c", 5)]),
    said("UPDATE {v} SET w = 'top' WHERE k = (SELECT max(k) FROM {v})", [(1,)], "UPDATE"),
    said("UPDATE {v} SET x = 6 WHERE k IN (SELECT k + 10 FROM {v})", [(1,)], "UPDATE"),
    said("DELETE FROM {v} WHERE k IS NULL AND x = (SELECT min(x) FROM {v})", [(1,)], "DELETE"),
    said(
        "MERGE INTO {v} AS t USING (SELECT k + 10 AS k, w FROM {v} WHERE k < 20) s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET w = s.w WHEN NOT MATCHED THEN INSERT (k, w) VALUES (s.k, s.w)",
        [(2, 1, 0, 1)],
        "MERGE",
    ),
    said(KWX, [(None, "d", 5), (3, "c", None), (13, "c", 6), (23, "top", None)]),
    said("EXPLAIN DELETE FROM {v} WHERE k = 3", has="IndexTables DELETE"),
    said(
        "EXPLAIN MERGE INTO {v} AS t USING (SELECT 3 AS k) s ON t.k = s.k WHEN MATCHED THEN DELETE",
        has="IndexTables MERGE",
    ),
    said("SELECT k, row_number() OVER (ORDER BY k DESC) FROM {v} WHERE k > 3 ORDER BY k", [(13, 2), (23, 1)]),
    said("SELECT count(*) FROM {v} TIMESTAMP AS OF current_timestamp()", [(4,)]),
    said(
        "SELECT count(DISTINCT _metadata.file_name) > 0, max(_metadata.row_index) >= 0 FROM {v}",
        [(True, True)],
    ),
]

DESCRIBED = [
    said("DESCRIBE TABLE EXTENDED {v}", has="indextables"),
    said("SHOW CREATE TABLE {v}", has="w STRING", named=True),
    said("SHOW TABLES IN {db}", has="'v'", named=True),
    said("DESCRIBE INDEXTABLES HISTORY {v}", has="MERGE", named=True),
    said("REFRESH TABLE {v}", [], named=True),
    said("CACHE TABLE {v}", [], named=True),
    said("INSERT INTO {v} VALUES (99, 'cached', 1)", [], "WRITE"),
    said("SELECT count(*) FROM {v}", [(5,)]),
    said("UPDATE {v} SET x = 2 WHERE k = 99", [(1,)], "UPDATE"),
    said("SELECT x FROM {v} WHERE k = 99", [(2,)]),
    said("UNCACHE TABLE {v}", [], named=True),
    refused("ALTER TABLE {v} SET LOCATION '/somewhere/else'", "LOCATION|location", named=True),
    refused("ALTER TABLE {v} ADD CONSTRAINT c CHECK (x > 3)", "breaks the constraint c", named=True),
    said("ALTER TABLE {v} ADD CONSTRAINT c CHECK (x > 0)", None, "ADD CONSTRAINT", has="SUCCESS", named=True),
    refused("INSERT INTO {v} VALUES (100, 'no', -1)", "breaks the constraint c CHECK", named=True),
    said("ALTER TABLE {v} DROP CONSTRAINT c", None, "DROP CONSTRAINT", has="SUCCESS", named=True),
    refused(
        "CREATE TABLE {q}w (a INT) USING indextables CLUSTER BY (a)",
        "CLUSTER BY is not supported",
        named=True,
        since="4.0",
    ),
    refused(
        "CREATE TABLE {q}w (a BIGINT GENERATED ALWAYS AS IDENTITY) USING indextables",
        "(?i)identity",
        named=True,
    ),
]

COLUMNS = [
    said(
        "CREATE OR REPLACE TABLE {v} (k INT NOT NULL, s STRUCT<a: INT, b: STRING>, many ARRAY<INT>, d DATE, "
        "price DECIMAL(10,2), day STRING) USING indextables PARTITIONED BY (day)",
        [],
        "REPLACE TABLE",
    ),
    said(
        "INSERT INTO {v} VALUES (1, named_struct('a', 1, 'b', 'x'), array(1, 2), DATE'2026-01-01', 1.25, 'mon'), "
        "(2, NULL, NULL, NULL, NULL, 'tue')",
        [],
        "WRITE",
    ),
    refused("INSERT INTO {v} (day) VALUES ('wed')", "NOT_NULL|NULL|CANNOT_FIND_DATA|no default"),
    said("UPDATE {v} SET s.a = s.a + 1, price = price * 2 WHERE d < DATE'2026-02-01'", [(1,)], "UPDATE"),
    said(
        "SELECT k, s.a, s.b, many[1], CAST(d AS STRING), CAST(price AS STRING) FROM {v} ORDER BY k",
        [(1, 2, "x", 2, "2026-01-01", "2.50"), (2, None, None, None, None, None)],
    ),
    said("DELETE FROM {v} WHERE s.b = 'nobody'", [(0,)]),
    said(
        "INSERT INTO {v} PARTITION (day = 'wed') (k) VALUES (3)",
        [],
        "WRITE",
        since="4.1",
        older=said("INSERT INTO {v} VALUES (3, NULL, NULL, NULL, NULL, 'wed')", [], "WRITE"),
    ),
    said("SELECT k FROM {v} WHERE day = 'wed'", [(3,)]),
    refused("ALTER TABLE {v} ADD PARTITION (day = 'thu')", "INSERT creates them", named=True),
    said("TRUNCATE TABLE {v} PARTITION (day = 'wed')", [], "DROP PARTITIONS", named=True),
    said("SHOW PARTITIONS {v} PARTITION (day = 'mon')", [("day=mon",)], named=True),
    said(
        "MERGE WITH SCHEMA EVOLUTION INTO {v} AS t USING "
        "(SELECT 1 AS k, 'mon' AS day, 'new' AS fresh UNION ALL SELECT 4, 'fri', 'newer') s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        [(2, 1, 0, 1)],
        "MERGE",
        versions=2,  # Spark adds the columns while it analyses the statement
        since="4.1",
    ),
    said(
        "SELECT k, day, fresh FROM {v} WHERE k IN (1, 4) ORDER BY k",
        [(1, "mon", "new"), (4, "fri", "newer")],
        since="4.1",
    ),
    said("DROP TABLE {v}", [], named=True),
]

MORE = [*NULLS, *SUBQUERIES, *DESCRIBED, *COLUMNS]
