"""Arrow's private names and the public ones beside them give the same results, in the Arrow that is installed."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from indextables.model.arrow_internals import (
    KERNELS,
    READER,
    cast_values,
    filter_values,
    read_parquet,
    take_rows,
)

SOURCE = Path(__file__).parents[3] / "src" / "indextables"
BOTH = pytest.mark.parametrize(
    "modules", [KERNELS, ("pyarrow._gone", "pyarrow.compute")], ids=["private", "public"]
)
TABLE = pa.table({"number": [1, 2, 3], "text": ["a", "b", None]})


@BOTH
def test_rows_values_and_casts_are_those_of_arrows_own_methods(modules):
    positions, mask = pa.array([2, 0]), pa.array([True, False, True])
    assert take_rows(TABLE, positions, modules).equals(TABLE.take(positions))
    values = TABLE.column("number").chunk(0)
    assert filter_values(values, mask, modules).equals(values.filter(mask))
    assert cast_values(TABLE.column("number"), pa.int8(), modules).equals(
        TABLE.column("number").cast(pa.int8())
    )


@BOTH
def test_a_value_that_does_not_fit_is_refused(modules):
    with pytest.raises(pa.ArrowInvalid, match="300"):
        cast_values(pa.chunked_array([[300]]), pa.int8(), modules)


@pytest.mark.parametrize(
    "module", [READER, "pyarrow._gone", "pyarrow.types"], ids=["private", "moved", "renamed"]
)
@pytest.mark.parametrize("threads", [True, False])
def test_a_parquet_file_in_memory_is_read_whole(module, threads):
    sink = pa.BufferOutputStream()
    pq.write_table(TABLE, sink)
    pool = pa.system_memory_pool()
    rows = read_parquet(sink.getvalue(), pool, threads=threads, dictionary_columns=["text"], module=module)
    assert rows.column("number").equals(TABLE.column("number"))
    assert pa.types.is_dictionary(rows.schema.field("text").type)
    assert rows.column("text").to_pylist() == ["a", "b", None]


@pytest.mark.parametrize("module", [READER, "pyarrow._gone"], ids=["private", "public"])
def test_damaged_bytes_are_an_error(module):
    with pytest.raises(pa.ArrowInvalid):
        read_parquet(pa.py_buffer(b"PAR1" * 8), pa.system_memory_pool(), threads=False, module=module)


def test_no_other_module_knows_a_private_name_of_arrow():
    private = re.compile(r"""(from|import|load\(|["'])\s*["']?pyarrow\._""")
    users = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if private.search(path.read_text())
    }
    assert users == {"model/arrow_internals.py"}
