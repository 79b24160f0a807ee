"""The progress of a stream: a place in the log of its table.

Spark keeps offsets in the checkpoint of a query, so their form stays: which log it is, a
version, and how many of its added files are done. `whole` means the files of the table as it
was at that version, with which a stream begins. The end of the first batch also says where
that batch began, since Spark keeps no offset for the beginning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """The next file is number `index` of a version, or of the table as it was then."""

    table_id: str
    """The id of the log that the version belongs to."""
    version: int
    index: int = 0
    whole: bool = False
    start: StreamOffset | None = None
    """Where the batch that ends here began, if it is the first of its query."""

    @classmethod
    def of_text(cls, text: str) -> StreamOffset:
        """Read an offset as Spark kept it."""
        return cls._of(json.loads(text))

    @classmethod
    def _of(cls, fields: Mapping[str, Any]) -> StreamOffset:
        start = fields.get("start")
        return cls(
            str(fields["tableId"]), int(fields["version"]), int(fields["index"]), bool(fields["whole"]),
            None if start is None else cls._of(start),
        )  # fmt: skip

    def to_text(self) -> str:
        """Write an offset for Spark to keep."""
        return json.dumps(self._fields())

    def _fields(self) -> dict[str, Any]:
        start = {} if self.start is None else {"start": self.start._fields()}
        place = {"tableId": self.table_id, "version": self.version, "index": self.index, "whole": self.whole}
        return {**place, **start}

    def place(self) -> StreamOffset:
        """The same place without where its batch began."""
        return replace(self, start=None)

    def following(self) -> StreamOffset:
        """The offset at the start of the next version."""
        return StreamOffset(self.table_id, self.version + 1)
