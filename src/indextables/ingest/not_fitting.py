"""Lines of CSV and JSON files that do not fit: broken ones, and values of another type than before."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from indextables.display.plain import counted
from indextables.errors import OptionError
from indextables.ingest.log_lines import RAW, line_shown

_SHOWN = 5
"""How many line numbers a note has."""


class TypesDiffer(Exception):  # noqa: N818 - no error: the load begins again with wider columns
    """A block of a file has values that the columns guessed so far cannot hold."""

    def __init__(self, path: str, column: str = "", block: bytes = b"") -> None:
        super().__init__(f"{path}: the values of {column or 'a block'} are of several types")
        self.path, self.column, self.block = path, column, block

    @staticmethod
    def column_of(wrong: pa.ArrowInvalid, schema: pa.Schema) -> str | None:
        """The column whose value could not be converted, by the message of Arrow's CSV reader."""
        match = re.search(r"In CSV column #(\d+):.*conversion error", str(wrong), re.DOTALL)
        return schema.names[int(match[1])] if match and int(match[1]) < len(schema) else None


@dataclass(slots=True)
class BadLines:
    """Lines of one file that cannot be read, and what becomes of them."""

    path: str
    on_error: str
    schema: pa.Schema | None
    count: int = 0
    numbers: list[int] = field(default_factory=list)
    """The first of their line numbers."""
    example: str = ""
    _texts: list[str] = field(default_factory=list)

    def take(self, number: int | None, text: str) -> None:
        """Note a line, or refuse the file."""
        if self.on_error == "fail":
            raise OptionError(
                f"{self.path}, line {number}, cannot be read: {line_shown(text)}. --on-error keep puts such "
                "lines into the column _raw, --on-error skip leaves them out; both count them."
            )
        self.count += 1
        self.example = self.example or text
        if number is not None and len(self.numbers) < _SHOWN:
            self.numbers.append(number)
        if self.on_error == "keep":
            self._texts.append(text)

    def take_csv_row(self, row: Any) -> str:
        """Note a row with too few or too many values, for Arrow's CSV reader."""
        self.take(row.number, row.text)
        return "skip"

    def with_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch, with a row for each line that is kept."""
        if self.on_error != "keep" or self.schema is None:
            return batch
        texts, self._texts = self._texts, []
        columns = [
            pa.concat_arrays([batch.column(item.name), pa.nulls(len(texts), batch.column(item.name).type)])
            if item.name in batch.schema.names
            else pa.concat_arrays([pa.nulls(batch.num_rows, pa.string()), pa.array(texts, pa.string())])
            for item in self.schema
        ]
        return pa.record_batch(columns, names=self.schema.names)

    def notes(self) -> list[str]:
        """What to say of them."""
        if not self.count:
            return []
        done = f"kept in {RAW}" if self.on_error == "keep" else "left out"
        where = ", ".join(f"{number:,}" for number in self.numbers) + (
            ", ..." if self.count > len(self.numbers) else ""
        )
        return [
            f"{self.path}: {counted(self.count, 'line')} could not be read and "
            f"{'was' if self.count == 1 else 'were'} {done}"
            + (f" (line {where})" if self.numbers else "")
            + f", first {line_shown(self.example)}"
        ]
