"""A companion index: what its owner does with it, and what whoever opens it is given."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.companion import refresh
from indextables.errors import (
    CommandError,
    Error,
    NotATableError,
    OptionError,
    SchemaError,
    TableError,
    VersionNotFoundError,
)
from indextables.storage.store import open_store
from support.companions import bytes_of
from support.deltarows import inline_vector, put_file
from support.deltatables import DeltaLog, remove, schema_string

SCHEMA = schema_string(id="long", level="string", message="string")
TEXTS = ["disk full on node", "all quiet", "node lost its disk", "quiet night", "timeout of the disk"]


def rows(first, texts=TEXTS):
    return pa.table(
        {
            "id": pa.array(range(first, first + len(texts)), pa.int64()),
            "level": pa.array(["ERROR" if "disk" in text else "INFO" for text in texts]),
            "message": pa.array(texts),
        }
    )


class Source:
    """A Delta table of a few files, and the places beside it."""

    def __init__(self, root: Path) -> None:
        self.path, self.index = str(root / "logs"), str(root / "logs_index")
        self.log = DeltaLog(open_store(self.path), SCHEMA)
        self.number = 0

    def append(self, texts=TEXTS, **more):
        self.number += 1
        body = put_file(self.log, f"part-{self.number}.parquet", rows(self.number * 100, texts), **more)
        self.log.commit(body)
        return f"part-{self.number}.parquet"

    def drop(self, path):
        self.log.commit(remove(path))

    def hide(self, path, hidden):
        (key,) = [key for key in self.log.live if key[0] == path]
        old = self.log.live[key]
        changed = {**old, "deletionVector": inline_vector(hidden)}
        self.log.commit(remove(path, dv=old.get("deletionVector")), {"add": changed})

    def companion(self, columns=None, **more):
        return it.companion(self.path, self.index, columns or {"message": "text"}, **more)

    def ids(self, query, **more):
        table = it.Table.open(self.index, **more)
        return sorted(table.search(query, columns=["id"]).read_all().column("id").to_pylist())


@pytest.fixture
def source(tmp_path):
    made = Source(tmp_path)
    made.append()
    made.append()
    return made


def test_a_search_answers_with_the_rows_of_the_source(source):
    source.companion()
    table = it.Table.open(source.index)
    assert table.schema.names == ["id", "level", "message"]
    assert table.version == source.log.version
    assert table.count() == 10
    assert source.ids("disk") == [100, 102, 104, 200, 202, 204]
    found = table.search("disk AND node", where="id > 150").read_all().to_pylist()
    assert found == [
        {"id": 200, "level": "ERROR", "message": "disk full on node"},
        {"id": 202, "level": "ERROR", "message": "node lost its disk"},
    ]
    assert table.last_scan.coverage.indexed == 1  # The log of the source rules the other file out.
    assert table.last_scan.search.by_index == 1


def test_a_row_that_is_not_indexed_yet_is_found(source):
    source.companion()
    source.append(["a disk at last"])
    assert source.ids("disk") == [100, 102, 104, 200, 202, 204, 300]
    table = it.Table.open(source.index)
    assert table.count(query="disk") == 7
    assert (table.last_scan.coverage.indexed, table.last_scan.coverage.scanned) == (2, 1)


def test_a_row_that_is_gone_is_not(source):
    source.companion()
    source.drop("part-1.parquet")
    source.hide("part-2.parquet", [0, 4])
    assert source.ids("disk") == [202]
    table = it.Table.open(source.index)
    assert table.count(query="disk") == 1
    assert table.count() == 3
    assert table.last_scan.search.by_index == 0  # The log alone counts rows.
    assert table.facets("level", query="disk OR quiet").to_pylist() == [
        {"value": "INFO", "count": 2},
        {"value": "ERROR", "count": 1},
    ]
    table.count(query="disk")
    coverage = table.last_scan.coverage
    assert (coverage.indexed, coverage.scanned, coverage.masked) == (1, 0, 1)
    assert table.last_scan.search.by_index == 1


def test_files_that_are_gone_are_masked_though_no_other_of_their_split_is_left(source):
    source.companion()
    source.drop("part-1.parquet")
    source.drop("part-2.parquet")
    source.append(["a disk at last"])
    table = it.Table.open(source.index)
    assert table.count(query="disk") == 1
    coverage = table.last_scan.coverage
    assert (coverage.indexed, coverage.scanned, coverage.masked) == (0, 1, 2)


def test_a_vector_that_is_taken_back_shows_its_rows_again(source):
    source.hide("part-1.parquet", [0])
    source.companion()
    assert 100 not in source.ids("disk")
    (key,) = [key for key in source.log.live if key[0] == "part-1.parquet"]
    body = {name: value for name, value in source.log.live[key].items() if name != "deletionVector"}
    source.log.commit(remove("part-1.parquet", dv=source.log.live[key]["deletionVector"]), {"add": body})
    assert 100 in source.ids("disk")


def test_a_refresh_reads_only_the_files_that_are_new(source):
    companion = source.companion()
    source.append(["one more disk"])
    result = companion.refresh()
    assert (result.status, result.parquet_files_indexed, result.splits_created) == ("success", 1, 1)
    assert result.source_version == source.log.version
    assert result.parquet_bytes_downloaded == Path(source.path, "part-3.parquet").stat().st_size
    assert companion.refresh().status == "no_action"
    table = it.Table.open(source.index)
    assert table.count(query="disk") == 7
    assert table.last_scan.coverage.scanned == 0


def test_a_refresh_commits_in_parts_and_one_that_failed_is_continued(source, monkeypatch):
    for _ in range(3):
        source.append()
    companion = source.companion(options={"write.targetSplitBytes": "1"})
    files = [source.append(["one more disk"]) for _ in range(5)]
    monkeypatch.setattr(refresh, "SPLITS_PER_COMMIT", 2)
    build = refresh.build_split

    def failing(place, form, rows_in, items):
        if items[0].file.path == files[3]:
            raise TableError("the machine is full")
        return build(place, form, rows_in, items)

    monkeypatch.setattr(refresh, "build_split", failing)
    with pytest.raises(TableError, match="full"):
        companion.refresh()
    status = companion.status()
    assert (status.files_indexed, status.files_stale) == (7, 3)
    assert status.indexed_version == source.log.version - 5
    assert len(source.ids("disk")) == 5 * 3 + 5
    monkeypatch.setattr(refresh, "build_split", build)
    seen = []
    log = it.TransactionLog.open(source.index, {"write.targetSplitBytes": "1"})
    result = refresh.run_refresh(log, progress=lambda *at: seen.append(at[1:]))
    assert (result.parquet_files_indexed, result.splits_created, result.status) == (3, 3, "success")
    assert result.message == "3 files indexed in 2 commits"
    assert seen == [(0, 3), (1, 3), (2, 3), (2, 3), (3, 3)]
    assert companion.status().indexed_version == source.log.version


class FarWorkers:
    """Workers in another process, as far as a test can tell: what they get and give is pickled."""

    name = "far"

    def __init__(self):
        self.pieces = 0

    def map(self, function, items, *, parallelism=None):
        for item in items:
            self.pieces += 1
            call, piece = pickle.loads(pickle.dumps((function, item)))
            yield pickle.loads(pickle.dumps(call(piece)))


@pytest.mark.parametrize("least", [1, 1 << 30])
def test_much_is_indexed_by_the_workers_and_little_here(source, monkeypatch, least):
    monkeypatch.setattr(refresh, "DISTRIBUTE_BYTES", least)
    source.companion(options={"write.targetSplitBytes": "1"})
    source.append()
    source.append()
    workers = FarWorkers()
    log = it.TransactionLog.open(source.index, {"write.targetSplitBytes": "1"})
    far = type(log)(log.store, log.options, replace(log.runtime, workers=workers))
    assert refresh.run_refresh(far).splits_created == 2
    assert workers.pieces == (2 if least == 1 else 0)
    assert len(source.ids("disk")) == 4 * 3
    assert it.Table.open(source.index).count(query="disk") == 12


def test_the_result_of_a_refresh_has_the_eleven_columns(source):
    result = source.companion().refresh(dry_run=True)
    assert result.to_arrow().column_names == [
        "table_path", "source_path", "status", "source_version", "splits_created", "splits_invalidated",
        "parquet_files_indexed", "parquet_bytes_downloaded", "split_bytes_uploaded", "duration_ms", "message",
    ]  # fmt: skip


def test_a_dry_run_writes_nothing_and_says_what_would_be_done(source):
    companion = source.companion()
    source.append()
    before = bytes_of(source.index)
    result = companion.refresh(dry_run=True)
    assert (result.status, result.parquet_files_indexed) == ("dry_run", 1)
    assert bytes_of(source.index) == before


def test_splits_whose_files_are_all_gone_are_removed_by_a_refresh(source):
    companion = source.companion()
    third = source.append(["one more disk"])
    companion.refresh()
    source.drop(third)
    result = companion.refresh()
    assert (result.splits_invalidated, result.splits_created) == (1, 0)
    assert companion.status().files_gone == 0


def test_a_split_with_many_gone_files_is_built_again_from_the_others(source):
    companion = source.companion()
    source.drop("part-1.parquet")
    result = companion.refresh()
    assert (result.splits_invalidated, result.splits_created, result.parquet_files_indexed) == (1, 1, 1)
    assert source.ids("disk") == [200, 202, 204]


def test_a_merge_joins_indexes_and_does_not_read_the_source(source, monkeypatch):
    companion = source.companion()
    source.append(["one more disk"])
    companion.refresh()
    source.hide("part-1.parquet", [0])
    table = it.Table.open(source.index)
    before = table.search("disk", score=True).read_all().to_pylist()
    assert table.merge_splits(dry_run=True).merged_files == 2
    monkeypatch.setattr("indextables.companion.build.RowReader.rows", None)
    (row,) = it.sql(f"MERGE SPLITS '{source.index}'").to_pylist()
    assert (row["status"], row["merged_files"]) == ("SUCCESS", 2)
    assert table.merge_splits().status == "NO ACTION"
    table = it.Table.open(source.index)
    assert table.search("disk", score=True).read_all().to_pylist() == before
    assert table.last_scan.coverage.indexed == 3
    assert len(table.log.list_files()) == 1
    assert companion.refresh().status == "no_action"


def test_the_status_counts_files_that_are_indexed_stale_and_gone(source):
    companion = source.companion()
    source.append()
    source.drop("part-1.parquet")
    status = companion.status()
    assert (status.files_indexed, status.files_stale, status.files_gone) == (1, 1, 1)
    assert (status.indexed_version, status.source_version) == (source.log.version - 2, source.log.version)
    companion.refresh()
    status = companion.status()
    assert (status.files_indexed, status.files_stale, status.files_gone) == (2, 0, 0)
    assert status.indexed_version == source.log.version


def test_a_version_is_one_of_the_source(source):
    source.companion()
    assert source.ids("disk", version=1) == [100, 102, 104]
    assert it.open(source.index, version=1).version == 1
    assert it.open(source.index, version=0).count() == 0
    with pytest.raises(VersionNotFoundError, match="logs has no version 9"):
        it.open(source.index, version=9)


def test_the_source_is_never_written(source):
    before = bytes_of(source.path)
    companion = source.companion()
    companion.refresh()
    source.ids("disk")
    assert bytes_of(source.path) == before


def test_an_index_that_is_there_is_opened_as_it_is(source):
    source.companion()
    source.append()
    assert source.companion().status().files_stale == 1
    assert it.companion(source.path, source.index).status().files_stale == 1


def test_an_index_of_other_columns_or_of_another_source_is_not_opened(source, tmp_path):
    source.companion()
    with pytest.raises(TableError, match="indexes message as text"):
        source.companion({"message": "string"})
    other = Source(tmp_path / "other")
    other.append()
    with pytest.raises(TableError, match="is a companion of"):
        it.companion(other.path, source.index, {"message": "text"})


def test_an_index_lies_beside_its_source_and_not_inside(source):
    with pytest.raises(OptionError, match="beside its source"):
        it.companion(source.path, f"{source.path}/index", {"message": "text"})


def test_a_companion_needs_columns_that_the_source_has(source):
    with pytest.raises(OptionError, match="at least one column"):
        it.companion(source.path, source.index, {})
    with pytest.raises(OptionError, match="nothing_like_it"):
        source.companion({"nothing_like_it": "text"})
    assert not it.Table.exists(source.index)


def test_a_table_of_ours_needs_no_companion(tmp_path):
    it.write(tmp_path / "own", {"message": ["disk"]})
    with pytest.raises(TableError, match="is an IndexTables table"):
        it.companion(str(tmp_path / "own"), str(tmp_path / "index"), ["message"])


WRITES = {
    "append": lambda table: table.append(rows(0)),
    "overwrite": lambda table: table.overwrite(rows(0)),
    "delete": lambda table: table.delete("id = 1"),
    "update": lambda table: table.update("id = 1", {"level": "X"}),
    "merge": lambda table: table.merge(rows(0), "id"),
    "add_constraint": lambda table: table.add_constraint("c", "id > 0"),
    "write": lambda table: it.write(table.uri, rows(0), mode="append"),
}


@pytest.mark.parametrize("verb", WRITES)
def test_what_writes_rows_is_refused_by_name(source, verb):
    source.companion()
    before = bytes_of(source.index)
    with pytest.raises(TableError, match=r"is a companion index: the rows are those of .*/logs"):
        WRITES[verb](it.Table.open(source.index))
    assert bytes_of(source.index) == before


@pytest.mark.parametrize("damage", ["gone", "cut", "short", "empty", "index", "map"])
def test_a_damaged_index_costs_time_and_no_row(source, damage):
    source.companion()
    source.hide("part-1.parquet", [0])
    (split,) = Path(source.index).glob("*.split")
    data = bytearray(split.read_bytes())
    if damage == "gone":
        split.unlink()
    elif damage == "cut":
        split.write_bytes(data[: len(data) // 2])
    elif damage == "short":
        split.write_bytes(data[:-200])
    elif damage == "empty":
        split.write_bytes(b"")
    else:
        add = it.TransactionLog.open(source.index).list_files()[0]
        end = add.hotcache_start_offset + add.hotcache_length
        data[end - 5 if damage == "map" else add.hotcache_start_offset + 10] ^= 0xFF
        if damage == "index":
            length = int(add.tags["indexRoot"].partition(":")[0]) + int(add.tags["rowMap"].partition(":")[0])
            data[end - length + 3] ^= 0xFF
        split.write_bytes(data)
    assert source.ids("disk") == [102, 104, 200, 202, 204]
    assert it.Table.open(source.index).count(query="disk") == 5


def test_a_handle_can_be_pickled(source):
    source.companion()
    source.append()
    table = it.Table.open(source.index, version=2)
    assert pickle.loads(pickle.dumps(table)).count(query="disk") == table.count(query="disk") == 6


def test_a_handle_stays_at_its_version_until_it_is_refreshed(source):
    source.companion()
    table = it.Table.open(source.index)
    source.append()
    assert table.count(query="disk") == 6
    assert table.refresh().count(query="disk") == 9


def test_settings_that_change_are_obeyed_at_once_and_indexed_by_the_next_refresh(source):
    companion = source.companion({"level": "string", "message": "text"})
    table = it.Table.open(source.index)
    table.update_properties({"indexing.typemap.level": "text"})
    table = it.Table.open(source.index)
    assert table.count(query="level:error") == 6
    assert table.last_scan.coverage.scanned == 2
    assert companion.refresh().splits_invalidated == 1
    table.refresh()
    assert table.count(query="level:error") == 6
    assert table.last_scan.coverage.indexed == 2


def test_sql_searches_it(source):
    source.companion()
    source.append(["late disk"])
    found = it.sql(f"SELECT count(*) AS n FROM indextables.`{source.index}` WHERE message indexquery 'disk'")
    assert found.to_pylist() == [{"n": 7}]


def test_highlights_samples_and_sorted_rows_are_those_of_any_table(source):
    source.companion()
    table = it.Table.open(source.index)
    (row,) = table.search("full", where="id < 150", highlight=True).read_all().to_pylist()
    assert row["_highlight"]["message"] == "disk <em>full</em> on node"
    assert table.sample(4, seed=1).num_rows == 4
    first = table.search("disk", sort="id DESC", limit=2, columns=["id"]).read_all()
    assert first.column("id").to_pylist() == [204, 202]
    (best,) = table.search("full", limit=1, score=True, where="id < 150").read_all().to_pylist()
    path = table.files().column("path")[0].as_py()
    parts = table.explain_score("full", path, 0)
    assert sum(parts.column("score").to_pylist()) == pytest.approx(best["_score"], rel=1e-5)


def test_scores_do_not_depend_on_what_was_asked_before(source):
    source.companion({"message": "text", "level": "text"})
    source.append(["one disk " + "and another one " * 5])
    table = it.Table.open(source.index)
    first = table.search("message:disk", score=True).read_all().to_pylist()
    table.search("level:error", score=True).read_all()
    assert table.search("message:disk", score=True).read_all().to_pylist() == first


def test_a_source_without_any_file_is_an_empty_table(tmp_path):
    empty = Source(tmp_path)
    empty.companion()
    assert it.Table.open(empty.index).count(query="disk") == 0
    empty.append()
    assert empty.ids("disk") == [100, 102, 104]


def test_a_source_that_was_made_anew_is_read_and_indexed_again(source, tmp_path):
    companion = source.companion()
    source.log.commit({"metaData": {**source.log.metadata, "id": "another"}})
    assert source.ids("disk") == [100, 102, 104, 200, 202, 204]
    assert it.Table.open(source.index).count() == 10
    assert companion.refresh().parquet_files_indexed == 2
    assert companion.refresh().status == "no_action"


def test_a_path_without_a_table_is_no_source(tmp_path):
    with pytest.raises((NotATableError, TableError)):
        it.companion(str(tmp_path / "nothing"), str(tmp_path / "index"), ["message"])


# Parquet files without a log


@pytest.fixture
def parquet(tmp_path):
    for day in (1, 2):
        directory = tmp_path / "files" / f"day={day}"
        directory.mkdir(parents=True)
        pq.write_table(rows(day * 100), directory / "a.parquet")
    return tmp_path / "files"


def test_parquet_files_are_searched_with_their_partitions(parquet, tmp_path):
    companion = it.companion(str(parquet), str(tmp_path / "index"), {"message": "text"})
    table = it.Table.open(tmp_path / "index")
    assert table.schema.names == ["id", "level", "message", "day"]
    assert table.schema.field("day").type == pa.int64()
    assert table.count() == 10
    assert table.count("day = 2", query="disk") == 3
    assert companion.status().source_version is None
    assert table.search("full", columns=["id", "day"]).read_all().to_pylist() == [
        {"id": 100, "day": 1},
        {"id": 200, "day": 2},
    ]


def test_parquet_files_that_come_change_and_go_are_seen_before_a_refresh_and_after(parquet, tmp_path):
    index = tmp_path / "index"
    companion = it.companion(str(parquet), str(index), {"message": "text"})
    pq.write_table(rows(300), parquet / "day=2" / "b.parquet")
    pq.write_table(rows(400, ["only one disk"]), parquet / "day=1" / "a.parquet")
    for _ in range(2):
        table = it.Table.open(index)
        assert table.count(query="disk") == 7
        assert table.count() == 11
        companion.refresh()
    (parquet / "day=2" / "a.parquet").unlink()
    assert it.Table.open(index).count(query="disk") == 4
    assert companion.status().files_gone == 1


def test_parquet_files_that_are_replaced_while_they_are_read_are_an_error(parquet, tmp_path):
    it.companion(str(parquet), str(tmp_path / "index"), {"message": "text"})
    table = it.Table.open(tmp_path / "index")
    pq.write_table(rows(400), parquet / "day=1" / "a.parquet")
    with pytest.raises(TableError, match="was replaced or removed while it was read"):
        table.search("disk").read_all()


def test_columns_that_new_files_bring_are_there_after_a_refresh(parquet, tmp_path):
    companion = it.companion(str(parquet), str(tmp_path / "index"), {"message": "text"})
    wider = rows(300).append_column("host", pa.array(["a"] * 5))
    pq.write_table(wider, parquet / "day=2" / "b.parquet")
    companion.refresh()
    table = it.Table.open(tmp_path / "index")
    assert "host" in table.schema.names
    assert table.count("host = 'a'", query="disk") == 3


def test_files_that_are_partitioned_otherwise_are_refused(parquet, tmp_path):
    pq.write_table(rows(300), parquet / "loose.parquet")
    with pytest.raises(TableError, match="not partitioned alike"):
        it.companion(str(parquet), str(tmp_path / "index"), {"message": "text"})


def test_a_partition_column_needs_no_index(tmp_path):
    (tmp_path / "files" / "region=eu").mkdir(parents=True)
    pq.write_table(rows(100), tmp_path / "files" / "region=eu" / "a.parquet")
    with pytest.raises(SchemaError, match="partition column"):
        it.companion(str(tmp_path / "files"), str(tmp_path / "index"), {"region": "string"})


# SQL


def build(source, rest=""):
    return f"BUILD INDEXTABLES COMPANION FOR DELTA '{source.path}' {rest}AT LOCATION '{source.index}'"


MODES = "INDEXING MODES ('message':'text', 'level' : 'STRING') "


def test_build_makes_a_companion_and_refreshes_it(source):
    (row,) = it.sql(build(source, MODES) + " DRY RUN").to_pylist()
    assert (row["status"], row["parquet_files_indexed"], row["source_version"]) == ("dry_run", 2, 2)
    assert not it.Table.exists(source.index)
    (row,) = it.sql(build(source, MODES)).to_pylist()
    assert (row["status"], row["parquet_files_indexed"], row["splits_created"]) == ("success", 2, 1)
    assert source.ids("disk AND level:ERROR") == [100, 102, 104, 200, 202, 204]
    source.append(["one more disk"])
    (row,) = it.sql(build(source)).to_pylist()
    assert (row["status"], row["parquet_files_indexed"]) == ("success", 1)
    assert it.sql(build(source, MODES)).to_pylist()[0]["status"] == "no_action"


def test_build_takes_a_version_of_the_source(source):
    (row,) = it.sql(build(source, MODES + "FROM VERSION 1 ")).to_pylist()
    assert (row["source_version"], row["parquet_files_indexed"]) == (1, 1)
    assert source.ids("disk") == [100, 102, 104, 200, 202, 204]


def test_build_for_parquet(parquet, tmp_path):
    text = (
        f"BUILD INDEXTABLES COMPANION FOR PARQUET '{parquet}' INDEXING MODES ('message':'text') AT LOCATION"
    )
    (row,) = it.sql(f"{text} '{tmp_path / 'index'}'").to_pylist()
    assert (row["status"], row["source_version"], row["parquet_files_indexed"]) == ("success", None, 2)


def test_build_for_what_is_not_there_or_cannot_be_indexed(source, tmp_path):
    with pytest.raises(CommandError, match="Iceberg tables cannot be indexed yet; expected DELTA or PARQUET"):
        it.sql(build(source, MODES).replace("DELTA", "ICEBERG"))
    with pytest.raises(CommandError, match="expected"):
        it.sql(f"BUILD INDEXTABLES COMPANION FOR '{source.path}' AT LOCATION '{source.index}'")
    with pytest.raises(OptionError, match="at least one column"):
        it.sql(build(source))


@pytest.fixture
def by_day(tmp_path):
    """Parquet files in two partitions."""
    root = tmp_path / "files"
    for day in ("2026-01-01", "2026-01-02"):
        (root / f"day={day}").mkdir(parents=True)
        pq.write_table(rows(100), root / f"day={day}" / "a.parquet")
    return str(root)


def test_only_some_partitions_are_indexed_and_all_are_found(by_day, tmp_path):
    at = str(tmp_path / "index")
    companion = it.companion(by_day, at, ["message"], where="day >= '2026-01-02'")
    status = companion.status()
    assert (status.files_indexed, status.files_stale, status.files_left_out) == (1, 0, 1)
    table = it.open(at)
    assert table.count(query="disk") == 6
    assert (table.last_scan.coverage.indexed, table.last_scan.coverage.scanned) == (1, 1)
    assert companion.refresh().status == "no_action"
    assert it.companion(by_day, at).status() == status
    with pytest.raises(TableError, match="indexes partitions WHERE day >= '2026-01-02', and WHERE day > '1'"):
        it.companion(by_day, at, where="day > '1'")


@pytest.mark.parametrize(
    ("where", "problem"), [("id > 3", "id cannot be used to choose partitions"), ("nowhere = 1", "nowhere")]
)
def test_partitions_are_chosen_by_partition_columns(by_day, tmp_path, where, problem):
    with pytest.raises(Error, match=problem):
        it.companion(by_day, str(tmp_path / "index"), ["message"], where=where)
    assert not (tmp_path / "index").exists()


def test_columns_of_text_are_excluded(by_day, tmp_path):
    at = str(tmp_path / "index")
    it.companion(by_day, at, {"level": "string"}, exclude=["MESSAGE"])
    assert it.open(at).count(query="ERROR") == 6
    assert it.open(at).count(query="disk") == 0
    assert it.companion(by_day, at, {"level": "string"}, exclude=["message"])
    with pytest.raises(OptionError, match="level: how to index it is said"):
        it.companion(by_day, str(tmp_path / "other"), {"level": "string"}, exclude=["level"])


def test_build_takes_columns_and_partitions(by_day, tmp_path):
    build = f"BUILD INDEXTABLES COMPANION FOR PARQUET '{by_day}'"
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    clauses = "INDEXING MODES ('level':'string') INCLUDE COLUMNS (message, level) WHERE day = '2026-01-01'"
    (row,) = it.sql(f"{build} {clauses} AT LOCATION '{one}'").to_pylist()
    assert (row["status"], row["parquet_files_indexed"]) == ("success", 1)
    assert it.open(one).count(query="message:disk AND level:ERROR") == 6
    (row,) = it.sql(f"{build} AT LOCATION '{one}'").to_pylist()
    assert row["status"] == "no_action"
    it.sql(f"{build} EXCLUDE COLUMNS (level) AT LOCATION '{other}'")
    assert it.open(other).count(query="disk") == 6
    assert it.open(other).count(query="ERROR") == 0


def test_a_source_is_opened_by_its_own_path_with_the_place_of_its_index(source, tmp_path):
    source.companion()
    table = it.open(source.path, companion=source.index)
    assert table.count(query="disk") == 6
    assert table.last_scan.coverage.indexed == 2
    assert it.open(source.path, version=1, companion=source.index).count(query="disk") == 3
    other = tmp_path / "other"
    it.Table.create(str(other), rows(0).schema)
    with pytest.raises(TableError, match="rows of its own, not a companion index"):
        it.open(source.path, companion=str(other))
    with pytest.raises(TableError, match=r"is a companion of .*logs, not an index of .*other"):
        it.open(str(other), companion=source.index)
