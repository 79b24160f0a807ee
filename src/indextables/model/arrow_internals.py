"""The private names of Arrow that this project uses, and the public ones that do the same.

`pyarrow.compute` and `pyarrow.parquet` take longer to load than a short command takes otherwise: the
one wraps every kernel, the other loads cloud file systems. The extension modules below them are loaded
already, and the reader of Parquet among them accepts a memory pool. Where an Arrow release has moved a
private name, the public module is loaded instead and the results are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa

from indextables.lazy import pq

KERNELS = ("pyarrow._compute", "pyarrow.compute")
"""Modules with `call_function` and `CastOptions`: the private one, then the public one."""
READER = "pyarrow._parquet"


def call_kernel(name: str, *arguments: Any, modules: Sequence[str] = KERNELS) -> Any:
    """What a function of Arrow returns for arrays and scalars; it has no options, or the default ones."""
    return _kernels(modules).call_function(name, list(arguments))


def take_rows(table: pa.Table, positions: pa.Int64Array, modules: Sequence[str] = KERNELS) -> pa.Table:
    """The rows of a table at these positions, as its method `take` returns them."""
    rows: pa.Table = _kernels(modules).call_function("take", [table, positions])
    return rows


def filter_values(values: pa.Array, mask: pa.BooleanArray, modules: Sequence[str] = KERNELS) -> pa.Array:
    """The values where the mask is true, as the method `filter` returns them."""
    matching: pa.Array = call_kernel("array_filter", values, mask, modules=modules)
    return matching


def filter_rows(table: pa.Table, mask: pa.BooleanArray, modules: Sequence[str] = KERNELS) -> pa.Table:
    """The rows of a table where the mask is true, as its method `filter` returns them."""
    matching: pa.Table = call_kernel("filter", table, mask, modules=modules)
    return matching


def cast_values(
    column: pa.ChunkedArray, kind: pa.DataType, modules: Sequence[str] = KERNELS
) -> pa.ChunkedArray:
    """A column in another type, as its method `cast` returns it; ArrowInvalid if a value does not fit."""
    kernels = _kernels(modules)
    converted: pa.ChunkedArray = kernels.call_function("cast", [column], kernels.CastOptions.safe(kind))
    return converted


def read_parquet(
    buffer: pa.Buffer,
    pool: pa.MemoryPool,
    *,
    threads: bool,
    dictionary_columns: Sequence[str] = (),
    module: str = READER,
) -> pa.Table:
    """All rows of a Parquet file in memory, allocated from `pool` if the reader accepts one."""
    source, coded = pa.BufferReader(buffer), list(dictionary_columns)
    try:
        reader = import_module(module).ParquetReader(memory_pool=pool)
    except (ImportError, AttributeError):
        return pq.ParquetFile(source, pre_buffer=False, read_dictionary=coded).read(use_threads=threads)
    reader.open(source, pre_buffer=False, read_dictionary=coded)
    rows: pa.Table = reader.read_all(use_threads=threads)
    return rows


def _kernels(modules: Sequence[str]) -> Any:
    """The first of the modules that exists and has what is needed of it."""
    for name in modules[:-1]:
        try:
            module = import_module(name)
        except ImportError:
            continue
        if hasattr(module, "call_function") and hasattr(module, "CastOptions"):
            return module
    return import_module(modules[-1])
