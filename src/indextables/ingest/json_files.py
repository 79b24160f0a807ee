"""JSON files as rows: a line for each object, or one array of objects.

Arrow reads blocks of lines. Of a block that it refuses, DuckDB says which lines are no JSON; they are
dealt with as the caller said. A column with values of several types becomes text, in which objects and
lists are JSON again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from indextables.errors import OptionError
from indextables.ingest.json_depth import NestingCheck
from indextables.ingest.log_json import JsonField, are_objects, json_rows
from indextables.ingest.log_lines import RAW, split_lines
from indextables.ingest.not_fitting import BadLines, TypesDiffer
from indextables.ingest.streams import TextFile
from indextables.lazy import pc, pj

_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_MOST_ARRAY_BYTES = 1 << 30
"""An array is held in memory as a whole."""


@dataclass(frozen=True, slots=True)
class Json:
    """The columns of JSON files, by blocks that were looked at."""

    sample: tuple[bytes, ...] = ()
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    widened: tuple[str, ...] = ()
    """Columns that are text because their values are of several types."""

    def with_block(self, block: bytes) -> Json:
        """The columns for one more block."""
        sample = (*self.sample, block)
        data = b"".join(piece if piece.endswith(b"\n") else piece + b"\n" for piece in sample)
        try:
            return Json(sample, _read(data, None).schema)
        except pa.ArrowInvalid:
            return Json(sample, *_wide_schema(_documents(data)))

    def rows(self, text: TextFile, schema: pa.Schema, bad: BadLines) -> Iterator[pa.RecordBatch]:
        """The rows of a file."""
        line = 1
        for block in json_blocks(text):
            yield from self.rows_of(block, schema, bad, line)
            line += block.count(b"\n")

    def rows_of(
        self, block: bytes, schema: pa.Schema, bad: BadLines, first_line: int = 1
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a block; TypesDiffer if the columns cannot hold its values."""
        filled = [item for item in schema if item.name != RAW]
        if not block.strip():
            yield bad.with_rows(pa.RecordBatch.from_pylist([], pa.schema(filled)))
            return
        columns = pa.schema([item for item in filled if item.name not in self.widened])
        try:
            rows = _read(block, columns, ignore=bool(self.widened))
        except pa.ArrowInvalid as wrong:
            lines = split_lines(block)
            good = pc.or_(are_objects(lines), pc.equal(pc.utf8_trim_whitespace(lines), ""))
            strange = np.flatnonzero(~good.to_numpy(zero_copy_only=False))
            if not len(strange):
                raise TypesDiffer(bad.path, block=block) from wrong
            for at in strange.tolist():
                bad.take(first_line + at, lines[at].as_py())
            block = "\n".join(lines.filter(good).to_pylist()).encode()
            yield from self.rows_of(block, schema, bad)
            return
        if not self.widened and set(rows.schema.names) - set(columns.names):
            raise TypesDiffer(bad.path, block=block)
        if self.widened:
            lines = split_lines(block)
            lines = lines.filter(pc.not_equal(pc.utf8_trim_whitespace(lines), ""))
            complete, texts = json_rows(
                lines, tuple(JsonField(item.name, item.name, "string") for item in filled)
            )
            if not pc.all(complete).as_py():
                raise TypesDiffer(bad.path, block=block)
            for name in self.widened:
                rows = rows.append_column(name, pa.chunked_array([texts[name]]))
        for piece in rows.select([item.name for item in filled]).combine_chunks().to_batches():
            yield bad.with_rows(piece)


def json_blocks(text: TextFile) -> Iterator[bytes]:
    """A file in blocks of lines with an object each; one that is nested too deeply is refused."""
    check = NestingCheck(text.path)
    if not text.head.lstrip().startswith(b"["):
        for block in text.blocks():
            check.look_at(block)
            yield block
        return
    pieces, size = [], 0
    for block in text.blocks():
        check.look_at(block)
        pieces.append(block)
        size += len(block)
        if size > _MOST_ARRAY_BYTES:
            raise OptionError(
                f"{text.path} is one JSON array of more than 1 GiB, which does not fit into memory. Make a "
                "line of each object, with jq -c '.[]' for example."
            )
    try:
        # A line end can only stand between values: strings cannot contain one.
        objects = _ARRAY.decode(b"".join(pieces).replace(b"\n", b" "))
    except msgspec.DecodeError as damaged:
        raise OptionError(f"{text.path} begins as a JSON array and is none: {damaged}") from damaged
    for at in range(0, len(objects), 10_000):
        yield b"\n".join(map(bytes, objects[at : at + 10_000])) + b"\n"


def _read(block: bytes, schema: pa.Schema | None, *, ignore: bool = False) -> pa.Table:
    options = pj.ParseOptions(
        explicit_schema=schema, unexpected_field_behavior="ignore" if ignore else "infer"
    )
    size = pj.ReadOptions(block_size=max(len(block), 1 << 10))
    rows: pa.Table = pj.read_json(pa.BufferReader(block), size, options)
    return rows


def _documents(data: bytes) -> list[dict[str, Any]]:
    documents = []
    for line in data.decode("utf-8", "replace").split("\n"):
        try:
            document = json.loads(line)
        except ValueError:
            continue
        if isinstance(document, dict):
            documents.append(document)
    return documents


def _wide_schema(documents: list[dict[str, Any]]) -> tuple[pa.Schema, tuple[str, ...]]:
    """The columns of objects, and which of them have to be text for all values to fit."""
    names = list(dict.fromkeys(name for document in documents for name in document))
    widened: list[str] = []
    schema = pa.schema([])
    while len(widened) < len(names):
        rest = [{key: value for key, value in item.items() if key not in widened} for item in documents]
        try:
            schema = _read("\n".join(map(json.dumps, rest)).encode(), None).schema
            break
        except pa.ArrowInvalid as wrong:
            match = re.search(r"Column\(/([^/)]+)", str(wrong))
            if match is None or match[1] in widened:
                raise
            widened.append(match[1])
    kinds = {item.name: item.type for item in schema}
    return pa.schema([pa.field(name, kinds.get(name, pa.string())) for name in names]), tuple(widened)
