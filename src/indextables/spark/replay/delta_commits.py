"""The adds of Delta commits as executors make columns of them: the fields of `add`, not yet typed."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - its usual name

from indextables.log.delta.commits import key_of
from indextables.log.delta.files.file_table import COUNTS_NAN, RAW, raw_table
from indextables.model.actions import AddAction, RemoveAction
from indextables.spark.replay.delta_adds import ADD_FIELDS

_BY_NAME = {field.name: field for field in (*ADD_FIELDS, T.StructField(COUNTS_NAN, T.BooleanType()))}
DELTA_ADD = T.StructType([_BY_NAME[name] for name in RAW.names])


class DeltaAdds:
    """Adds with the fields that the log gives them."""

    def key(self, action: AddAction | RemoveAction) -> tuple[str, str | None]:
        """Path and deletion vector."""
        return key_of(action)

    def columns(self, adds: Sequence[AddAction]) -> pa.StructArray:
        """The fields of `add`."""
        raw = raw_table(adds)
        return pa.StructArray.from_arrays([whole.combine_chunks() for whole in raw.columns], fields=list(RAW))
