"""Checkpoints of every kind give the same files, and a broken one never gives fewer."""

from __future__ import annotations

import json
import uuid

import pyarrow as pa
import pytest

from indextables.errors import CorruptLogError, Error, MissingVersionError, ProtocolError
from indextables.log.delta.snapshot import DeltaSnapshot, delta_source, open_snapshot
from indextables.log.state import load_state
from indextables.options import Options
from indextables.runtime import LOCAL
from indextables.storage.store import open_store
from support.deltatables import KINDS, LOG, DeltaLog, add, remove, schema_string, vector
from support.faults import CountingStore

OPTIONS = Options.of(None)
SCHEMA = schema_string(p="string", id="long", at="timestamp", price="decimal(20,4)")
PARSED = pa.struct(
    [
        ("numRecords", pa.int64()),
        ("minValues", pa.struct([("id", pa.int64()), ("at", pa.timestamp("ns"))])),
        ("maxValues", pa.struct([("id", pa.int64()), ("at", pa.timestamp("ns"))])),
        ("nullCount", pa.struct([("id", pa.int64())])),
    ]
)


def stats(low, high, rows=10, nulls=0):
    return {
        "numRecords": rows,
        "minValues": {"id": low},
        "maxValues": {"id": high},
        "nullCount": {"id": nulls},
    }


@pytest.fixture
def log():
    made = DeltaLog(open_store(f"memory://{uuid.uuid4()}"), SCHEMA, ("p",))
    for number in range(6):
        made.commit(
            add(f"p=a b/{number}.parquet", stats=stats(number, number + 1), partitionValues={"p": "a b"}),
            add(f"x/{number}%41.parquet", stats=stats(0, 100), partitionValues={"p": None}),
        )
    made.commit(remove("p=a b/1.parquet"), add("p=a b/1.parquet", dv=vector(1), partitionValues={"p": "a b"}))
    return made


def keys(log, version=None, engine="columnar"):
    files = open_snapshot(log.store.uri, version=version, options=OPTIONS).plan(engine=engine).files
    found = list(zip(files.column("path").to_pylist(), files.column("dv").to_pylist(), strict=True))
    assert len(found) == len(set(found))
    return set(found)


@pytest.mark.parametrize("engine", ["columnar", "reference"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_checkpoint_stands_for_the_commits_below_it(log, kind, engine):
    """K7: also with those commits deleted, and with commits after it."""
    log.checkpoint(kind)
    log.drop_commits(log.version)
    assert keys(log, engine=engine) == set(log.live)
    log.commit(remove("p=a b/2.parquet"), add("new.parquet"), remove("p=a b/1.parquet", dv=vector(1)))
    assert keys(log, engine=engine) == set(log.live)
    log.commit(add("p=a b/2.parquet"), add("p=a b/1.parquet", dv=vector(1, offset=35)))
    assert keys(log, engine=engine) == set(log.live)


@pytest.mark.parametrize("kind", ["v2-json", "v2-parquet", "v2-classic"])
def test_a_missing_sidecar_leads_back_to_the_commits(log, kind):
    """C6: an older state of the log is used, or the error says what is lost; never a partial list."""
    log.checkpoint(kind)
    sidecar = next(meta.path for meta in log.store.list(f"{LOG}/_sidecars"))
    log.store.delete(sidecar)
    assert keys(log) == set(log.live)
    log.drop_commits(log.version)
    with pytest.raises(MissingVersionError):
        keys(log)


def test_a_missing_part_leads_back_to_an_older_checkpoint(log):
    """C7: an incomplete multi-part checkpoint does not count."""
    log.checkpoint("classic")
    log.commit(add("later.parquet"))
    log.checkpoint("multipart")
    log.store.delete(f"{LOG}/{log.version:020d}.checkpoint.{2:010d}.{3:010d}.parquet")
    log.drop_commits(log.version - 1)
    assert keys(log) == set(log.live)


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "text"])
@pytest.mark.parametrize("kind", ["classic", "multipart", "v2-classic"])
def test_a_damaged_checkpoint_file_leads_back_to_the_commits(log, kind, damage):
    """C6: whatever is wrong with it."""
    log.checkpoint(kind)
    path = next(
        m.path for m in log.store.list(LOG) if m.path.endswith(".parquet") and "_sidecars" not in m.path
    )
    data = log.store.get(path)
    broken = {"cut": data[:-20], "flipped": data[:-6] + b"\xff\xff" + data[-4:], "empty": b"", "text": b"{}"}[
        damage
    ]
    log.store.put(path, broken)
    assert keys(log) == set(log.live)


def test_a_damaged_sidecar_is_noticed_while_the_adds_are_read(log):
    """C6: the head is fine, the sidecar is not."""
    log.checkpoint("v2-json")
    sidecar = next(meta.path for meta in log.store.list(f"{LOG}/_sidecars"))
    log.store.put(sidecar, log.store.get(sidecar)[:-30])
    assert keys(log) == set(log.live)


def test_of_two_checkpoints_at_one_version_either_serves(log):
    """K7: a broken one does not hide the sound one."""
    log.checkpoint("v2-json")
    log.checkpoint("classic")
    log.drop_commits(log.version)
    assert keys(log) == set(log.live)
    for meta in log.store.list(f"{LOG}/_sidecars"):
        log.store.delete(meta.path)
    assert keys(log) == set(log.live)


def test_typed_statistics_alone_are_enough(log):
    """K7: `stats_parsed` without `stats`, some rows without either."""
    log.commit(add("none.parquet"))
    log.checkpoint("classic", parsed=PARSED, text=False)
    log.drop_commits(log.version)
    files = open_snapshot(log.store.uri, options=OPTIONS).plan(columns=["num_records", "min", "dv"]).files
    rows = {(row["path"], row["dv"]): (row["num_records"], row["min"]["id"]) for row in files.to_pylist()}
    assert rows["p=a b/3.parquet", None] == (10, 3)
    assert rows["none.parquet", None] == (None, None)


def test_rows_with_text_statistics_only_are_read_beside_typed_ones(log):
    """K7: a checkpoint whose writer filled `stats_parsed` for some rows."""
    late = add("late.parquet", stats=stats(5, 6))
    log.commit(late)
    log.checkpoint("v2-json", parsed=PARSED)
    name = next(m.path for m in log.store.list(f"{LOG}/_sidecars"))
    import io

    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(log.store.get(name)))
    rows = [row and {**row, "stats_parsed": None} for row in table.column("add").to_pylist()]
    changed = table.set_column(0, "add", pa.array(rows, table.schema.field("add").type))
    buffer = io.BytesIO()
    pq.write_table(changed, buffer)
    log.store.put(name, buffer.getvalue())
    files = open_snapshot(log.store.uri, options=OPTIONS).plan(columns=["num_records", "min"]).files
    assert (
        files.filter(pa.compute.is_null(files.column("num_records"))).num_rows == 1
    )  # the re-added file has none
    assert {row["min"]["id"] for row in files.to_pylist() if row["path"] == "late.parquet"} == {5}


def test_the_last_part_of_a_log_may_be_a_checkpoint_alone(log):
    """Boundary: only a checkpoint."""
    log.checkpoint("classic", hint=False)
    log.drop_commits(log.version)
    snapshot = open_snapshot(log.store.uri, options=OPTIONS)
    assert snapshot.version == log.version
    assert snapshot.num_files == len(log.live)


def test_an_empty_table_has_no_files():
    """Boundary: protocol and metadata only."""
    log = DeltaLog(open_store(f"memory://{uuid.uuid4()}"), SCHEMA, ("p",))
    assert keys(log) == set()
    log.checkpoint("classic")
    log.drop_commits(log.version)
    assert keys(log) == set()


def test_every_older_version_stays_readable(log):
    """A13: across a checkpoint."""
    log.checkpoint("v2-parquet")
    log.commit(add("z.parquet"))
    for version, live in log.history.items():
        assert keys(log, version=version) == set(live), version
    with pytest.raises(Error, match="available"):
        keys(log, version=99)


def test_a_feature_that_appears_in_the_tail_is_refused_before_any_file_is_given(log):
    """B3: newest protocol wins, in the tail as well."""
    log.checkpoint("classic")
    protocol = {**log.protocol, "readerFeatures": ["deletionVectors", "somethingNew", "catalogManaged"]}
    log.commit({"protocol": protocol})
    with pytest.raises(ProtocolError, match=r"catalogManaged, somethingNew.*catalog"):
        keys(log)


def test_a_newer_reader_version_is_refused(log):
    """B2: minReaderVersion 4 does not exist yet."""
    log.commit({"protocol": {"minReaderVersion": 4, "minWriterVersion": 7}})
    with pytest.raises(ProtocolError, match="minReaderVersion = 4"):
        keys(log)


def test_an_empty_commit_file_is_an_error(log):
    """K5: never a commit without actions."""
    log.store.put(f"{LOG}/{log.version:020d}.json", b"")
    with pytest.raises(CorruptLogError, match="empty"):
        keys(log)


def test_a_compaction_file_is_read_instead_of_its_commits(log):
    """K7: the first line of a key wins in it, and a broken one is walked around."""
    for number in range(10):
        log.commit(add(f"c{number}.parquet"), *([remove(f"c{number - 1}.parquet")] if number else []))
    counting = CountingStore(log.store)
    low, high = 3, log.version - 2
    adds = [json.dumps({"add": body}) for body in log.history[high].values()]
    gone = [json.dumps(remove(name)) for name in ("c0.parquet", "c3.parquet", "p=a b/1.parquet")]
    stale = json.dumps(add("c3.parquet", size=1))
    body = "\n".join([*adds, *gone, stale])
    path = f"{LOG}/{low:020d}.{high:020d}.compacted.json"
    log.store.put(path, body.encode())
    source = delta_source(counting, OPTIONS, LOCAL)
    files = DeltaSnapshot(source, load_state(source)).plan().files
    assert set(zip(files.column("path").to_pylist(), files.column("dv").to_pylist(), strict=True)) == set(
        log.live
    )
    assert path in counting.reads
    assert f"{LOG}/{5:020d}.json" not in counting.reads
    log.store.put(path, b"{")
    assert keys(log) == set(log.live)


def test_a_second_look_reads_only_what_is_new(log):
    """F4: scans of one table share what was read of its checkpoint until the version changes."""
    log.checkpoint("classic")
    first = open_snapshot(log.store.uri, options=OPTIONS)
    again = open_snapshot(log.store.uri, options=OPTIONS)
    assert again.state is first.state
    log.commit(add("newer.parquet"))
    assert keys(log) == set(log.live)
    newer = open_snapshot(log.store.uri, options=OPTIONS)
    assert newer.version == first.version + 1
    assert newer.state.memo is first.state.memo
