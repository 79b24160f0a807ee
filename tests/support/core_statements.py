"""A short chain of statements with every verb in it, for places where a session is dear: Hive, Connect, the oldest Spark.

As in `named_statements`, which has all of them.
"""

from __future__ import annotations

from support.named_statements import ALL, IDS, in_full, refused, said

SOURCE = "(SELECT 1 AS id, 'merged' AS message UNION ALL SELECT 9, 'inserted')"

CORE = [
    said(
        "CREATE TABLE {t} (id INT, day STRING, message STRING, n BIGINT DEFAULT 7) USING indextables "
        "PARTITIONED BY (day) TBLPROPERTIES ('indexing.typemap.message' = 'text', 'owner.team' = 'x')",
        [],
    ),
    refused("CREATE TABLE {t} (id INT) USING indextables", "ALREADY_EXISTS"),
    said("SHOW TBLPROPERTIES {t} ('owner.team')", [("owner.team", "x")]),
    said("SHOW CREATE TABLE {t}", has="USING indextables", named=True),
    said("DESCRIBE TABLE {t}", has="message"),
    said("INSERT INTO {t} VALUES (1, 'a', 'hello world', 1), (2, 'b', 'error timeout', 2)", [], "WRITE"),
    in_full("INSERT INTO {t} (id, day) VALUES (3, 'a')", "{t}", "(3, 'a', NULL, 7)"),
    in_full(
        "INSERT INTO {t} BY NAME SELECT 'b' AS day, 4 AS id, 'named' AS message",
        "{t}",
        "(4, 'b', 'named', 7)",
    ),
    said("INSERT OVERWRITE {t} PARTITION (day = 'e') SELECT 50, 'over', 1L", [], "OVERWRITE"),
    said("INSERT INTO {t} REPLACE WHERE day = 'e' SELECT 51, 'e', 'replaced', 3L", [], "OVERWRITE"),
    refused("INSERT INTO {t} REPLACE WHERE day = 'e' SELECT 60, 'f', 'outside', 3L", "outside the condition"),
    said(
        ALL,
        [
            (1, "a", "hello world", 1),
            (2, "b", "error timeout", 2),
            (3, "a", None, 7),
            (4, "b", "named", 7),
            (51, "e", "replaced", 3),
        ],
    ),
    said("SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.id + 1 ORDER BY a.id", [(2,), (3,), (4,)]),
    said("SELECT count(*) FROM {t} VERSION AS OF 1", [(2,)]),
    said(
        "SELECT _change_type, id FROM table_changes('{t}', 1, 1) ORDER BY id", [("insert", 1), ("insert", 2)]
    ),
    said("SELECT count(*) FROM {q}`{last}@v2`", [(3,)], named=True),
    said("SHOW PARTITIONS {t}", [("day=a",), ("day=b",), ("day=e",)], named=True),
    said("DELETE FROM {t} WHERE id IN (SELECT max(id) FROM {t})", [(1,)], "DELETE"),
    said("DELETE FROM {t} WHERE message <> 'nobody' AND id = 4", [(1,)], "DELETE"),
    said("DELETE FROM {t} WHERE message = NULL", [(0,)]),
    said("UPDATE {t} SET message = concat(message, '!'), n = n + 1 WHERE id <= 2", [(2,)], "UPDATE"),
    said("UPDATE {t} SET n = (SELECT max(n) FROM {t}) WHERE id = 1", [(1,)], "UPDATE"),
    said(ALL, [(1, "a", "hello world!", 7), (2, "b", "error timeout!", 3), (3, "a", None, 7)]),
    said(
        f"MERGE INTO {{t}} AS x USING {SOURCE} s ON x.id = s.id WHEN MATCHED THEN UPDATE SET message = s.message "
        "WHEN NOT MATCHED THEN INSERT (id, day, message) VALUES (s.id, 'c', s.message) "
        "WHEN NOT MATCHED BY SOURCE AND x.id = 3 THEN DELETE",
        [(3, 1, 1, 1)],
        "MERGE",
    ),
    refused(
        "MERGE INTO {t} AS x USING (SELECT 1 AS id UNION ALL SELECT 1) s ON x.id = s.id "
        "WHEN MATCHED THEN UPDATE SET message = 'twice'",
        "MERGE_CARDINALITY_VIOLATION",
    ),
    said(ALL, [(1, "a", "merged", 7), (2, "b", "error timeout!", 3), (9, "c", "inserted", 7)]),
    said("ALTER TABLE {t} ADD COLUMNS (extra INT COMMENT 'more')", [], "ALTER TABLE"),
    said(
        "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",
        [],
        "ALTER TABLE",
        since="4.0",
        older=refused("ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT", "Spark 3.5 does not read"),
    ),
    said("ALTER TABLE {t} RENAME COLUMN extra TO more", [], "ALTER TABLE"),
    said("ALTER TABLE {t} DROP COLUMN more", [], "ALTER TABLE"),
    said("ALTER TABLE {t} ADD COLUMNS (extra INT COMMENT 'another one')", [], "ALTER TABLE"),
    refused("ALTER TABLE {t} DROP COLUMN day", "partitioned by it"),
    in_full("INSERT INTO {t} (id, day, extra) VALUES (500, 'a', 1)", "{t}", "(500, 'a', NULL, 7, 1)"),
    said("SELECT id, extra FROM {t} WHERE id > 8 ORDER BY id", [(9, None), (500, 1)]),
    said(
        "CREATE TABLE {u} USING indextables PARTITIONED BY (day) AS SELECT id, day FROM {t}",
        [],
        "WRITE",
        on="{u}",
    ),
    said(
        "CREATE OR REPLACE TABLE {u} USING indextables AS SELECT id + 1 AS id FROM {u}",
        [],
        "REPLACE TABLE AS SELECT",
        on="{u}",
    ),
    said("SELECT id FROM {u} ORDER BY id LIMIT 2", [(2,), (3,)], on="{u}"),
    said(
        "ALTER TABLE {t} ADD CONSTRAINT few CHECK (id < 999)",
        None,
        "ADD CONSTRAINT",
        has="SUCCESS",
        named=True,
    ),
    refused("INSERT INTO {t} VALUES (1000, 'a', 'many', 7, 0)", "breaks the constraint few", named=True),
    refused("UPDATE {t} SET id = id + 1000 WHERE id = 9", "breaks the constraint few", named=True),
    refused(
        "MERGE INTO {t} AS x USING (SELECT 9 AS id) s ON x.id = s.id WHEN MATCHED THEN UPDATE SET id = 1009",
        "breaks the constraint few",
        named=True,
    ),
    refused(
        "MERGE INTO {t} AS x USING (SELECT 1009 AS id) s ON x.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id, day, message, n, extra) VALUES (s.id, 'a', 'many', 7, 0)",
        "breaks the constraint few",
        named=True,
    ),
    said("ALTER TABLE {t} DROP CONSTRAINT few", None, "DROP CONSTRAINT", has="SUCCESS", named=True),
    said("CREATE OR REPLACE TEMPORARY VIEW over_t AS SELECT id FROM {t} WHERE day = 'a'", []),
    in_full("INSERT INTO {t} (id, day) VALUES (8, 'a')", "{t}", "(8, 'a', NULL, 7, NULL)"),
    said("SELECT count(*) FROM over_t", [(3,)]),
    said("CACHE TABLE {t}", [], named=True),
    said("DELETE FROM {t} WHERE id = 8", [(1,)], "DELETE"),
    said(IDS, [(1,), (2,), (9,), (500,)]),
    said("UNCACHE TABLE {t}", [], named=True),
    said("CHECK INDEXTABLES {t}", has="nothing is wrong"),
    said("MERGE SPLITS {t} DRY RUN", has="DRY RUN"),
    said("OPTIMIZE {t}", has="SUCCESS", op="MERGE SPLITS"),
    said("CHECKPOINT INDEXTABLES {t}", has="SUCCESS"),
    said("/* as /* Delta */ says */ DESCRIBE -- newest first\nHISTORY {t} LIMIT 1", has="MERGE SPLITS"),
    said("DESCRIBE DETAIL {t}", has="owner.team"),
    said("CREATE INDEX counts ON {t} (n)", None, "CREATE INDEX", has="SUCCESS"),
    said("SHOW INDEXES ON {t}", has="counts"),
    said("REFRESH INDEX counts ON {t}", None, "MERGE SPLITS", has="SUCCESS"),
    said("DROP INDEX counts ON {t}", None, "DROP INDEX", has="SUCCESS"),
    said("PURGE INDEXTABLE {t} DRY RUN", has="DRY RUN"),
    refused("MERGE SPLITS {t} TARGT SIZE 1M", "unexpected .TARGT."),
    said(IDS, [(1,), (2,), (9,), (500,)]),
    said("ALTER TABLE {u} RENAME TO {q}v", [], named=True),
    said("SELECT count(*) FROM {q}v", [(4,)], named=True),
    said("DROP TABLE {q}v PURGE", [], named=True),
    refused("SELECT * FROM {q}v", "NOT_FOUND", named=True),
]
"""The table `t` stays, for those who come back to it."""
