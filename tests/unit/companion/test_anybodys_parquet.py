"""Companions of Parquet files that others have written, and what is in these files."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.errors import Error
from support.companions import bytes_of

NUMBER = 5_000
"""Enough rows for several row groups and pages."""


def rows(nested=False):
    numbers = range(NUMBER)
    made = {
        "id": pa.array(numbers, pa.int64()),
        "at": pa.array([dt.datetime(2026, 1, 1) + dt.timedelta(seconds=n) for n in numbers], pa.timestamp("us")),
        "message": [f"request {n} took {n % 97} ms{' needle' if n % 1000 == 7 else ''}" for n in numbers],
    }  # fmt: skip
    if nested:
        made["tags"] = [[{"name": f"n{n}", "value": n}] * (n % 3) for n in numbers]
        made["place"] = [None if n % 7 == 0 else {"host": f"h{n % 5}", "rack": {"row": n}} for n in numbers]
    return pa.table(made)


def by_pyarrow(path, **options):
    pq.write_table(rows(), path, row_group_size=1_300, **options)


def by_duckdb(path):
    made = rows()  # noqa: F841 - DuckDB finds it by its name
    duckdb.sql(f"COPY (FROM made) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")


def by_duckdb_v2(path):
    made = rows()  # noqa: F841 - DuckDB finds it by its name
    duckdb.sql(f"COPY (FROM made) TO '{path}' (FORMAT parquet, PARQUET_VERSION v2)")


WRITERS = {
    "pyarrow": by_pyarrow,
    "pyarrow with a page index": lambda path: by_pyarrow(path, write_page_index=True, data_page_size=4_000),
    "data page v2": lambda path: by_pyarrow(path, data_page_version="2.0", compression="zstd"),
    "INT96": lambda path: by_pyarrow(path, use_deprecated_int96_timestamps=True),
    "dictionary fallback": lambda path: by_pyarrow(
        path, dictionary_pagesize_limit=2_000, data_page_size=4_000
    ),
    "nested": lambda path: pq.write_table(rows(nested=True), path, row_group_size=1_300),
    "duckdb": by_duckdb,
    "duckdb v2": by_duckdb_v2,
    "polars": lambda path: pl.from_arrow(rows()).write_parquet(path, row_group_size=1_300),
}


def questions(table, source):
    """The same of the index and of the rows that another reader finds."""
    found = table.search("needle").read_all().sort_by("id")
    brute = duckdb.sql(
        f"SELECT * FROM '{source}/*.parquet' WHERE message LIKE '%needle%' ORDER BY id"
    ).arrow()
    brute = brute.read_all() if hasattr(brute, "read_all") else brute
    assert found.column("id").to_pylist() == brute.column("id").to_pylist() == list(range(7, NUMBER, 1000))
    for name in brute.column_names:
        assert found.column(name).to_pylist() == brute.column(name).to_pylist(), name
    assert table.count(query="message:needle AND id:>2000") == 3
    assert table.last_scan.coverage.scanned == 0


@pytest.mark.parametrize("writer", WRITERS)
def test_rows_of_every_writer_are_found_and_read(writer, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    WRITERS[writer](str(source / "a.parquet"))
    before = bytes_of(str(source))
    columns = {"indexing.fastfields": "id", "indexing.typemap.message": "text"}
    it.companion(str(source), str(tmp_path / "index"), options=columns)
    questions(it.open(str(tmp_path / "index")), source)
    assert bytes_of(str(source)) == before


def test_rows_of_deltalake_are_found_and_read(tmp_path):
    import deltalake

    source = str(tmp_path / "source")
    deltalake.write_deltalake(source, rows())
    it.companion(source, str(tmp_path / "index"), options={"indexing.fastfields": "id"}, columns=["message"])
    questions(it.open(str(tmp_path / "index")), source)


def test_rows_of_string_views_are_found_in_files_that_are_not_indexed_yet(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    by_pyarrow(str(source / "a.parquet"))
    it.companion(str(source), str(tmp_path / "index"), ["message"])
    made = rows()
    (source / "a.parquet").unlink()
    pq.write_table(
        made.set_column(2, "message", made["message"].cast(pa.string_view())), source / "b.parquet"
    )
    table = it.open(str(tmp_path / "index"))
    found = table.search("message:needle", where="id < 2000", columns=["id", "message"]).read_all()
    assert found.column("id").to_pylist() == [7, 1007]
    assert table.search("needle", sort="id DESC", limit=1).read_all().column("id").to_pylist() == [4007]


def test_encrypted_files_are_refused_by_name(tmp_path):
    import pyarrow.parquet.encryption as pe

    class Keys(pe.KmsClient):
        def __init__(self, config):
            super().__init__()

        def wrap_key(self, key_bytes, master_key_identifier):
            return key_bytes

        def unwrap_key(self, wrapped_key, master_key_identifier):
            return wrapped_key

    factory = pe.CryptoFactory(Keys)
    source = tmp_path / "source"
    source.mkdir()
    for name, plain in (("columns", True), ("footer", False)):
        config = pe.EncryptionConfiguration(
            footer_key="footer", column_keys={"column": ["message"]}, plaintext_footer=plain
        )
        properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), config)
        path = source / f"{name}.parquet"
        with pq.ParquetWriter(str(path), rows().schema, encryption_properties=properties) as writer:
            writer.write_table(rows())
        with pytest.raises(Error, match=rf"{name}\.parquet.*encrypt"):
            it.companion(str(source), str(tmp_path / f"index_{name}"), {"message": "text"})
        Path(path).unlink()


def test_a_file_that_is_no_parquet_is_named(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    by_pyarrow(str(source / "a.parquet"))
    (source / "b.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(Error, match=r"b\.parquet cannot be read as Parquet"):
        it.companion(str(source), str(tmp_path / "index"), {"message": "text"})
