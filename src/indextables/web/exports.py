"""Downloads: all rows of an answer as CSV, JSON lines or an Arrow stream, made while they are sent."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from indextables.display.plain import plain_value
from indextables.errors import OptionError
from indextables.web import answers
from indextables.web.row_request import RowRequest
from indextables.web.tables import ServedTable

FORMATS = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "arrow": "application/vnd.apache.arrow.stream",
}
_AT_ONCE = 10_000
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export(served: ServedTable, row_request: RowRequest, form: str) -> Callable[[], Iterator[bytes]]:
    """Open the rows, so that a mistake is reported now; the returned function reads and encodes them."""
    if form not in FORMATS:
        raise OptionError(f"there is no download as {form!r}; choose {', '.join(FORMATS)}")
    reader = answers.stream(served.open(row_request.version), row_request)
    return lambda: _WRITERS[form](reader)


def _csv(reader: Any) -> Iterator[bytes]:
    yield _csv_lines([reader.schema.names])
    for rows in _pieces(reader):
        yield _csv_lines([[_cell(value) for value in row.values()] for row in rows])


def _csv_lines(lines: list[list[Any]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerows(lines)
    return out.getvalue().encode()


def _cell(value: Any) -> Any:
    """A value for a spreadsheet, which must not take a text of the table for a formula."""
    plain = plain_value(value)
    if isinstance(plain, (dict, list)):
        return json.dumps(plain, ensure_ascii=False)
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return plain


def _jsonl(reader: Any) -> Iterator[bytes]:
    for rows in _pieces(reader):
        text = "".join(json.dumps(plain_value(row), ensure_ascii=False) + "\n" for row in rows)
        yield text.encode()


def _arrow(reader: Any) -> Iterator[bytes]:
    buffer = _Buffer()
    with pa.ipc.new_stream(buffer, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
            yield buffer.take()
    yield buffer.take()


class _Buffer(io.RawIOBase):
    """A file whose bytes can be taken away while it is written."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        """It is only written."""
        return True

    def write(self, data: Any) -> int:
        """Keep the bytes until they are taken."""
        self._parts.append(bytes(data))
        return len(self._parts[-1])

    def take(self) -> bytes:
        """The bytes that were written since the last call."""
        data, self._parts = b"".join(self._parts), []
        return data


def _pieces(reader: Any) -> Iterator[list[dict[str, Any]]]:
    for batch in reader:
        for start in range(0, batch.num_rows, _AT_ONCE):
            yield batch.slice(start, _AT_ONCE).to_pylist(maps_as_pydicts="lossy")


_WRITERS = {"csv": _csv, "jsonl": _jsonl, "arrow": _arrow}
