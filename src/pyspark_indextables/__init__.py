"""What Spark finds by itself under the name "indextables" in a session that has not been connected.

Spark looks for modules called `pyspark_*` and takes their `DefaultSource` as a
data source. This one does nothing but say what to do; in a connected session
`indextables.connect` answers before Spark comes to look.
"""

from __future__ import annotations

from typing import Any, NoReturn

from pyspark.sql.datasource import DataSource

ADVICE = (
    "this session does not know IndexTables yet; call indextables.connect(spark) once, before the first "
    "format('indextables')"
)


class NotConnectedError(RuntimeError):
    """The session has not been connected."""


class DefaultSource(DataSource):  # type: ignore[misc]
    """A source that answers every request with advice."""

    @classmethod
    def name(cls) -> str:
        """The name users give to `format`."""
        return "indextables"

    def schema(self) -> NoReturn:
        """Refuse to read."""
        raise NotConnectedError(ADVICE)

    def writer(self, schema: Any, overwrite: bool) -> NoReturn:  # noqa: ARG002 - Spark's signature
        """Refuse to write."""
        raise NotConnectedError(ADVICE)

    def streamWriter(self, schema: Any, overwrite: bool) -> NoReturn:  # noqa: ARG002, N802 - Spark's signature
        """Refuse to write a stream."""
        raise NotConnectedError(ADVICE)
