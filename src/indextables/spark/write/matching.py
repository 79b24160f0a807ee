"""Which rows of which files a statement matches: found on the executors, as a few bytes for each row.

Only the numbers of rows that may leave their file by a deletion vector come to the driver. Of a file that
will be written anew it is enough to know how many match.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class MatchingRows:
    """The rows of one file that a statement matches."""

    count: int
    rows: np.ndarray | None
    """Their numbers in the file, ascending; None if there are more of them than a vector may delete."""


def matching_rows(frame: Any, most: Mapping[str, int]) -> dict[str, MatchingRows]:
    """The matching rows by file, whose `plain_address` is the key; `most` is how many numbers are needed."""
    numbered = frame.selectExpr("_metadata.file_path AS address", "_metadata.row_index AS number")
    parts: dict[str, list[Any]] = defaultdict(list)
    for part in numbered.mapInArrow(
        _packed(dict(most)), "file string, matching bigint, rows binary"
    ).collect():
        parts[part["file"]].append(part)
    return {file: _joined(some, most.get(file, 0)) for file, some in parts.items()}


def _joined(parts: list[Any], most: int) -> MatchingRows:
    count = sum(int(part["matching"]) for part in parts)
    if count > most or any(part["rows"] is None for part in parts):
        return MatchingRows(count, None)
    numbers = np.concatenate([np.frombuffer(bytes(part["rows"]), "<i8") for part in parts])
    return MatchingRows(count, np.unique(numbers))


def _packed(most: Mapping[str, int]) -> Any:
    """The work of one task: how many rows of every file match, and which, if they are few enough."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers: dict[str, list[np.ndarray]] = defaultdict(list)
        counts: dict[str, int] = defaultdict(int)
        for batch in batches:
            if not batch.num_rows:
                continue
            addresses, places = batch.columns
            coded, rows = addresses.dictionary_encode(), places.to_numpy(zero_copy_only=False)
            codes = coded.indices.to_numpy(zero_copy_only=False)
            for at, address in enumerate(coded.dictionary.to_pylist()):
                file, some = plain_address(address), rows[codes == at]
                counts[file] += len(some)
                numbers[file].append(some)
                if counts[file] > most.get(file, 0):
                    numbers[file] = []
        if not counts:
            return
        packed = [
            np.concatenate(numbers[file]).astype("<i8").tobytes()
            if counts[file] <= most.get(file, 0)
            else None
            for file in counts
        ]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(list(counts), pa.string()),
                pa.array(list(counts.values()), pa.int64()),
                pa.array(packed, pa.binary()),
            ],
            names=["file", "matching", "rows"],
        )

    return run


def plain_address(address: str, *, encoded: bool = True) -> str:
    """An address in comparable form: `_metadata.file_path` is percent-encoded, a Hadoop path is not."""
    text = unquote(address) if encoded else address
    return text.replace("file:///", "file:/")
