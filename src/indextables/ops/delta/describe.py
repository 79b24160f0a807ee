"""What the log of a Delta table says about one version of it."""

from __future__ import annotations

from dataclasses import replace

from indextables.errors import NotATableError
from indextables.log.delta.history import delta_timeline
from indextables.log.delta.snapshot import DeltaSnapshot
from indextables.ops.delta.scan import COUNTED, live_rows
from indextables.ops.maintain.describe import Description, described


def describe_delta(snapshot: DeltaSnapshot) -> Description:
    """The same facts as for an IndexTables table; deleted rows do not count, and there is no index."""
    rows = live_rows(snapshot.sums(COUNTED))
    return replace(described(snapshot, "delta"), num_rows=rows, timestamp_ms=version_time_ms(snapshot))


def version_time_ms(snapshot: DeltaSnapshot) -> int:
    """When the version was written, as `as_of` has it; without its commit the best that is known."""
    try:
        timeline = delta_timeline(snapshot.source, snapshot.metadata.configuration)
    except NotATableError:
        return snapshot.timestamp_ms
    at = next((at for at, file in enumerate(timeline.files) if file.version == snapshot.version), None)
    return snapshot.timestamp_ms if at is None else timeline.time_ms(at)
